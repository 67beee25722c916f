package main

import "fmt"

// attention emits the mix of attention: rows of halves, times probabilities, added up.
func attention(a *asm) {
	for _, heads := range []int{8, 1} {
		mixHalves(a, simd{"AVX512", "Z", "Y", 16}, heads)
	}
	for _, heads := range []int{4, 1} {
		mixHalves(a, simd{"AVX2", "Y", "X", 8}, heads)
	}
}

// mixHalves adds n rows of two vectors of columns to the sums of some heads, one row after the other. Sums stay in registers,
// every row is widened once.
func mixHalves(a *asm, s simd, heads int) {
	acc := func(h, c int) string { return fmt.Sprintf("%s%d", s.v, 2*h+c) }
	row := 2 * heads
	a.text(fmt.Sprintf("o[h][0:%d] += Σ p[h][i]·v[i][0:%d] over n rows of halves", 2*s.lanes, 2*s.lanes), fmt.Sprintf("mixHalves%d%s", heads, s.isa), 56)
	a.op("MOVQ o+0(FP), DI")
	a.op("MOVQ oStride+8(FP), R9")
	a.op("SHLQ $2, R9")
	a.op("MOVQ p+16(FP), SI")
	a.op("MOVQ pStride+24(FP), R8")
	a.op("SHLQ $2, R8")
	a.op("MOVQ v+32(FP), DX")
	a.op("MOVQ vStride+40(FP), R10")
	a.op("ADDQ R10, R10")
	a.op("MOVQ n+48(FP), CX")
	a.op("MOVQ DI, BX")
	for h := range heads {
		for c := range 2 {
			a.op("VMOVUPS %d(BX), %s", 4*s.lanes*c, acc(h, c))
		}
		a.op("ADDQ R9, BX")
	}
	probabilities := []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R11*1)", "(SI)(R8*4)", "(SI)(R12*1)", "(SI)(R11*2)", "(SI)(R13*1)"}
	a.op("LEAQ (R8)(R8*2), R11")  // 3
	a.op("LEAQ (R8)(R8*4), R12")  // 5
	a.op("LEAQ (R11)(R8*4), R13") // 7
	a.label("loop")
	for c := range 2 {
		a.op("VCVTPH2PS %d(DX), %s%d", 2*s.lanes*c, s.v, row+c)
	}
	for h := range heads {
		a.op("VBROADCASTSS %s, %s%d", probabilities[h], s.v, row+2+h%2)
		for c := range 2 {
			a.op("VFMADD231PS %s%d, %s%d, %s", s.v, row+2+h%2, s.v, row+c, acc(h, c))
		}
	}
	a.op("ADDQ R10, DX")
	a.op("ADDQ $4, SI")
	a.op("DECQ CX")
	a.op("JNZ loop")
	for h := range heads {
		for c := range 2 {
			a.op("VMOVUPS %s, %d(DI)", acc(h, c), 4*s.lanes*c)
		}
		a.op("ADDQ R9, DI")
	}
	a.op("VZEROUPPER")
	a.op("RET")
}
