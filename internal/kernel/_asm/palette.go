package main

// Rows in lanes: a group of 32 output rows is two vectors of 16 dwords per 8 inputs; dword r holds the indices of row r, input
// k+j in nibble j. See internal/kernel/palette.go and digits.go for the layouts of weights, tables and inputs.

const (
	blockOctets = 8  // inputs of one scale: 64
	octetBytes  = 32 // 8 high and 8 low digits
	headBytes   = 32 // scales of a block
	groupTable  = 48 // integers and scale of a palette
	prefetch    = 4096
	gemmInputs  = 6
)

// palette emits the kernels of 4-bit palettes for AVX-512.
func palette(a *asm) {
	gemv4(a)
	for t := 2; t <= gemmInputs; t++ {
		gemm4(a, t)
	}
	gemv4Wide(a)
}

// gemv4 multiplies two groups of 32 rows with one input, exactly within a block of 64 inputs. Nibble j of a word is the index of
// input j in the lower word of a dword and of input j+4 in the upper one; VPERMW reads five bits of it, so a table is there twice.
// Shifts have one port of the core for themselves and loads have slack, so the upper nibbles come from a load one byte further on.
//
//	Z0–Z7    sums of high and low digits of four vectors     Z12, Z13  tables of two groups
//	Z8–Z11   float32 totals                                  Z16–Z19   indices     Z20, Z21  scratch
//	Z24–Z31  digits of an octet
func gemv4(a *asm) {
	a.text("y[64] = two groups of 32 rows times x", "gemv4VNNI", 56)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ stride+16(FP), R9")
	a.op("ADDQ R8, R9")
	a.op("MOVQ table+24(FP), R10")
	a.op("MOVQ tableStride+32(FP), R11")
	a.op("ADDQ R10, R11")
	a.op("MOVQ x+40(FP), SI")
	a.op("MOVQ blocks+48(FP), CX")
	groups, tables := []string{"R8", "R9"}, []string{"R10", "R11"}
	for g := range 2 {
		a.op("VBROADCASTI64X4 (%s), Z%d", tables[g], 12+g)
	}
	for v := range 4 {
		a.op("VPXORQ Z%d, Z%d, Z%d", 8+v, 8+v, 8+v)
	}
	a.label("block")
	for i := range 8 {
		a.op("VPXORQ Z%d, Z%d, Z%d", i, i, i)
	}
	a.op("LEAQ %d(SI), BX", headBytes)
	a.op("MOVQ $%d, DX", blockOctets)
	a.label("octet")
	for k := range 8 {
		a.op("VPBROADCASTD %d(BX), Z%d", 4*k, 24+k)
	}
	for v := range 4 {
		a.op("VMOVDQU32 %d(%s), Z%d", v%2*64, groups[v/2], 16+v)
		a.op("PREFETCHT0 %d(%s)", prefetch+v%2*64, groups[v/2])
	}
	for j := range 4 {
		for v := range 4 {
			a.op("VPERMW Z%d, Z%d, Z%d", 12+v/2, 16+v, 20+v%2)
			switch j {
			case 0, 2:
				a.op("VPSRLW $4, Z%d, Z%d", 16+v, 16+v)
			case 1:
				a.op("VMOVDQU32 %d(%s), Z%d", v%2*64+1, groups[v/2], 16+v)
			}
			a.op("VPDPWSSD Z%d, Z%d, Z%d", 24+j, 20+v%2, 2*v)
			a.op("VPDPWSSD Z%d, Z%d, Z%d", 28+j, 20+v%2, 2*v+1)
		}
	}
	a.op("ADDQ $128, R8")
	a.op("ADDQ $128, R9")
	a.op("ADDQ $%d, BX", octetBytes)
	a.op("DECQ DX")
	a.op("JNZ octet")
	a.op("VBROADCASTSS (SI), Z24")
	a.op("VBROADCASTSS 4(SI), Z25")
	for v := range 4 {
		scaled(a, 2*v, 24)
		a.op("VADDPS Z%d, Z%d, Z%d", 2*v, 8+v, 8+v)
	}
	a.op("MOVQ BX, SI")
	a.op("DECQ CX")
	a.op("JNZ block")
	for v := range 4 {
		a.op("VMULPS.BCST 32(%s), Z%d, Z%d", tables[v/2], 8+v, 8+v)
		a.op("VMOVUPS Z%d, %d(DI)", 8+v, 64*v)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

// scaled makes of the sums in registers at, at+1 their float32 value in at, with the scales in scales, scales+1.
func scaled(a *asm, at, scales int) {
	for k := range 2 {
		a.op("VCVTDQ2PS Z%d, Z%d", at+k, at+k)
		a.op("VMULPS Z%d, Z%d, Z%d", scales+k, at+k, at+k)
	}
	a.op("VADDPS Z%d, Z%d, Z%d", at+1, at, at)
}

// gemm4 multiplies one group of 32 rows with t inputs: the sums of gemv4, so the same bits. Results of an input are 256 bytes apart.
//
//	Z0–Z23   sums of high and low digits of two vectors × inputs     Z24  table
//	Z25–Z26  indices     Z27–Z28  weights     Z29–Z31  digits and scratch
func gemm4(a *asm, inputs int) {
	a.text("y[t][64], columns 0–31 = one group of 32 rows times t inputs", "gemm4x"+digit(inputs)+"VNNI", 48)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ packed+8(FP), R8")
	a.op("MOVQ table+16(FP), R10")
	a.op("MOVQ x+24(FP), SI")
	a.op("MOVQ xStride+32(FP), R9")
	a.op("MOVQ blocks+40(FP), CX")
	x := []string{"SI", "R11", "R12", "R13", "R15", "AX"}[:inputs]
	for t := 1; t < inputs; t++ {
		a.op("LEAQ (%s)(R9*1), %s", x[t-1], x[t])
	}
	a.op("VBROADCASTI64X4 (R10), Z24")
	a.op("VPXORQ Z29, Z29, Z29")
	for i := range 2 * inputs {
		a.op("VMOVUPS Z29, %d(DI)", 256*(i/2)+64*(i%2))
	}
	a.label("block")
	for i := range 4 * inputs {
		a.op("VPXORQ Z%d, Z%d, Z%d", i, i, i)
	}
	a.op("MOVQ $%d, BX", headBytes)
	a.op("MOVQ $%d, DX", blockOctets)
	a.label("octet")
	for v := range 2 {
		a.op("VMOVDQU32 %d(R8), Z%d", v*64, 25+v)
	}
	for j := range 4 {
		for v := range 2 {
			a.op("VPERMW Z24, Z%d, Z%d", 25+v, 27+v)
			if j < 3 {
				a.op("VPSRLW $4, Z%d, Z%d", 25+v, 25+v)
			}
		}
		for t := range inputs {
			for k := range 2 {
				a.op("VPBROADCASTD %d(%s)(BX*1), Z%d", 16*k+4*j, x[t], 29+k)
				for v := range 2 {
					a.op("VPDPWSSD Z%d, Z%d, Z%d", 29+k, 27+v, 4*t+2*v+k)
				}
			}
		}
	}
	a.op("ADDQ $128, R8")
	a.op("ADDQ $%d, BX", octetBytes)
	a.op("DECQ DX")
	a.op("JNZ octet")
	for t := range inputs {
		a.op("VBROADCASTSS (%s), Z29", x[t])
		a.op("VBROADCASTSS 4(%s), Z30", x[t])
		for v := range 2 {
			scaled(a, 4*t+2*v, 29)
			a.op("VADDPS %d(DI), Z%d, Z%d", 256*t+64*v, 4*t+2*v, 4*t+2*v)
			a.op("VMOVUPS Z%d, %d(DI)", 4*t+2*v, 256*t+64*v)
		}
		a.op("ADDQ BX, %s", x[t])
	}
	a.op("DECQ CX")
	a.op("JNZ block")
	a.op("VBROADCASTSS 32(R10), Z29")
	for i := range 2 * inputs {
		a.op("VMULPS %d(DI), Z29, Z30", 256*(i/2)+64*(i%2))
		a.op("VMOVUPS Z30, %d(DI)", 256*(i/2)+64*(i%2))
	}
	a.op("VZEROUPPER")
	a.op("RET")
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
		for _, pair := range laneTree {
			to, from := 2*pair[0]+h, 2*pair[1]+h
			a.op("VADDPD Z%d, Z%d, Z%d", from, to, to)
		}
		a.op("VMOVUPD Z%d, %d(DI)", h, 64*h)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

// laneTree folds the eight lanes of the canonical structure into the first: the second of a pair is added to the first.
var laneTree = [][2]int{{0, 4}, {2, 6}, {0, 2}, {1, 5}, {3, 7}, {1, 3}, {0, 1}}
