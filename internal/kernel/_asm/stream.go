package main

// stream emits kernels that walk vectors once: digits of the integer kernels, half-precision stores, the mix of four rows,
// exponential and GELU.
func stream(a *asm) {
	digits(a)
	encodeF16(a, "AVX512")
	encodeF16(a, "AVX2")
	axpy4(a, "AVX512")
	axpy4(a, "AVX2")
	expShift(a)
	gelu(a)
	sumStreams(a)
}

// digits splits whole blocks of 128 numbers into three signed bytes each. The constants come from Go, in the order of
// digitConstants: limit, 65536, 256, byte order.
func digits(a *asm) {
	a.text("blocks of digits", "digitsAVX512", 32)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
	a.op("MOVQ constants+24(FP), R10")
	a.op("MOVL $0x7fffffff, AX")
	a.op("VPBROADCASTD AX, Z20")
	a.op("VMOVDQU32 16(R10), X21")
	a.op("VPXORQ Z22, Z22, Z22")
	a.label("block")
	for i := range 8 {
		a.op("VMOVUPS %d(SI), Z%d", 64*i, i)
	}
	a.op("VPANDD Z20, Z0, Z8")
	for i := 1; i < 8; i++ {
		a.op("VPANDD Z20, Z%d, Z9", i)
		a.op("VPMAXUD Z9, Z8, Z8")
	}
	a.op("VEXTRACTF64X4 $1, Z8, Y9")
	a.op("VPMAXUD Y9, Y8, Y8")
	a.op("VEXTRACTF128 $1, Y8, X9")
	a.op("VPMAXUD X9, X8, X8")
	a.op("VPERMILPS $0x4e, X8, X9")
	a.op("VPMAXUD X9, X8, X8")
	a.op("VPERMILPS $0xb1, X8, X9")
	a.op("VPMAXUD X9, X8, X8") // peak in every lane; as integers, so that a NaN is the greatest
	a.op("VMOVSS (R10), X10")
	a.op("VDIVSS X8, X10, X11") // inverse = limit / peak
	a.op("VDIVSS X10, X8, X12") // scale = peak / limit
	a.op("VXORPS X13, X13, X13")
	a.op("VUCOMISS X13, X8")
	a.op("JNE scaled")
	a.op("VXORPS X11, X11, X11") // a block of zeros
	a.label("scaled")
	a.op("VBROADCASTSS X11, Z11")
	a.op("VMULSS 4(R10), X12, X13")
	a.op("VMOVSS X13, 12(DI)")
	a.op("VMULSS 8(R10), X12, X13")
	a.op("VMOVSS X13, 16(DI)")
	for k := range 3 {
		a.op("VPXORQ Z%d, Z%d, Z%d", 16+k, 16+k, 16+k)
	}
	for i := range 8 {
		at := headBytes + 2*i*octetBytes
		a.op("VMULPS Z11, Z%d, Z%d", i, i)
		a.op("VCVTPS2DQ Z%d, Z%d", i, i)
		for k := range 3 { // low, middle, high byte
			if k < 2 {
				a.op("VPSLLD $24, Z%d, Z14", i)
				a.op("VPSRAD $24, Z14, Z14")
				a.op("VPSUBD Z14, Z%d, Z%d", i, i)
				a.op("VPSRAD $8, Z%d, Z%d", i, i)
			} else {
				a.op("VMOVDQA32 Z%d, Z14", i)
			}
			a.op("VPADDD Z14, Z%d, Z%d", 16+k, 16+k)
			a.op("VPMOVDB Z14, X15")
			a.op("VPSHUFB X21, X15, X15")
			off := at + 8*(2-k)
			a.op("VMOVQ X15, %d(DI)", off)
			a.op("VPEXTRQ $1, X15, %d(DI)", off+octetBytes)
		}
	}
	for k, reg := range []int{18, 17, 16} { // high, middle, low
		a.op("VEXTRACTI64X4 $1, Z%d, Y14", reg)
		a.op("VPADDD Y14, Y%d, Y14", reg)
		a.op("VEXTRACTI128 $1, Y14, X15")
		a.op("VPADDD X15, X14, X14")
		a.op("VPSHUFD $0x4e, X14, X15")
		a.op("VPADDD X15, X14, X14")
		a.op("VPSHUFD $0xb1, X14, X15")
		a.op("VPADDD X15, X14, X14")
		a.op("VPSLLD $7, X14, X14")
		a.op("VPSUBD X14, X22, X14")
		a.op("VMOVD X14, %d(DI)", 4*k)
	}
	a.op("ADDQ $512, SI")
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

// expBody turns Z0 into e^Z0 with the constants in Z16–Z25: clamp, split off the power of two, a polynomial of degree 6 in the rest.
func expBody(a *asm) {
	a.op("VMAXPS Z24, Z0, Z0")
	a.op("VMINPS Z25, Z0, Z0")
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

// expShift emits y[i] = e^(x[i]−m).
func expShift(a *asm) {
	a.text("y[i] = exp(x[i]-m), n a multiple of 16", "expShiftAVX512", 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("VBROADCASTSS m+16(FP), Z10")
	a.op("MOVQ n+24(FP), CX")
	a.op("MOVQ constants+32(FP), R10")
	loadExp(a)
	a.label("loop")
	a.op("VMOVUPS (SI), Z0")
	a.op("VSUBPS Z10, Z0, Z0")
	expBody(a)
	a.op("VMOVUPS Z0, (DI)")
	a.op("ADDQ $64, SI")
	a.op("ADDQ $64, DI")
	a.op("SUBQ $16, CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// gelu emits y[i] = x / (1 + e^(−2u)) · z[i] with u = √(2/π)(x + 0.044715x³): the tanh form, times the other branch of the MLP.
func gelu(a *asm) {
	a.text("y[i] = gelu(x[i])*z[i], n a multiple of 16", "geluMulAVX512", 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ z+16(FP), DX")
	a.op("MOVQ n+24(FP), CX")
	a.op("MOVQ constants+32(FP), R10")
	loadExp(a)
	a.op("VBROADCASTSS 44(R10), Z27") // −2√(2/π)
	a.op("VBROADCASTSS 48(R10), Z28") // −2√(2/π)·0.044715
	a.label("loop")
	a.op("VMOVUPS (SI), Z3")
	a.op("VMULPS Z3, Z3, Z0")
	a.op("VMOVAPS Z27, Z4")
	a.op("VFMADD231PS Z28, Z0, Z4")
	a.op("VMULPS Z3, Z4, Z0")
	expBody(a)
	a.op("VADDPS Z26, Z0, Z0")
	a.op("VDIVPS Z0, Z3, Z0")
	a.op("VMULPS (DX), Z0, Z0")
	a.op("VMOVUPS Z0, (DI)")
	for _, r := range []string{"SI", "DX", "DI"} {
		a.op("ADDQ $64, %s", r)
	}
	a.op("SUBQ $16, CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
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
