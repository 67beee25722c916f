// Package quant answers: how are weights stored in few bits, and what do they say when read back?
//
// A weight is a [Matrix] of shape [Rows, Cols] (out, in) that knows its [Encoding] and can give any row as float32.
// Dense encodings (f32, f16, bf16) are views of checkpoint bytes and never copy them; [Grouped4] is the 4-bit palette of
// Core ML: groups of consecutive output rows share one 16-entry table (spec forward.md §5.5).
//
//	[Tensor]  bytes with a name, a shape and a type, as a checkpoint holds them
//	[Matrix]  what arithmetic multiplies with: Row decodes, MulVec is the plain reference product
//
// Start at [Dense].
package quant
