package main

// axpy emits y[i] += a·x[i] for float32 x and float32 or float64 y.
func axpy(a *asm) {
	for _, k := range []axpyKernel{{false, "AVX512"}, {true, "AVX512"}, {false, "AVX2"}, {true, "AVX2"}} {
		k.emit(a)
	}
}

type axpyKernel struct {
	wide bool // y is float64
	isa  string
}

func (k axpyKernel) emit(a *asm) {
	v, step := "Z", 16
	if k.isa == "AVX2" {
		v, step = "Y", 8
	}
	name, bytes := "axpy32", 4
	if k.wide {
		name, step, bytes = "axpy64", step/2, 8
	}
	a.text("y[i] += p·x[i], n a multiple of 16", name+k.isa, 32)
	a.op("MOVQ y+0(FP), DI")
	a.op("MOVQ x+8(FP), SI")
	a.op("VBROADCASTSS p+16(FP), %s1", v)
	if k.wide {
		a.op("VCVTPS2PD %s1, %s1", map[string]string{"Z": "Y", "Y": "X"}[v], v)
	}
	a.op("MOVQ n+24(FP), CX")
	a.label("loop")
	if k.wide {
		a.op("VCVTPS2PD (SI), %s2", v)
		a.op("VMOVUPD (DI), %s3", v)
		a.op("VFMADD231PD %s1, %s2, %s3", v, v, v)
		a.op("VMOVUPD %s3, (DI)", v)
	} else {
		a.op("VMOVUPS (DI), %s3", v)
		a.op("VFMADD231PS (SI), %s1, %s3", v, v)
		a.op("VMOVUPS %s3, (DI)", v)
	}
	a.op("ADDQ $%d, SI", 4*step)
	a.op("ADDQ $%d, DI", bytes*step)
	a.op("SUBQ $%d, CX", step)
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}
