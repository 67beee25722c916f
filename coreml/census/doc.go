// Package census answers: what does a program consist of, and what do its weights weigh?
//
//	Weights(f)   every constant that an op computes with, with the form it is stored in and the ops that read it
//	Tally(…)     constants by form, the bytes of one blob counted once however many constants and functions share it
//	Ops(f)       ops by type
//
// A weight is what the readers see: a const, or what the last op of a chain of constexpr ops yields. Its parts are the stored
// tensors behind it: indices, tables, scales, masks. Constants given in the program's own text, such as axes and strides, are
// no weights; a few numbers of a normalization may be.
//
// Start at [Weights].
package census
