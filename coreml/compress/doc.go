// Package compress answers: which weights of a program can be stored in few bits, and what is the program that stores them so?
//
//	Select   every floating constant, and why it is left as it is or what its channels are
//	Apply    Select, then a palette (constexpr_lut_to_dense) or integers (constexpr_blockwise_shift_scale) for each
//
// What is chosen is what a converter's own palettizer chooses, with one rule added: only operands of products. A constant of
// more than [DefaultMinElements] elements becomes compressed if all that read it are conv, conv_transpose, linear or matmul.
// A table that is gathered from stays as it is, and so does a tied one that a product reads too: nobody should find the lookup
// changed by asking for a smaller head (QNT-14). Masks with infinities are no weights (QNT-06).
//
// Groups run along the output channels:
//
//	linear, conv                 dimension 0
//	conv_transpose               dimension 1
//	matmul, y                    the last dimension; transposed, the one before
//
// Numbers are those of package quant. Constants that share bytes are compressed once and share the result. Apply keeps results
// in a [Store], which may be a file, so that memory holds one weight at a time; the given program is changed only when all
// of them are done. [anelab/coreml/mlpackage.Write] then writes it.
//
// Start at [Apply].
package compress
