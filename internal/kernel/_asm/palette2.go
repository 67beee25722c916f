package main

// palette2 emits the kernels of 4-bit palettes for AVX2, with and without the VNNI instruction that adds to a sum at once.
func palette2(a *asm) {
	gemv4Half(a, "AVX2")
	gemv4Half(a, "AVXVNNI")
	digits2(a)
	gemv4Wide2(a)
}

// gemv4Half multiplies one group of 32 rows with one input, 16 rows at a time through a block. Bytes are looked up, low and high
// ones apart, and interleaved to words: of every row four even or four odd inputs, whose sum with the digits is two dwords.
//
//	Y0–Y7  sums of two vectors of 8 rows: rows 0, 1, 4, 5 and 2, 3, 6, 7 × high and low digits
//	Y8, Y9 low and high bytes of the table     Y10 nibble mask     Y11–Y15 scratch
func gemv4Half(a *asm, isa string) {
	a.text("y[32] = a group of 32 rows times x", "gemv4"+isa, 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ table+16(FP), R10")
	a.op("MOVQ x+24(FP), SI")
	a.op("MOVQ blocks+32(FP), CX")
	bytePlanes(a)
	a.op("VPXOR Y15, Y15, Y15")
	for v := range 4 {
		a.op("VMOVDQU Y15, %d(DI)", 32*v)
	}
	a.label("block")
	for half := range 2 {
		halfBlock(a, isa, half)
	}
	a.op("ADDQ $%d, R8", blockOctets*128)
	a.op("ADDQ $%d, SI", headBytes+blockOctets*octetBytes)
	a.op("DECQ CX")
	a.op("JNZ block")
	a.op("VBROADCASTSS 32(R10), Y15")
	for v := range 4 {
		a.op("VMULPS %d(DI), Y15, Y14", 32*v)
		a.op("VMOVUPS Y14, %d(DI)", 32*v)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

// bytePlanes splits the table's 16 words into low and high bytes, each in both lanes, and makes the nibble mask.
func bytePlanes(a *asm) {
	a.op("VPCMPEQB Y10, Y10, Y10")
	a.op("VPSRLW $8, Y10, Y11") // 0x00ff
	a.op("VPSRLW $4, Y11, Y12")
	a.op("VPACKUSWB Y12, Y12, Y10") // 0x0f
	a.op("VMOVDQU (R10), Y13")
	a.op("VPAND Y11, Y13, Y8")
	a.op("VPSRLW $8, Y13, Y9")
	for r := 8; r <= 9; r++ {
		a.op("VPACKUSWB Y%d, Y%d, Y%d", r, r, r)
		a.op("VPERMQ $0x88, Y%d, Y%d", r, r)
	}
}

// halfBlock adds 16 rows times a block to the totals in y.
func halfBlock(a *asm, isa string, half int) {
	loop := "octet" + digit(half)
	for i := range 8 {
		a.op("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.op("LEAQ %d(SI), BX", headBytes)
	a.op("MOVQ R8, R9")
	a.op("MOVQ $%d, DX", blockOctets)
	a.label(loop)
	a.op("PREFETCHT0 %d(R9)", prefetch+64*half)
	for v := range 2 {
		for odd := range 2 {
			octetVector(a, isa, [3]int{half, v, odd})
		}
	}
	a.op("ADDQ $128, R9")
	a.op("ADDQ $%d, BX", octetBytes)
	a.op("DECQ DX")
	a.op("JNZ %s", loop)
	for v := range 2 {
		at := 4 * v
		for k := range 2 {
			a.op("VPHADDD Y%d, Y%d, Y%d", at+2*k+1, at+2*k, 11+k)
			a.op("VCVTDQ2PS Y%d, Y%d", 11+k, 11+k)
			a.op("VBROADCASTSS %d(SI), Y13", 4*k)
			a.op("VMULPS Y13, Y%d, Y%d", 11+k, 11+k)
		}
		a.op("VADDPS Y12, Y11, Y11")
		a.op("VADDPS %d(DI), Y11, Y11", 64*half+32*v)
		a.op("VMOVUPS Y11, %d(DI)", 64*half+32*v)
	}
}

// octetVector adds 8 rows times four even or odd inputs; at is half, vector, odd.
func octetVector(a *asm, isa string, at [3]int) {
	half, v, odd := at[0], at[1], at[2]
	a.op("VMOVDQU %d(R9), Y11", 64*half+32*v)
	if odd == 1 {
		a.op("VPSRLD $4, Y11, Y11")
	}
	a.op("VPAND Y10, Y11, Y11")
	a.op("VPSHUFB Y11, Y8, Y12")
	a.op("VPSHUFB Y11, Y9, Y13")
	a.op("VPUNPCKLBW Y13, Y12, Y14")
	a.op("VPUNPCKHBW Y13, Y12, Y12")
	for k := range 2 {
		a.op("VPBROADCASTQ %d(BX), Y13", 16*k+8*odd)
		for rows, weights := range []int{14, 12} {
			sum := 4*v + 2*k + rows
			if isa == "AVXVNNI" {
				dpwssd(a, 13, weights, sum)
				continue
			}
			a.op("VPMADDWD Y13, Y%d, Y15", weights)
			a.op("VPADDD Y15, Y%d, Y%d", sum, sum)
		}
	}
}

// dpwssd is VPDPWSSD of 256 bits in the encoding of AVX-VNNI, which the assembler does not have: to += x·y by pairs of words.
func dpwssd(a *asm, x, y, to int) {
	vex := func(r int) int { return r>>3 ^ 1 }
	a.op("BYTE $0xc4; BYTE $0x%02x; BYTE $0x%02x; BYTE $0x52; BYTE $0x%02x // VPDPWSSD Y%d, Y%d, Y%d",
		vex(to)<<7|1<<6|vex(x)<<5|2, (y^15)<<3|1<<2|1, 0xc0|to&7<<3|x&7, x, y, to)
}

// digits2 splits whole blocks of 64 numbers into two signed digits of 11 bits each. Constants as for digits.
func digits2(a *asm) {
	a.text("blocks of digits", "digitsAVX2", 32)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
	a.op("MOVQ constants+24(FP), R10")
	a.op("VPCMPEQD Y7, Y7, Y7")
	a.op("VPSRLD $1, Y7, Y7") // everything but the sign
	a.op("VBROADCASTI128 16(R10), Y6")
	a.label("block")
	a.op("VPAND (SI), Y7, Y0")
	for i := 1; i < 8; i++ {
		a.op("VPAND %d(SI), Y7, Y1", 32*i)
		a.op("VPMAXUD Y1, Y0, Y0")
	}
	a.op("VEXTRACTI128 $1, Y0, X1")
	a.op("VPMAXUD X1, X0, X0")
	inverseScale(a)
	for i := range 8 {
		a.op("VMULPS %d(SI), Y5, Y0", 32*i)
		a.op("VCVTPS2DQ Y0, Y0")
		a.op("VPSLLD $21, Y0, Y1")
		a.op("VPSRAD $21, Y1, Y1")
		a.op("VPSUBD Y1, Y0, Y0")
		a.op("VPSRAD $11, Y0, Y0")
		a.op("VPACKSSDW Y1, Y0, Y0")
		a.op("VPERMQ $0xd8, Y0, Y0")
		a.op("VPSHUFB Y6, Y0, Y0")
		a.op("VMOVDQU Y0, %d(DI)", headBytes+i*octetBytes)
	}
	a.op("ADDQ $256, SI")
	a.op("ADDQ $%d, DI", headBytes+blockOctets*octetBytes)
	a.op("DECQ CX")
	a.op("JNZ block")
	a.op("VZEROUPPER")
	a.op("RET")
}

// inverseScale takes the greatest magnitude, as an integer in one of the lanes of X0, stores a block's scales and broadcasts the
// inverse of the scale to Y5, zero for a block of zeros.
func inverseScale(a *asm) {
	a.op("VPSHUFD $0x4e, X0, X1")
	a.op("VPMAXUD X1, X0, X0")
	a.op("VPSHUFD $0xb1, X0, X1")
	a.op("VPMAXUD X1, X0, X0")
	a.op("VMOVSS (R10), X1")
	a.op("VDIVSS X0, X1, X5") // limit / peak
	a.op("VDIVSS X1, X0, X2") // peak / limit
	a.op("VMOVD X0, AX")
	a.op("CMPL AX, 8(R10)")
	a.op("JCC scaled")
	a.op("VXORPS X5, X5, X5")
	a.op("VXORPS X2, X2, X2")
	a.label("scaled")
	a.op("VBROADCASTSS X5, Y5")
	a.op("VMULSS 4(R10), X2, X3")
	a.op("VMOVSS X3, (DI)")
	a.op("VMOVSS X2, 4(DI)")
}

// gemv4Wide2 multiplies 4 rows with one float64 input in the canonical structure. The upper half of an index vector is one input ahead
// of the lower half; entries 0–7 and 8–15 of the palette are looked up apart.
//
//	Y0–Y7  lanes of four rows     Y8, Y9 palette     Y10 shifts     Y11–Y15 scratch
func gemv4Wide2(a *asm) {
	a.text("y[4] float64 = 4 rows times x", "gemv4WideAVX2", 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ lut+16(FP), R10")
	a.op("MOVQ x+24(FP), SI")
	a.op("MOVQ octets+32(FP), CX")
	a.op("VMOVUPS (R10), Y8")
	a.op("VMOVUPS 32(R10), Y9")
	a.op("MOVL $4, AX")
	a.op("VMOVD AX, X10")
	a.op("VPBROADCASTD X10, X10")
	a.op("VPXOR X11, X11, X11")
	a.op("VINSERTI128 $1, X10, Y11, Y10")
	for i := range 8 {
		a.op("VXORPD Y%d, Y%d, Y%d", i, i, i)
	}
	a.label("octet")
	a.op("VBROADCASTI128 (R8), Y11")
	a.op("VPSRLVD Y10, Y11, Y11")
	for j := 0; j < 8; j += 2 {
		a.op("VPERMPS Y8, Y11, Y12")
		a.op("VPERMPS Y9, Y11, Y13")
		a.op("VPSLLD $28, Y11, Y14")
		a.op("VBLENDVPS Y14, Y13, Y12, Y12")
		if j < 6 {
			a.op("VPSRLD $8, Y11, Y11")
		}
		a.op("VCVTPS2PD X12, Y13")
		a.op("VEXTRACTF128 $1, Y12, X12")
		a.op("VCVTPS2PD X12, Y12")
		a.op("VBROADCASTSD %d(SI), Y14", 8*j)
		a.op("VBROADCASTSD %d(SI), Y15", 8*j+8)
		a.op("VFMADD231PD Y14, Y13, Y%d", j)
		a.op("VFMADD231PD Y15, Y12, Y%d", j+1)
	}
	a.op("ADDQ $128, R8")
	a.op("ADDQ $64, SI")
	a.op("DECQ CX")
	a.op("JNZ octet")
	for _, pair := range laneTree {
		a.op("VADDPD Y%d, Y%d, Y%d", pair[1], pair[0], pair[0])
	}
	a.op("VMOVUPD Y0, (DI)")
	a.op("VZEROUPPER")
	a.op("RET")
}
