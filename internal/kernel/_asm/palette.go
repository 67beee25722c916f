package main

// Rows in lanes: a group of 32 output rows is two vectors of 16 dwords per 8 inputs; dword r holds the indices of row r, input
// k+j in nibble j. See internal/kernel/palette.go for the layouts of weights, tables and inputs.

const (
	blockOctets = 16 // inputs of one scale: 128
	octetBytes  = 24 // six dwords of input digits
	headBytes   = 32 // sums and scales of a block
	groupTable  = 48 // high bytes, low bytes, scale of a palette
	prefetch    = 2048
)

// palette emits the kernels of 4-bit palettes.
func palette(a *asm) {
	gemv4(a)
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
