// Package formula answers: what are the weights of a model that is too large to ship and need not be trained?
//
// Every weight is a hash of a seed, its tensor's name and its index, scaled so that a forward pass stays in a sane range, and
// rounded to bf16. Goldens of real dimensions are computed on such weights; nothing has to be downloaded. The definition is
// golden/formula.md of the conformance data:
//
//	h = FNV-1a-64(seed ":" name)
//	n = odd 25-bit integer from output number i of splitmix64 with state h      |n| < 2^24
//	w = bf16(float32(c + a·n/2^24))                                             exact before the two roundings
//
// with (c, a) by kind of tensor. Start at [New].
package formula
