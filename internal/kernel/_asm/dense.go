package main

import "fmt"

// Registers of a tile: AX loop offset in bytes of float32, CX full blocks left, DX tail elements.
// R8… w rows, R12… x rows.

// dense emits the kernels of dense weights: tiles of dot products and the decoders of 16-bit rows.
func dense(a *asm) {
	cpuid1(a)
	for _, t := range []tile{
		{wide: false, isa: "AVX512", x: 4}, {wide: false, isa: "AVX512", x: 1},
		{wide: true, isa: "AVX512", x: 4}, {wide: true, isa: "AVX512", x: 1},
		{wide: false, isa: "AVX2", x: 2}, {wide: false, isa: "AVX2", x: 1},
		{wide: true, isa: "AVX2", x: 1},
	} {
		t.emit(a)
	}
	for _, d := range []decoder{{"BF16", "AVX512"}, {"F16", "AVX512"}, {"BF16AsF16", "AVX512"}, {"BF16", "AVX2"}, {"F16", "AVX2"}, {"BF16AsF16", "AVX2"}} {
		d.emit(a)
	}
}

// tile is 4 weight rows times x activation rows: y[r·x + t] = Σ w[r][i]·x[t][i].
type tile struct {
	wide bool // float64 sums of the canonical structure; else float32
	isa  string
	x    int
}

func (t tile) name() string {
	kind := "32"
	if t.wide {
		kind = "64"
	}
	return fmt.Sprintf("tile%sx%d%s", kind, t.x, t.isa)
}

// lanes per step of the loop.
func (t tile) step() int {
	switch {
	case t.isa == "AVX512" && !t.wide:
		return 16
	default:
		return 8
	}
}

var wRegs, xRegs = []string{"R8", "R9", "R10", "R11"}, []string{"R12", "R13", "DI", "BX"}

func (t tile) emit(a *asm) {
	a.text("Σ w[r][i]·x[t][i]", t.name(), 48)
	a.op("MOVQ y+0(FP), SI")
	a.op("MOVQ w+8(FP), R8")
	a.op("MOVQ x+16(FP), R12")
	a.op("MOVQ wStride+24(FP), AX")
	a.op("SHLQ $2, AX")
	for i := 1; i < 4; i++ {
		a.op("LEAQ (%s)(AX*1), %s", wRegs[i-1], wRegs[i])
	}
	a.op("MOVQ xStride+32(FP), AX")
	a.op("SHLQ $2, AX")
	for i := 1; i < t.x; i++ {
		a.op("LEAQ (%s)(AX*1), %s", xRegs[i-1], xRegs[i])
	}
	a.op("MOVQ n+40(FP), CX")
	a.op("MOVQ CX, DX")
	a.op("ANDQ $%d, DX", t.step()-1)
	a.op("SHRQ $%d, CX", map[int]int{8: 3, 16: 4}[t.step()])
	a.op("XORQ AX, AX")
	t.zero(a)
	a.op("TESTQ CX, CX")
	a.op("JZ tail")
	a.label("loop")
	t.body(a, false)
	a.op("ADDQ $%d, AX", 4*t.step())
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.label("tail")
	a.op("TESTQ DX, DX")
	a.op("JZ done")
	t.mask(a)
	t.body(a, true)
	a.label("done")
	t.reduce(a)
	a.op("VZEROUPPER")
	a.op("RET")
}

// acc is accumulator register number k of dot (r, c). AVX2 float64 has two.
func (t tile) acc(r, c, k int) string {
	if t.isa == "AVX512" {
		return fmt.Sprintf("Z%d", r*t.x+c)
	}
	if t.wide {
		return fmt.Sprintf("Y%d", 2*r+k)
	}
	return fmt.Sprintf("Y%d", r*t.x+c)
}

func (t tile) accs() int {
	if t.wide && t.isa == "AVX2" {
		return 2
	}
	return 1
}

func (t tile) zero(a *asm) {
	for r := range 4 {
		for c := range t.x {
			for k := range t.accs() {
				reg := t.acc(r, c, k)
				if t.isa == "AVX512" {
					a.op("VPXORQ %s, %s, %s", reg, reg, reg)
				} else {
					a.op("VXORPS %s, %s, %s", reg, reg, reg)
				}
			}
		}
	}
}

// mask prepares the tail: K1 for AVX-512, Y15 (all ones in the first DX lanes) for AVX2.
func (t tile) mask(a *asm) {
	if t.isa == "AVX512" {
		a.op("MOVQ DX, CX")
		a.op("MOVL $1, R15")
		a.op("SHLL CX, R15")
		a.op("DECL R15")
		a.op("KMOVW R15, K1")
		return
	}
	a.op("LEAQ ·tailMask(SB), R15")
	a.op("SHLQ $2, DX")
	a.op("SUBQ DX, R15")
	a.op("VMOVDQU 32(R15), Y15")
}

func (t tile) body(a *asm, tail bool) {
	switch {
	case t.isa == "AVX512" && t.wide:
		t.body512Wide(a, tail)
	case t.isa == "AVX512":
		t.body512(a, tail)
	case t.wide:
		t.body2Wide(a, tail)
	default:
		t.body2(a, tail)
	}
}

func (t tile) body512(a *asm, tail bool) {
	m := ""
	if tail {
		m = ".Z"
	}
	k := map[bool]string{true: "K1, ", false: ""}[tail]
	for r := range 4 {
		a.op("VMOVUPS%s (%s)(AX*1), %sZ%d", m, wRegs[r], k, 16+r)
	}
	for c := range t.x {
		a.op("VMOVUPS%s (%s)(AX*1), %sZ%d", m, xRegs[c], k, 20+c)
		for r := range 4 {
			a.op("VFMADD231PS Z%d, Z%d, %s", 20+c, 16+r, t.acc(r, c, 0))
		}
	}
}

func (t tile) body512Wide(a *asm, tail bool) {
	load := func(ptr string, reg int) {
		if tail {
			a.op("VMOVUPS.Z (%s)(AX*1), K1, Y%d", ptr, reg)
			a.op("VCVTPS2PD Y%d, Z%d", reg, reg)
			return
		}
		a.op("VCVTPS2PD (%s)(AX*1), Z%d", ptr, reg)
	}
	for r := range 4 {
		load(wRegs[r], 16+r)
	}
	for c := range t.x {
		load(xRegs[c], 20+c)
		for r := range 4 {
			a.op("VFMADD231PD Z%d, Z%d, %s", 20+c, 16+r, t.acc(r, c, 0))
		}
	}
}

func (t tile) body2(a *asm, tail bool) {
	load := func(ptr string, reg int) {
		if tail {
			a.op("VMASKMOVPS (%s)(AX*1), Y15, Y%d", ptr, reg)
		} else {
			a.op("VMOVUPS (%s)(AX*1), Y%d", ptr, reg)
		}
	}
	for c := range t.x {
		load(xRegs[c], 8+c)
	}
	for r := range 4 {
		load(wRegs[r], 10)
		for c := range t.x {
			a.op("VFMADD231PS Y%d, Y10, %s", 8+c, t.acc(r, c, 0))
		}
	}
}

func (t tile) body2Wide(a *asm, tail bool) {
	load := func(ptr string, lo, hi int) {
		if tail {
			a.op("VMASKMOVPS (%s)(AX*1), Y15, Y%d", ptr, hi)
			a.op("VCVTPS2PD X%d, Y%d", hi, lo)
			a.op("VEXTRACTF128 $1, Y%d, X%d", hi, hi)
			a.op("VCVTPS2PD X%d, Y%d", hi, hi)
			return
		}
		a.op("VCVTPS2PD (%s)(AX*1), Y%d", ptr, lo)
		a.op("VCVTPS2PD 16(%s)(AX*1), Y%d", ptr, hi)
	}
	load(xRegs[0], 8, 9)
	for r := range 4 {
		load(wRegs[r], 10, 11)
		a.op("VFMADD231PD Y8, Y10, %s", t.acc(r, 0, 0))
		a.op("VFMADD231PD Y9, Y11, %s", t.acc(r, 0, 1))
	}
}

// reduce folds every accumulator along the fixed tree and stores the sums.
func (t tile) reduce(a *asm) {
	if t.isa == "AVX512" && !t.wide && t.x == 4 {
		t.reduceAll(a)
		return
	}
	for r := range 4 {
		for c := range t.x {
			n := r*t.x + c
			if t.wide {
				t.reduceWide(a, r, c, n)
			} else {
				t.reduceNarrow(a, r, c, n)
			}
		}
	}
}

// reduceAll folds 16 accumulators at once: every step adds the halves of two vectors, the same pairs as reduceNarrow does one by one.
// Lane l of the result holds column l of all rows, y[t][r].
func (t tile) reduceAll(a *asm) {
	order := make([]int, 16)
	for i := range order {
		order[i] = i
	}
	for _, step := range []struct {
		low, high string
	}{{"VSHUFF64X2 $0x44,", "VSHUFF64X2 $0xee,"}, {"VSHUFF64X2 $0x88,", "VSHUFF64X2 $0xdd,"}, {"VUNPCKLPD", "VUNPCKHPD"}, {"VSHUFPS $0x88,", "VSHUFPS $0xdd,"}} {
		var next []int
		for i := 0; i < len(order); i += 2 {
			x, y := order[i], order[i+1]
			a.op("%s Z%d, Z%d, Z30", step.low, y, x)
			a.op("%s Z%d, Z%d, Z31", step.high, y, x)
			a.op("VADDPS Z31, Z30, Z%d", x)
			next = append(next, x)
		}
		order = next
	}
	a.op("VMOVUPS Z%d, (SI)", order[0])
}

func (t tile) reduceWide(a *asm, r, c, n int) {
	if t.isa == "AVX512" {
		a.op("VEXTRACTF64X4 $1, Z%d, Y31", n)
		a.op("VADDPD Y31, Y%d, Y31", n)
		a.op("VEXTRACTF64X2 $1, Y31, X30")
		a.op("VADDPD X30, X31, X30")
		a.op("VPERMILPD $1, X30, X31")
		a.op("VADDSD X31, X30, X30")
		a.op("VMOVSD X30, %d(SI)", 8*n)
		return
	}
	a.op("VADDPD %s, %s, Y12", t.acc(r, c, 1), t.acc(r, c, 0))
	a.op("VEXTRACTF128 $1, Y12, X13")
	a.op("VADDPD X13, X12, X12")
	a.op("VPERMILPD $1, X12, X13")
	a.op("VADDSD X13, X12, X12")
	a.op("VMOVSD X12, %d(SI)", 8*n)
}

func (t tile) reduceNarrow(a *asm, r, c, n int) {
	lo, hi := "X12", "X13"
	if t.isa == "AVX512" {
		lo, hi = "X30", "X31"
		a.op("VEXTRACTF64X4 $1, Z%d, Y31", n)
		a.op("VADDPS Y31, Y%d, Y30", n)
		a.op("VEXTRACTF32X4 $1, Y30, X31")
	} else {
		a.op("VMOVAPS %s, Y12", t.acc(r, c, 0))
		a.op("VEXTRACTF128 $1, Y12, X13")
	}
	a.op("VADDPS %s, %s, %s", hi, lo, lo)
	a.op("VPERMILPD $1, %s, %s", lo, hi)
	a.op("VADDPS %s, %s, %s", hi, lo, lo)
	a.op("VPERMILPS $1, %s, %s", lo, hi)
	a.op("VADDSS %s, %s, %s", hi, lo, lo)
	a.op("VMOVSS %s, %d(SI)", lo, 4*n)
}

// decoder widens n 16-bit numbers to float32; n is a multiple of the step, the caller does the rest.
type decoder struct{ format, isa string }

func (d decoder) emit(a *asm) {
	name := "decode" + d.format + d.isa
	v, step := "Z", 16
	if d.isa == "AVX2" {
		v, step = "Y", 8
	}
	half := map[string]string{"Z": "Y", "Y": "X"}[v]
	a.text("dst[i] = widened src[i]", name, 24)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("MOVQ n+16(FP), CX")
	a.label("loop")
	switch d.format {
	case "F16":
		a.op("VCVTPH2PS (SI), %s0", v)
	default:
		a.op("VPMOVZXWD (SI), %s0", v)
		a.op("VPSLLD $16, %s0, %s0", v, v)
	}
	if d.format == "BF16AsF16" {
		a.op("VCVTPS2PH $0, %s0, %s1", v, half)
		a.op("VCVTPH2PS %s1, %s0", half, v)
	}
	a.op("VMOVUPS %s0, (DI)", v)
	a.op("ADDQ $%d, SI", 2*step)
	a.op("ADDQ $%d, DI", 4*step)
	a.op("SUBQ $%d, CX", step)
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// cpuid1 emits the one CPUID query that x/sys/cpu does not answer.
func cpuid1(a *asm) {
	a.text("ECX of CPUID leaf 1", "cpuid1", 4)
	a.op("MOVL $1, AX")
	a.op("XORL CX, CX")
	a.op("CPUID")
	a.op("MOVL CX, ret+0(FP)")
	a.op("RET")
}
