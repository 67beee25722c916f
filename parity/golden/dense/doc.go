// Package dense answers: what does an n-dimensional array look like, and what do other authors' libraries make of it?
//
// It turns taps, goldens and .npy files into gorgonia tensors, which know their shape and print themselves, and it is the only
// package that imports gorgonia. Its tests hold the project's arithmetic against gorgonia and gonum: matrix products, softmax,
// reductions and whole attention heads, on small integers, where every sum is exact in every order.
//
// The trap it guards against: gorgonia's BLAS-backed operations, and Data, ignore the access pattern of a view, so a sliced or
// transposed tensor gives wrong numbers and no error. [Contiguous] materialises first; nothing here slices.
//
// Commands must not link this package (archtest checks): it weighs 15 MB and brings an init function that has panicked on new
// Go versions.
//
// Start at [OfTap].
package dense
