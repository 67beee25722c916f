// Package paritytest answers: is this an implementation of the model? It is the suite that every backend passes.
//
// [RunAll] runs a backend on the small model of testdata/ in every numerics mode: against the whole model, where equality is
// asked for tensor by tensor, and against what the reference implementation recorded, within tolerances that come from its own
// measured noise. The sizes of the small model are pairwise different where it matters, and its longest case is three windows
// long.
//
// Start at [RunAll]; [Agree] compares two slices in any other test.
package paritytest
