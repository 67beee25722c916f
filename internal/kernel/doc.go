// Package kernel holds the inner loops: dot products and the pool of goroutines that shares rows among cores.
//
// Two summation orders, both fixed, so that a result depends on its operands only, never on batch size or thread count:
//
//	Dot    float32, 4 partial sums by index mod 4, tree (0+2)+(1+3)
//	Dot64  float64, 8 partial sums by index mod 8, tree ((0+4)+(2+6))+((1+5)+(3+7)): the canonical structure of the
//	       pinned numerics modes (spec design.md D1)
//
// Go fuses x*y+z into one rounding on arm64 and not on amd64, so every product here is converted before it is added.
//
// Start at [Dot64].
package kernel
