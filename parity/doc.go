// Package parity answers: do two implementations agree, and where do they first part?
//
// Two tensors are compared by [Compare], which measures (largest difference, ULPs of the storage type, cosine, RMS, row norms,
// argmax) and never judges; a [Tolerance] judges. The zero tolerance is equality, and every tolerance bounds each element: a
// cosine or an argmax can be asked for on top, never instead.
//
//	Compare(got, want, options) ─► Difference ─ Tolerance.Check ─► nil or *Disagreement (values to look at in Detail)
//
// Conventions: got comes first and want, the reference, second; relative figures are relative to want; −0 equals +0; NaN
// equals NaN and nothing else; sums are float64.
//
// Start at [Compare].
package parity
