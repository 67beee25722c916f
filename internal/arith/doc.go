// Package arith is the numerics of one mode: where values are rounded, and nothing else.
//
// Layer code is written once against [Arithmetic]. Every slice holds float32 numbers that are representable in the mode's
// storage type; every operation takes such numbers and gives such numbers back.
//
//	mode     storage   sums                         source
//	f32      float32   float32                      Hugging Face float32 runs, RoPE angles included
//	hf-bf16  bf16      float64 → float32 → bf16     HF eager's schedule, spec forward.md §2.11
//	ane      fp16      float64 → float32 → fp16     spec forward.md §5.3, what the emitted graph computes
//	strict   fp16      fp16 after every step        an oracle (strict.go), not among Modes
//
// The pinned modes (hf-bf16, ane) give the same bits on every architecture: sums are formed in the canonical structure of
// package kernel (8 float64 lanes by absolute index), rounded to float32 and then to storage, two roundings in this order; exp,
// tanh, sine and logarithm are our own (elementary.go), because Go's differ in the last bit between architectures.
//
// The modes differ in files f32.go, hfbf16.go and ane.go; what they share is in rounded.go.
//
// Start at [New].
package arith
