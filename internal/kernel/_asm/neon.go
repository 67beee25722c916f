package main

// neon emits the kernels of arm64. The assembler lacks products that widen and conversions of vectors; those are encoded here.
func neon(a *asm) {
	gemv4NEON(a)
	for _, d := range []string{"F16", "BF16", "BF16AsF16"} {
		decodeNEON(a, d)
	}
	encodeNEON(a)
	a.text("wait a moment", "pause", 0)
	a.op("YIELD")
	a.op("RET")
}

// vector is an instruction of three vector registers, to = x op y.
func (a *asm) vector(name string, code uint32, to, x, y int) {
	a.op("WORD $0x%08x // %s V%d, V%d, V%d", code|uint32(y)<<16|uint32(x)<<5|uint32(to), name, to, x, y)
}

// convert is an instruction of two vector registers.
func (a *asm) convert(name string, code uint32, to, x int) {
	a.op("WORD $0x%08x // %s V%d, V%d", code|uint32(x)<<5|uint32(to), name, to, x)
}

// gemv4NEON multiplies one group of 32 rows with one input, 8 rows at a time through a block. Bytes are looked up, low and high ones
// apart, and interleaved to words: of every row four even or four odd inputs, which meet their digits in the four parts of a sum.
//
//	V0–V15   sums of 8 rows × high and low digits     V16, V17  low and high bytes of the table     V18  nibble mask
//	V20–V23  high digits even, odd, low digits even, odd     V24–V31  scratch
func gemv4NEON(a *asm) {
	a.text("y[32] = a group of 32 rows times x", "gemv4NEON", 40)
	a.op("MOVD y+0(FP), R0")
	a.op("MOVD packed+8(FP), R1")
	a.op("MOVD table+16(FP), R2")
	a.op("MOVD x+24(FP), R3")
	a.op("MOVD blocks+32(FP), R4")
	a.op("VLD2 (R2), [V16.B16, V17.B16]")
	a.op("VMOVI $15, V18.B16")
	a.op("VEOR V0.B16, V0.B16, V0.B16")
	a.op("MOVD R0, R5")
	for range 8 {
		a.op("VST1.P [V0.S4], 16(R5)")
	}
	a.label("block")
	a.op("MOVD R0, R5")
	a.op("MOVD R1, R6")
	a.op("MOVD $4, R7")
	a.label("rows")
	for i := range 16 {
		a.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	a.op("MOVD R6, R9")
	a.op("ADD $%d, R3, R10", headBytes)
	a.op("MOVD $%d, R8", blockOctets)
	a.label("octet")
	for k := range 4 {
		a.op("VLD1R.P 8(R10), [V%d.D2]", 20+k)
	}
	a.op("VLD1 (R9), [V24.B16, V25.B16]")
	a.op("ADD $128, R9")
	for v := range 2 {
		octetNEON(a, v)
	}
	a.op("SUBS $1, R8")
	a.op("BNE octet")
	a.op("MOVD R3, R11")
	for k := range 2 {
		a.op("VLD1R.P 4(R11), [V%d.S4]", 20+k)
	}
	for v := range 2 {
		totalNEON(a, v)
	}
	a.op("ADD $32, R6")
	a.op("SUBS $1, R7")
	a.op("BNE rows")
	a.op("ADD $%d, R1", blockOctets*128)
	a.op("ADD $%d, R3", headBytes+blockOctets*octetBytes)
	a.op("SUBS $1, R4")
	a.op("BNE block")
	a.op("ADD $32, R2, R11")
	a.op("VLD1R (R11), [V20.S4]")
	for range 8 {
		a.op("VLD1 (R0), [V0.S4]")
		a.vector("FMUL.4S", 0x6e20dc00, 0, 0, 20)
		a.op("VST1.P [V0.S4], 16(R0)")
	}
	a.op("RET")
}

// sumNEON is the register of row r of vector v, for high digits (k = 0) or low ones.
func sumNEON(v, k, r int) int { return 8*v + 4*k + r }

// octetNEON adds four rows times eight inputs.
func octetNEON(a *asm, v int) {
	a.op("VAND V18.B16, V%d.B16, V26.B16", 24+v)
	a.op("VUSHR $4, V%d.B16, V27.B16", 24+v)
	for odd := range 2 {
		a.op("VTBL V%d.B16, [V16.B16], V28.B16", 26+odd)
		a.op("VTBL V%d.B16, [V17.B16], V29.B16", 26+odd)
		a.op("VZIP1 V29.B16, V28.B16, V30.B16")
		a.op("VZIP2 V29.B16, V28.B16, V31.B16")
		for k := range 2 {
			for r := range 4 {
				if r%2 == 0 {
					a.vector("SMLAL.4S", 0x0e608000, sumNEON(v, k, r), 30+r/2, 20+2*k+odd)
				} else {
					a.vector("SMLAL2.4S", 0x4e608000, sumNEON(v, k, r), 30+r/2, 20+2*k+odd)
				}
			}
		}
	}
}

// totalNEON adds a block's sums of four rows to the totals at R5.
func totalNEON(a *asm, v int) {
	for k := range 2 {
		for half := range 2 {
			a.op("VADDP V%d.S4, V%d.S4, V%d.S4", sumNEON(v, k, 2*half+1), sumNEON(v, k, 2*half), 26+half)
		}
		a.op("VADDP V27.S4, V26.S4, V%d.S4", 28+k)
		a.convert("SCVTF.4S", 0x4e21d800, 28+k, 28+k)
		a.vector("FMUL.4S", 0x6e20dc00, 28+k, 28+k, 20+k)
	}
	a.vector("FADD.4S", 0x4e20d400, 28, 28, 29)
	a.op("VLD1 (R5), [V26.S4]")
	a.vector("FADD.4S", 0x4e20d400, 28, 26, 28)
	a.op("VST1.P [V28.S4], 16(R5)")
}

// decodeNEON widens n 16-bit numbers, a multiple of 16.
func decodeNEON(a *asm, format string) {
	a.text("dst[i] = widened src[i]", "decode"+format+"NEON", 24)
	a.op("MOVD dst+0(FP), R0")
	a.op("MOVD src+8(FP), R1")
	a.op("MOVD n+16(FP), R2")
	a.label("loop")
	a.op("VLD1.P 32(R1), [V0.H8, V1.H8]")
	for i := range 4 {
		to, from, upper := 2+i, i/2, uint32(i%2)<<30
		if format == "F16" {
			a.convert("FCVTL", 0x0e217800|upper, to, from)
			continue
		}
		a.convert("SHLL $16", 0x2e613800|upper, to, from)
		if format == "BF16AsF16" {
			a.convert("FCVTN", 0x0e216800, to, to)
			a.convert("FCVTL", 0x0e217800, to, to)
		}
	}
	a.op("VST1.P [V2.S4, V3.S4, V4.S4, V5.S4], 64(R0)")
	a.op("SUBS $16, R2")
	a.op("BNE loop")
	a.op("RET")
}

// encodeNEON narrows n float32 numbers to fp16, a multiple of 16.
func encodeNEON(a *asm) {
	a.text("dst[i] = fp16 of src[i]", "encodeF16NEON", 24)
	a.op("MOVD dst+0(FP), R0")
	a.op("MOVD src+8(FP), R1")
	a.op("MOVD n+16(FP), R2")
	a.label("loop")
	a.op("VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]")
	for i := range 4 {
		a.convert("FCVTN", 0x0e216800|uint32(i%2)<<30, 4+i/2, i)
	}
	a.op("VST1.P [V4.H8, V5.H8], 32(R0)")
	a.op("SUBS $16, R2")
	a.op("BNE loop")
	a.op("RET")
}
