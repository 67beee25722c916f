// Package quant answers: how are weights stored in few bits, what do they say when read back, and what does that cost in accuracy?
//
// A weight is a [Matrix] of shape [Rows, Cols] (out, in) that knows its [Encoding] and can give any row as float32.
// Dense encodings (f32, f16, bf16) are views of checkpoint bytes and never copy them.
//
//	[Tensor]   bytes with a name, a shape and a type, as a checkpoint holds them
//	[Matrix]   what arithmetic multiplies with: Row decodes, MulVec is the plain reference product
//	[Palette]  1 to 8 bits into tables shared by groups of rows or columns (spec forward.md §5.5); made by [Palettize]
//	[Linear]   4 or 8 bits times a scale; made by [Quantize]
//	[Sparse]   a mask and the values it leaves; made by [PruneMagnitude], [PruneThreshold] and [PruneNOfM]
//	[Report]   what an encoding lost, and [Gate] whether that is too much
//
// Palettes, integers and pruned weights are those that coremltools makes of the same weights, bit for bit wherever its own
// result is defined. Elements of fewer than eight bits lie low bits first without gaps, see [Pack].
//
// Start at [Dense].
package quant
