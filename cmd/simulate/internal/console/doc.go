// Package console answers: what is at the other end of this command, and how does it want to be spoken to?
//
// A [Console] is the three streams with what is known about them. Results go to Out, everything about the work (warnings,
// progress) to Err. [Console.Open] is where results go: standard output, or a file that appears under its name only when it is
// complete. [Progress] speaks up only where a person waits: on a terminal, after a second.
//
// Start at [System].
package console
