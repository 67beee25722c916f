// Package trial answers: how good is a layout of this checkpoint on these sequences?
//
// A [Subject] is an open checkpoint with an evaluation set, by default the recall miniature that comes with the program. A [Trial] is
// one layout, encoding and numerics mode on it; [Subject.Run] measures trials part by part, so that progress shows and a part is
// what another runner would hand to a worker.
//
// Start at [Open].
package trial
