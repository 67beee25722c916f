package main

// simd is an instruction set: its register prefix, its lanes of 32 bits, and the registers of half the size.
type simd struct {
	isa, v, half string
	lanes        int
}

var both = []simd{{"AVX512", "Z", "Y", 16}, {"AVX2", "Y", "X", 8}}

// vector emits kernels over vectors: norms, softmax and conversions of bytes.
func vector(a *asm) {
	for _, s := range both {
		dotLanes(a, s)
		sumLanes(a, s)
		mulGain(a, s)
		divide(a, s)
		maxOf(a, s)
		decodeI8(a, s)
	}
	softCap(a)
}

// walk emits a loop that advances pointers by the bytes given and counts CX down by n.
func (a *asm) walk(n int, pointers map[string]int, body func()) {
	a.label("loop")
	body()
	for _, r := range []string{"SI", "DX", "DI", "BX"} {
		if step := pointers[r]; step > 0 {
			a.op("ADDQ $%d, %s", step, r)
		}
	}
	a.op("SUBQ $%d, CX", n)
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// dotLanes adds eight products at a time to the lanes of the canonical structure.
func dotLanes(a *asm, s simd) {
	a.text("lanes[i mod 8] += x[i]·y[i], n a multiple of 8", "dotLanes"+s.isa, 32)
	a.op("MOVQ lanes+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ y+16(FP), DX")
	a.op("MOVQ n+24(FP), CX")
	a.loadLanes(s)
	a.label("loop")
	for i := range 16 / s.lanes {
		a.op("VCVTPS2PD %d(SI), %s2", 16*i, s.v)
		a.op("VCVTPS2PD %d(DX), %s3", 16*i, s.v)
		a.op("VFMADD231PD %s2, %s3, %s%d", s.v, s.v, s.v, i)
	}
	a.op("ADDQ $32, SI")
	a.op("ADDQ $32, DX")
	a.storeLanes(s)
}

// sumLanes adds eight numbers at a time to the lanes of the canonical structure.
func sumLanes(a *asm, s simd) {
	a.text("lanes[i mod 8] += x[i], n a multiple of 8", "sumLanes"+s.isa, 24)
	a.op("MOVQ lanes+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ n+16(FP), CX")
	a.loadLanes(s)
	a.label("loop")
	for i := range 16 / s.lanes {
		a.op("VCVTPS2PD %d(SI), %s2", 16*i, s.v)
		a.op("VADDPD %s2, %s%d, %s%d", s.v, s.v, i, s.v, i)
	}
	a.op("ADDQ $32, SI")
	a.storeLanes(s)
}

func (a *asm) loadLanes(s simd) {
	for i := range 16 / s.lanes {
		a.op("VMOVUPD %d(DI), %s%d", 32*i, s.v, i)
	}
}

// storeLanes ends the loop and stores the lanes.
func (a *asm) storeLanes(s simd) {
	a.op("SUBQ $8, CX")
	a.op("JNZ loop")
	for i := range 16 / s.lanes {
		a.op("VMOVUPD %s%d, %d(DI)", s.v, i, 32*i)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

func mulGain(a *asm, s simd) {
	a.text("y[i] = (x[i]·r)·gain[i], n a multiple of 16", "mulGain"+s.isa, 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ gain+16(FP), DX")
	a.op("VBROADCASTSS r+24(FP), %s1", s.v)
	a.op("MOVQ n+32(FP), CX")
	a.walk(s.lanes, map[string]int{"SI": 4 * s.lanes, "DX": 4 * s.lanes, "DI": 4 * s.lanes}, func() {
		a.op("VMULPS (SI), %s1, %s0", s.v, s.v)
		a.op("VMULPS (DX), %s0, %s0", s.v, s.v)
		a.op("VMOVUPS %s0, (DI)", s.v)
	})
}

func divide(a *asm, s simd) {
	a.text("y[i] = x[i]/c, n a multiple of 16", "divide"+s.isa, 32)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("VBROADCASTSS c+16(FP), %s1", s.v)
	a.op("MOVQ n+24(FP), CX")
	a.walk(s.lanes, map[string]int{"SI": 4 * s.lanes, "DI": 4 * s.lanes}, func() {
		a.op("VMOVUPS (SI), %s0", s.v)
		a.op("VDIVPS %s1, %s0, %s0", s.v, s.v, s.v)
		a.op("VMOVUPS %s0, (DI)", s.v)
	})
}

func maxOf(a *asm, s simd) {
	a.text("y[k] = the greatest of x[i], i mod 16 = k; n a multiple of 16", "maxOf"+s.isa, 24)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ n+16(FP), CX")
	for i := range 16 / s.lanes {
		a.op("VMOVUPS %d(SI), %s%d", 4*s.lanes*i, s.v, i)
	}
	a.label("loop")
	for i := range 16 / s.lanes {
		a.op("VMAXPS %d(SI), %s%d, %s%d", 4*s.lanes*i, s.v, i, s.v, i)
	}
	a.op("ADDQ $64, SI")
	a.op("SUBQ $16, CX")
	a.op("JNZ loop")
	for i := range 16 / s.lanes {
		a.op("VMOVUPS %s%d, %d(DI)", s.v, i, 4*s.lanes*i)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

func decodeI8(a *asm, s simd) {
	a.text("dst[i] = scale·src[i], n a multiple of 16", "decodeI8"+s.isa, 32)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("VBROADCASTSS scale+16(FP), %s1", s.v)
	a.op("MOVQ n+24(FP), CX")
	a.walk(s.lanes, map[string]int{"SI": s.lanes, "DI": 4 * s.lanes}, func() {
		a.op("VPMOVSXBD (SI), %s0", s.v)
		a.op("VCVTDQ2PS %s0, %s0", s.v, s.v)
		a.op("VMULPS %s1, %s0, %s0", s.v, s.v, s.v)
		a.op("VMOVUPS %s0, (DI)", s.v)
	})
}

// softCap emits y[i] = tanh(x[i]/limit)·limit. With a = |x/limit|, tanh a is (1−e)/(1+e) with e = exp(−2a), and near zero, where 1−e
// cancels, an odd polynomial. Constants of expBody, then −2, the border, and the coefficients of the polynomial from a¹¹ down to a³.
func softCap(a *asm) {
	a.text("y[i] = tanh(x[i]/limit)·limit, n a multiple of 16", "softCapAVX512", 40)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("VBROADCASTSS limit+16(FP), Z10")
	a.op("MOVQ n+24(FP), CX")
	a.op("MOVQ constants+32(FP), R10")
	loadExp(a)
	for i := range 7 {
		a.op("VBROADCASTSS %d(R10), Z%d", 4*(13+i), []int{27, 28, 29, 30, 31, 14, 15}[i])
	}
	a.op("MOVL $0x7fffffff, AX")
	a.op("VPBROADCASTD AX, Z11")
	a.walk(16, map[string]int{"SI": 64, "DI": 64}, func() {
		a.op("VMOVUPS (SI), Z3")
		a.op("VDIVPS Z10, Z3, Z3")
		a.op("VPANDD Z11, Z3, Z4") // a
		a.op("VMULPS Z27, Z4, Z0")
		expBody(a)
		a.op("VSUBPS Z0, Z26, Z5")
		a.op("VADDPS Z26, Z0, Z0")
		a.op("VDIVPS Z0, Z5, Z5")
		a.op("VMULPS Z4, Z4, Z6") // a²
		a.op("VMOVAPS Z29, Z7")
		for _, c := range []int{30, 31, 14, 15} {
			a.op("VFMADD213PS Z%d, Z6, Z7", c)
		}
		a.op("VMULPS Z6, Z7, Z7")
		a.op("VFMADD213PS Z4, Z4, Z7") // a + a·a²·P(a²)
		a.op("VCMPPS $1, Z28, Z4, K1")
		a.op("VMOVAPS Z7, K1, Z5")
		a.op("VPANDND Z3, Z11, Z3") // the sign
		a.op("VPORD Z3, Z5, Z5")
		a.op("VMULPS Z10, Z5, Z5")
		a.op("VMOVUPS Z5, (DI)")
	})
}
