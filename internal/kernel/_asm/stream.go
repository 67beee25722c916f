package main

import "fmt"

// stream emits kernels that walk vectors once: digits of the integer kernels, half-precision stores, the mix of four rows,
// exponential and GELU.
func stream(a *asm) {
	digits(a)
	encodeF16(a, "AVX512")
	encodeF16(a, "AVX2")
	axpy4(a, "AVX512")
	axpy4(a, "AVX2")
	for _, s := range both {
		expShift(a, s)
		gelu(a, s)
	}
	sumStreams(a)
	pause(a)
}

// digits splits whole blocks of 64 numbers into two signed digits of 11 bits each. The constants come from Go, in the order of
// digitConstants: limit, 2048, least peak, unused, byte order of an octet.
func digits(a *asm) {
	a.text("blocks of digits", "digitsAVX512", 32)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
	a.op("MOVQ constants+24(FP), R10")
	a.op("MOVL $0x7fffffff, AX")
	a.op("VPBROADCASTD AX, Z20")
	a.op("VBROADCASTI128 16(R10), Y6")
	a.label("block")
	for i := range 4 {
		a.op("VMOVUPS %d(SI), Z%d", 64*i, 8+i)
	}
	a.op("VPANDD Z20, Z8, Z0")
	for i := 1; i < 4; i++ {
		a.op("VPANDD Z20, Z%d, Z1", 8+i)
		a.op("VPMAXUD Z1, Z0, Z0")
	}
	a.op("VEXTRACTI64X4 $1, Z0, Y1")
	a.op("VPMAXUD Y1, Y0, Y0")
	a.op("VEXTRACTI128 $1, Y0, X1")
	a.op("VPMAXUD X1, X0, X0")
	inverseScale(a)
	a.op("VBROADCASTSS X5, Z5")
	for i := range 4 {
		at := headBytes + 2*i*octetBytes
		a.op("VMULPS Z5, Z%d, Z0", 8+i)
		a.op("VCVTPS2DQ Z0, Z0")
		a.op("VPSLLD $21, Z0, Z1")
		a.op("VPSRAD $21, Z1, Z1")
		a.op("VPSUBD Z1, Z0, Z0")
		a.op("VPSRAD $11, Z0, Z0")
		for k := range 2 {
			a.op("VPMOVDW Z%d, Y2", k)
			a.op("VPSHUFB Y6, Y2, Y2")
			a.op("VMOVDQU X2, %d(DI)", at+16*k)
			a.op("VEXTRACTI128 $1, Y2, %d(DI)", at+16*k+octetBytes)
		}
	}
	a.op("ADDQ $256, SI")
	a.op("ADDQ $%d, DI", headBytes+blockOctets*octetBytes)
	a.op("DECQ CX")
	a.op("JNZ block")
	a.op("VZEROUPPER")
	a.op("RET")
}

// encodeF16 narrows n float32 numbers, a multiple of 16, ties to even.
func encodeF16(a *asm, isa string) {
	v, half, step := "Z", "Y", 16
	if isa == "AVX2" {
		v, half, step = "Y", "X", 8
	}
	a.text("dst[i] = fp16 of src[i]", "encodeF16"+isa, 24)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("MOVQ n+16(FP), CX")
	a.label("loop")
	a.op("VMOVUPS (SI), %s0", v)
	a.op("VCVTPS2PH $0, %s0, %s0", v, half)
	a.op("VMOVUPS %s0, (DI)", half)
	a.op("ADDQ $%d, SI", 4*step)
	a.op("ADDQ $%d, DI", 2*step)
	a.op("SUBQ $%d, CX", step)
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// axpy4 emits y[i] = (((y[i] + p0·x0[i]) + p1·x1[i]) + p2·x2[i]) + p3·x3[i].
func axpy4(a *asm, isa string) {
	v, step := "Z", 16
	if isa == "AVX2" {
		v, step = "Y", 8
	}
	a.text("y[i] += Σ p[r]·x[r][i] over four rows, n a multiple of 16", "axpy4"+isa, 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), R8")
	a.op("MOVQ stride+16(FP), AX")
	a.op("SHLQ $2, AX")
	for i := 1; i < 4; i++ {
		a.op("LEAQ (%s)(AX*1), %s", wRegs[i-1], wRegs[i])
	}
	a.op("MOVQ p+24(FP), SI")
	a.op("MOVQ n+32(FP), CX")
	for i := range 4 {
		a.op("VBROADCASTSS %d(SI), %s%d", 4*i, v, 1+i)
	}
	a.op("XORQ AX, AX")
	a.label("loop")
	a.op("VMOVUPS (DI)(AX*1), %s0", v)
	for i := range 4 {
		a.op("VFMADD231PS (%s)(AX*1), %s%d, %s0", wRegs[i], v, 1+i, v)
	}
	a.op("VMOVUPS %s0, (DI)(AX*1)", v)
	a.op("ADDQ $%d, AX", 4*step)
	a.op("SUBQ $%d, CX", step)
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// expBody turns Z0 into e^Z0 with the constants in Z16–Z25: clamp, split off the power of two, a polynomial of degree 6 in the rest. The
// order of the operands of the clamp lets a NaN through.
func expBody(a *asm) {
	a.op("VMAXPS Z0, Z24, Z0")
	a.op("VMINPS Z0, Z25, Z0")
	a.op("VMULPS Z16, Z0, Z1")
	a.op("VRNDSCALEPS $0, Z1, Z1") // k
	a.op("VFNMADD231PS Z17, Z1, Z0")
	a.op("VFNMADD231PS Z18, Z1, Z0") // r
	a.op("VMOVAPS Z19, Z2")
	for c := 20; c <= 23; c++ {
		a.op("VFMADD213PS Z%d, Z0, Z2", c)
	}
	a.op("VFMADD213PS Z26, Z0, Z2")
	a.op("VFMADD213PS Z26, Z0, Z2")
	a.op("VSCALEFPS Z1, Z2, Z0")
}

// loadExp broadcasts the constants of expBody from R10.
func loadExp(a *asm) {
	for i := range 11 {
		a.op("VBROADCASTSS %d(R10), Z%d", 4*i, 16+i)
	}
}

// expBody2 is expBody for AVX2: constants at R10, and the power of two in two halves, so that small results are rounded once.
func expBody2(a *asm) {
	c := func(i int) string { return fmt.Sprintf("VBROADCASTSS %d(R10), Y15", 4*i) }
	a.op(c(8))
	a.op("VMAXPS Y0, Y15, Y0")
	a.op(c(9))
	a.op("VMINPS Y0, Y15, Y0")
	a.op(c(0))
	a.op("VMULPS Y15, Y0, Y1")
	a.op("VROUNDPS $0, Y1, Y1") // k
	a.op(c(1))
	a.op("VFNMADD231PS Y15, Y1, Y0")
	a.op(c(2))
	a.op("VFNMADD231PS Y15, Y1, Y0") // r
	a.op("VBROADCASTSS 12(R10), Y2")
	for _, i := range []int{4, 5, 6, 7, 10, 10} {
		a.op(c(i))
		a.op("VFMADD213PS Y15, Y0, Y2")
	}
	a.op("VCVTPS2DQ Y1, Y1")
	a.op("VPSRAD $1, Y1, Y14")
	a.op("VPSUBD Y14, Y1, Y1")
	a.op("VPCMPEQD Y13, Y13, Y13")
	a.op("VPSRLD $25, Y13, Y13") // 127
	for _, half := range []int{14, 1} {
		a.op("VPADDD Y13, Y%d, Y%d", half, half)
		a.op("VPSLLD $23, Y%d, Y%d", half, half)
		a.op("VMULPS Y%d, Y2, Y2", half)
	}
	a.op("VMOVAPS Y2, Y0")
}

// exponential emits e^Y0 or e^Z0 in place.
func (s simd) exponential(a *asm) {
	if s.isa == "AVX2" {
		expBody2(a)
	} else {
		expBody(a)
	}
}

// expShift emits y[i] = e^(x[i]−m).
func expShift(a *asm, s simd) {
	a.text("y[i] = exp(x[i]-m), n a multiple of 16", "expShift"+s.isa, 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("VBROADCASTSS m+16(FP), %s10", s.v)
	a.op("MOVQ n+24(FP), CX")
	a.op("MOVQ constants+32(FP), R10")
	if s.isa == "AVX512" {
		loadExp(a)
	}
	a.walk(s.lanes, map[string]int{"SI": 4 * s.lanes, "DI": 4 * s.lanes}, func() {
		a.op("VMOVUPS (SI), %s0", s.v)
		a.op("VSUBPS %s10, %s0, %s0", s.v, s.v, s.v)
		s.exponential(a)
		a.op("VMOVUPS %s0, (DI)", s.v)
	})
}

// gelu emits y[i] = x / (1 + e^(−2u)) · z[i] with u = √(2/π)(x + 0.044715x³): the tanh form, times the other branch of the MLP.
func gelu(a *asm, s simd) {
	a.text("y[i] = gelu(x[i])*z[i], n a multiple of 16", "geluMul"+s.isa, 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ z+16(FP), DX")
	a.op("MOVQ n+24(FP), CX")
	a.op("MOVQ constants+32(FP), R10")
	if s.isa == "AVX512" {
		loadExp(a)
	}
	a.op("VBROADCASTSS 40(R10), %s7", s.v) // 1
	a.op("VBROADCASTSS 44(R10), %s8", s.v) // −2√(2/π)
	a.op("VBROADCASTSS 48(R10), %s9", s.v) // −2√(2/π)·0.044715
	a.walk(s.lanes, map[string]int{"SI": 4 * s.lanes, "DX": 4 * s.lanes, "DI": 4 * s.lanes}, func() {
		a.op("VMOVUPS (SI), %s3", s.v)
		a.op("VMULPS %s3, %s3, %s0", s.v, s.v, s.v)
		a.op("VMOVAPS %s8, %s4", s.v, s.v)
		a.op("VFMADD231PS %s9, %s0, %s4", s.v, s.v, s.v)
		a.op("VMULPS %s3, %s4, %s0", s.v, s.v, s.v)
		s.exponential(a)
		a.op("VADDPS %s7, %s0, %s0", s.v, s.v, s.v)
		a.op("VDIVPS %s0, %s3, %s0", s.v, s.v, s.v)
		a.op("VMULPS (DX), %s0, %s0", s.v, s.v)
		a.op("VMOVUPS %s0, (DI)", s.v)
	})
}

// sumStreams reads four quarters of memory at once, as a product of four groups of rows would, and adds them up.
func sumStreams(a *asm) {
	a.text("sum of four streams of n bytes, stride bytes apart; n a multiple of 64", "sumStreamsAVX512", 32)
	a.op("MOVQ p+0(FP), R8")
	a.op("MOVQ stride+8(FP), AX")
	a.op("MOVQ n+16(FP), CX")
	for i := 1; i < 4; i++ {
		a.op("LEAQ (%s)(AX*1), %s", wRegs[i-1], wRegs[i])
	}
	for i := range 4 {
		a.op("VPXORQ Z%d, Z%d, Z%d", i, i, i)
	}
	a.op("XORQ AX, AX")
	a.label("loop")
	for i, r := range wRegs {
		a.op("PREFETCHT0 %d(%s)(AX*1)", prefetch, r)
		a.op("VPADDQ (%s)(AX*1), Z%d, Z%d", r, i, i)
	}
	a.op("ADDQ $64, AX")
	a.op("CMPQ AX, CX")
	a.op("JLT loop")
	for i := 1; i < 4; i++ {
		a.op("VPADDQ Z%d, Z0, Z0", i)
	}
	a.op("VMOVQ X0, AX")
	a.op("MOVQ AX, ret+24(FP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

// pause emits the hint that a loop waits for another core.
func pause(a *asm) {
	a.text("wait a moment", "pause", 0)
	a.op("PAUSE")
	a.op("RET")
}
