// Package results answers: which layouts has an earlier sweep priced, and do its records belong together?
//
// A [Record] is one line of simulate sweep --format jsonl, complete in itself. Records belong together when their [Conditions]
// are equal: the same model, the same device file, the same copy-back. A [Reader] reads lines and says which one is wrong; a
// [Set] merges files.
//
// Start at [NewReader].
package results
