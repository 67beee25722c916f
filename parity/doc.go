// Package parity answers: do two implementations agree, and where do they first part?
//
// Two tensors are compared by [Compare], which measures (largest difference, ULPs of the storage type, cosine, RMS, row norms,
// argmax) and never judges; a [Tolerance] judges. The zero tolerance is equality, and every tolerance bounds each element: a
// cosine or an argmax can be asked for on top, never instead.
//
//	Compare(got, want, options) ─► Difference ─ Tolerance.Check ─► nil or *Disagreement (values to look at in Detail)
//
// Two implementations are compared by [Run]. Each is a [Backend] that turns a [Case] into a stream of taps, named tensors in the
// order of a forward pass; Run merges the two streams, holds one tensor of each, and names the first one that parts.
//
//	Reference (the whole model) ─┐                     ┌─ agreement per point
//	Chunked (a plan's programs) ─┼─ two of them ─ Run ─┤
//	golden.Backend (a recording) ┘                     └─ the first tensor that parts, with layer, chunk and values
//
// Conventions: got comes first and want, the reference, second; relative figures are relative to want; −0 equals +0; NaN
// equals NaN and nothing else; sums are float64. Tap data is borrowed: valid until the next tap is asked for.
//
// Start at [Compare] and [Run].
package parity
