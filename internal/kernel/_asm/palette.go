package main

// Rows in lanes: a group of 32 output rows is two vectors of 16 dwords per 8 inputs; dword r holds the indices of row r, input
// k+j in nibble j. See internal/kernel/palette.go for the layouts of weights, tables and inputs.

const (
	blockOctets = 16 // inputs of one scale: 128
	octetBytes  = 24 // six dwords of input digits
	headBytes   = 32 // sums and scales of a block
	groupTable  = 48 // high bytes, low bytes, scale of a palette
	prefetch    = 4096
)

// palette emits the kernels of 4-bit palettes.
func palette(a *asm) {
	gemv4(a)
	gemm4(a)
	gemv4Wide(a)
}

// gemv4 multiplies two groups of 32 rows with one input of 24-bit digits, exactly within a block of 128 inputs.
//
//	Z0–Z11   sums A, B, C of four vectors      Z16–Z19  tables: high and low bytes of two groups
//	Z12–Z15  float32 totals                    Z20      nibble mask   Z21–Z26 input digits   Z27–Z30 scratch
func gemv4(a *asm) {
	a.text("y[64] = two groups of 32 rows times x", "gemv4VNNI", 48)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ stride+16(FP), R9")
	a.op("ADDQ R8, R9")
	a.op("MOVQ tables+24(FP), R10")
	a.op("MOVQ x+32(FP), SI")
	a.op("MOVQ blocks+40(FP), CX")
	for g := range 2 {
		a.op("VBROADCASTI32X4 %d(R10), Z%d", g*groupTable, 16+2*g)
		a.op("VBROADCASTI32X4 %d(R10), Z%d", g*groupTable+16, 17+2*g)
	}
	a.op("MOVL $0x0f0f0f0f, AX")
	a.op("VPBROADCASTD AX, Z20")
	for v := range 4 {
		a.op("VPXORQ Z%d, Z%d, Z%d", 12+v, 12+v, 12+v)
	}
	a.label("block")
	for v := range 4 {
		for k := range 3 {
			a.op("VPBROADCASTD %d(SI), Z%d", 4*k, 3*v+k)
		}
	}
	a.op("LEAQ %d(SI), BX", headBytes)
	a.op("MOVQ $%d, DX", blockOctets)
	a.label("octet")
	for k := range 6 {
		a.op("VPBROADCASTD %d(BX), Z%d", 4*k, 21+k)
	}
	for v := range 4 {
		gemv4Vector(a, v)
	}
	a.op("ADDQ $128, R8")
	a.op("ADDQ $128, R9")
	a.op("ADDQ $%d, BX", octetBytes)
	a.op("DECQ DX")
	a.op("JNZ octet")
	a.op("VBROADCASTSS 12(SI), Z21")
	a.op("VBROADCASTSS 16(SI), Z22")
	for v := range 4 {
		sumA, sumB, sumC := 3*v, 3*v+1, 3*v+2
		a.op("VPSLLD $8, Z%d, Z%d", sumA, sumA)
		a.op("VPADDD Z%d, Z%d, Z%d", sumB, sumA, sumA)
		a.op("VCVTDQ2PS Z%d, Z%d", sumA, sumA)
		a.op("VCVTDQ2PS Z%d, Z%d", sumC, sumC)
		a.op("VMULPS Z21, Z%d, Z%d", sumA, sumA)
		a.op("VMULPS Z22, Z%d, Z%d", sumC, sumC)
		a.op("VADDPS Z%d, Z%d, Z%d", sumC, sumA, sumA)
		a.op("VADDPS Z%d, Z%d, Z%d", sumA, 12+v, 12+v)
	}
	a.op("MOVQ BX, SI")
	a.op("DECQ CX")
	a.op("JNZ block")
	for v := range 4 {
		a.op("VMULPS.BCST %d(R10), Z%d, Z%d", v/2*groupTable+32, 12+v, 12+v)
		a.op("VMOVUPS Z%d, %d(DI)", 12+v, 64*v)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

// gemv4Vector adds 16 rows × 8 inputs: even inputs are the low nibbles, odd ones the high nibbles.
func gemv4Vector(a *asm, v int) {
	ptr, high, low := []string{"R8", "R9"}[v/2], 16+v/2*2, 17+v/2*2
	sumA, sumB, sumC := 3*v, 3*v+1, 3*v+2
	a.op("VMOVDQU32 %d(%s), Z27", v%2*64, ptr)
	if v%2 == 0 {
		a.op("PREFETCHT0 %d(%s)", prefetch, ptr)
		a.op("PREFETCHT0 %d(%s)", prefetch+64, ptr)
	}
	a.op("VPSRLD $4, Z27, Z28")
	a.op("VPANDD Z20, Z27, Z27")
	a.op("VPANDD Z20, Z28, Z28")
	for odd, index := range []int{27, 28} {
		h, m, l := 21+odd, 23+odd, 25+odd
		a.op("VPSHUFB Z%d, Z%d, Z29", index, high)
		a.op("VPSHUFB Z%d, Z%d, Z30", index, low)
		a.op("VPDPBUSD Z%d, Z29, Z%d", h, sumA)
		a.op("VPDPBUSD Z%d, Z29, Z%d", m, sumB)
		a.op("VPDPBUSD Z%d, Z29, Z%d", l, sumC)
		a.op("VPDPBUSD Z%d, Z30, Z%d", h, sumB)
		a.op("VPDPBUSD Z%d, Z30, Z%d", m, sumC)
	}
}

// gemm4 multiplies one group of 32 rows with four inputs: the sums of gemv4, so the same bits. Results of an input are 256 bytes
// apart.
//
//	Z0–Z23   sums A, B, C of two vectors × four inputs     Z24, Z25  tables   Z26  mask   Z27–Z31 scratch
func gemm4(a *asm) {
	a.text("y[4][64], columns 0–31 = one group of 32 rows times four inputs", "gemm4VNNI", 48)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ tables+16(FP), R10")
	a.op("MOVQ x+24(FP), SI")
	a.op("MOVQ xStride+32(FP), R9")
	a.op("MOVQ blocks+40(FP), CX")
	inputs := []string{"SI", "R11", "R12", "R13"}
	for t := 1; t < 4; t++ {
		a.op("LEAQ (%s)(R9*1), %s", inputs[t-1], inputs[t])
	}
	a.op("VBROADCASTI32X4 (R10), Z24")
	a.op("VBROADCASTI32X4 16(R10), Z25")
	a.op("MOVL $0x0f0f0f0f, AX")
	a.op("VPBROADCASTD AX, Z26")
	a.op("VPXORQ Z27, Z27, Z27")
	for i := range 8 {
		a.op("VMOVUPS Z27, %d(DI)", 256*(i/2)+64*(i%2))
	}
	a.label("block")
	for t := range 4 {
		for v := range 2 {
			for k := range 3 {
				a.op("VPBROADCASTD %d(%s), Z%d", 4*k, inputs[t], 6*t+3*v+k)
			}
		}
	}
	a.op("MOVQ $%d, BX", headBytes)
	a.op("MOVQ $%d, DX", blockOctets)
	a.label("octet")
	for v := range 2 {
		gemm4Vector(a, v, inputs)
	}
	a.op("ADDQ $128, R8")
	a.op("ADDQ $%d, BX", octetBytes)
	a.op("DECQ DX")
	a.op("JNZ octet")
	for t := range 4 {
		a.op("VBROADCASTSS 12(%s), Z27", inputs[t])
		a.op("VBROADCASTSS 16(%s), Z28", inputs[t])
		for v := range 2 {
			sumA, sumB, sumC := 6*t+3*v, 6*t+3*v+1, 6*t+3*v+2
			a.op("VPSLLD $8, Z%d, Z%d", sumA, sumA)
			a.op("VPADDD Z%d, Z%d, Z%d", sumB, sumA, sumA)
			a.op("VCVTDQ2PS Z%d, Z%d", sumA, sumA)
			a.op("VCVTDQ2PS Z%d, Z%d", sumC, sumC)
			a.op("VMULPS Z27, Z%d, Z%d", sumA, sumA)
			a.op("VMULPS Z28, Z%d, Z%d", sumC, sumC)
			a.op("VADDPS Z%d, Z%d, Z%d", sumC, sumA, sumA)
			a.op("VADDPS %d(DI), Z%d, Z%d", 256*t+64*v, sumA, sumA)
			a.op("VMOVUPS Z%d, %d(DI)", sumA, 256*t+64*v)
		}
		a.op("ADDQ BX, %s", inputs[t])
	}
	a.op("DECQ CX")
	a.op("JNZ block")
	a.op("VBROADCASTSS 32(R10), Z27")
	for i := range 8 {
		a.op("VMULPS %d(DI), Z27, Z28", 256*(i/2)+64*(i%2))
		a.op("VMOVUPS Z28, %d(DI)", 256*(i/2)+64*(i%2))
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

func gemm4Vector(a *asm, v int, inputs []string) {
	a.op("VMOVDQU32 %d(R8), Z27", v*64)
	a.op("VPSRLD $4, Z27, Z28")
	a.op("VPANDD Z26, Z27, Z27")
	a.op("VPANDD Z26, Z28, Z28")
	for odd, index := range []int{27, 28} {
		a.op("VPSHUFB Z%d, Z24, Z29", index)
		a.op("VPSHUFB Z%d, Z25, Z30", index)
		for t, in := range inputs {
			sumA, sumB, sumC := 6*t+3*v, 6*t+3*v+1, 6*t+3*v+2
			h, m, l := 4*odd, 8+4*odd, 16+4*odd
			a.op("VPDPBUSD.BCST %d(%s)(BX*1), Z29, Z%d", h, in, sumA)
			a.op("VPDPBUSD.BCST %d(%s)(BX*1), Z29, Z%d", m, in, sumB)
			a.op("VPDPBUSD.BCST %d(%s)(BX*1), Z29, Z%d", l, in, sumC)
			a.op("VPDPBUSD.BCST %d(%s)(BX*1), Z30, Z%d", h, in, sumB)
			a.op("VPDPBUSD.BCST %d(%s)(BX*1), Z30, Z%d", m, in, sumC)
		}
	}
}

// gemv4Wide multiplies 16 rows with one float64 input in the canonical structure: lane j of a row's sum takes the inputs of nibble j.
//
//	Z0–Z15  lane j of rows 0–7 in Z(2j), of rows 8–15 in Z(2j+1)     Z16  palette   Z17  indices   Z18–Z19 weights
func gemv4Wide(a *asm) {
	a.text("y[16] float64 = 16 rows times x", "gemv4WideAVX512", 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ lut+16(FP), R10")
	a.op("MOVQ x+24(FP), SI")
	a.op("MOVQ octets+32(FP), CX")
	a.op("VMOVUPS (R10), Z16")
	for i := range 16 {
		a.op("VPXORQ Z%d, Z%d, Z%d", i, i, i)
	}
	a.label("octet")
	a.op("VMOVDQU32 (R8), Z17")
	a.op("PREFETCHT0 %d(R8)", prefetch)
	for j := range 8 {
		a.op("VPERMPS Z16, Z17, Z18")
		if j < 7 {
			a.op("VPSRLD $4, Z17, Z17")
		}
		a.op("VEXTRACTF64X4 $1, Z18, Y19")
		a.op("VCVTPS2PD Y18, Z18")
		a.op("VCVTPS2PD Y19, Z19")
		a.op("VFMADD231PD.BCST %d(SI), Z18, Z%d", 8*j, 2*j)
		a.op("VFMADD231PD.BCST %d(SI), Z19, Z%d", 8*j, 2*j+1)
	}
	a.op("ADDQ $128, R8")
	a.op("ADDQ $64, SI")
	a.op("DECQ CX")
	a.op("JNZ octet")
	for h := range 2 {
		for _, pair := range [][2]int{{0, 4}, {2, 6}, {0, 2}, {1, 5}, {3, 7}, {1, 3}, {0, 1}} {
			to, from := 2*pair[0]+h, 2*pair[1]+h
			a.op("VADDPD Z%d, Z%d, Z%d", from, to, to)
		}
		a.op("VMOVUPD Z%d, %d(DI)", h, 64*h)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}
