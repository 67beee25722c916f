//go:build amd64 && !purego

package kernel

// Lengths are multiples of 16, of 8 for the sums in lanes.

func dotLanesFast(l *Lanes, x, y []float32) bool {
	switch active.dense() {
	case avx512:
		dotLanesAVX512(&l[0], &x[0], &y[0], len(x))
	case avx2:
		dotLanesAVX2(&l[0], &x[0], &y[0], len(x))
	}
	return active != generic
}

func sumLanesFast(l *Lanes, x []float32) bool {
	switch active.dense() {
	case avx512:
		sumLanesAVX512(&l[0], &x[0], len(x))
	case avx2:
		sumLanesAVX2(&l[0], &x[0], len(x))
	}
	return active != generic
}

func mulGainFast(y, x, gain []float32, r float32) bool {
	switch active.dense() {
	case avx512:
		mulGainAVX512(&y[0], &x[0], &gain[0], r, len(x))
	case avx2:
		mulGainAVX2(&y[0], &x[0], &gain[0], r, len(x))
	}
	return active != generic
}

func divideFast(y, x []float32, c float32) bool {
	switch active.dense() {
	case avx512:
		divideAVX512(&y[0], &x[0], c, len(x))
	case avx2:
		divideAVX2(&y[0], &x[0], c, len(x))
	}
	return active != generic
}

func maxOfFast(y *[16]float32, x []float32) bool {
	switch active.dense() {
	case avx512:
		maxOfAVX512(&y[0], &x[0], len(x))
	case avx2:
		maxOfAVX2(&y[0], &x[0], len(x))
	}
	return active != generic
}

func decodeI8Fast(dst []float32, src []byte, scale float32) bool {
	switch active.dense() {
	case avx512:
		decodeI8AVX512(&dst[0], &src[0], scale, len(dst))
	case avx2:
		decodeI8AVX2(&dst[0], &src[0], scale, len(dst))
	}
	return active != generic
}

func softCapFast(y, x []float32, limit float32) bool {
	if active != avx512 {
		return false
	}
	softCapAVX512(&y[0], &x[0], limit, len(x), &expConstants[0])
	return true
}

// mixFast adds rows to as many heads and columns of o as one kernel takes, and returns how many these are; zero where there is none.
func mixFast(o, p []float32, v []uint16, m Mixing) (heads, columns int) {
	switch {
	case active == avx512 && m.Columns >= 32 && m.Heads >= 8:
		mixHalves8AVX512(&o[0], m.Width, &p[0], m.Positions, &v[0], m.Stride, m.Rows)
		return 8, 32
	case active == avx512 && m.Columns >= 32:
		mixHalves1AVX512(&o[0], m.Width, &p[0], m.Positions, &v[0], m.Stride, m.Rows)
		return 1, 32
	case active.dense() == avx2 && m.Columns >= 16 && m.Heads >= 4:
		mixHalves4AVX2(&o[0], m.Width, &p[0], m.Positions, &v[0], m.Stride, m.Rows)
		return 4, 16
	case active.dense() == avx2 && m.Columns >= 16:
		mixHalves1AVX2(&o[0], m.Width, &p[0], m.Positions, &v[0], m.Stride, m.Rows)
		return 1, 16
	}
	return 0, 0
}

//go:noescape
func dotLanesAVX512(lanes *float64, x, y *float32, n int)

//go:noescape
func dotLanesAVX2(lanes *float64, x, y *float32, n int)

//go:noescape
func sumLanesAVX512(lanes *float64, x *float32, n int)

//go:noescape
func sumLanesAVX2(lanes *float64, x *float32, n int)

//go:noescape
func mulGainAVX512(y, x, gain *float32, r float32, n int)

//go:noescape
func mulGainAVX2(y, x, gain *float32, r float32, n int)

//go:noescape
func divideAVX512(y, x *float32, c float32, n int)

//go:noescape
func divideAVX2(y, x *float32, c float32, n int)

//go:noescape
func maxOfAVX512(y, x *float32, n int)

//go:noescape
func maxOfAVX2(y, x *float32, n int)

//go:noescape
func decodeI8AVX512(dst *float32, src *byte, scale float32, n int)

//go:noescape
func decodeI8AVX2(dst *float32, src *byte, scale float32, n int)

//go:noescape
func softCapAVX512(y, x *float32, limit float32, n int, constants *float32)

//go:noescape
func mixHalves8AVX512(o *float32, oStride int, p *float32, pStride int, v *uint16, vStride, n int)

//go:noescape
func mixHalves1AVX512(o *float32, oStride int, p *float32, pStride int, v *uint16, vStride, n int)

//go:noescape
func mixHalves4AVX2(o *float32, oStride int, p *float32, pStride int, v *uint16, vStride, n int)

//go:noescape
func mixHalves1AVX2(o *float32, oStride int, p *float32, pStride int, v *uint16, vStride, n int)
