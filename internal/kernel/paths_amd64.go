//go:build amd64 && !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// tailMask is 8 set lanes and 8 clear ones: read from 32−4k bytes on, it selects the first k lanes.
//
//lint:ignore U1000 read by the assembly
var tailMask = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// cpuPaths lists the assembly paths of this CPU, the fastest first.
func cpuPaths() []path {
	var paths []path
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI {
		paths = append(paths, avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && hasF16C() {
		if cpu.X86.HasAVXVNNI {
			paths = append(paths, avxvnni)
		}
		paths = append(paths, avx2)
	}
	return paths
}

// cpuid1 returns ECX of CPUID leaf 1.
//
//go:noescape
func cpuid1() uint32

// hasF16C reports half conversions, which x/sys/cpu does not list.
func hasF16C() bool { return cpuid1()&(1<<29) != 0 }

// The functions below take the active path, or report false where it is generic. They call by name, never through a
// variable: only then does the compiler know that slices do not escape, and callers can keep them on the stack.

func rows32Fast(y, w, x []float32, n, t int) bool {
	switch active.dense() {
	case avx512:
		rows32AVX512(y, w, x, n, t)
	case avx2:
		rows32AVX2(y, w, x, n, t)
	}
	return active != generic
}

func rows64Fast(y []float64, w, x []float32, n, t int) bool {
	switch active.dense() {
	case avx512:
		rows64AVX512(y, w, x, n, t)
	case avx2:
		rows64AVX2(y, w, x, n, t)
	}
	return active != generic
}

func axpy32Fast(y, x []float32, p float32) bool {
	switch active.dense() {
	case avx512:
		axpy32AVX512(&y[0], &x[0], p, len(y))
	case avx2:
		axpy32AVX2(&y[0], &x[0], p, len(y))
	}
	return active != generic
}

func axpy64Fast(y []float64, x []float32, p float32) bool {
	switch active.dense() {
	case avx512:
		axpy64AVX512(&y[0], &x[0], p, len(y))
	case avx2:
		axpy64AVX2(&y[0], &x[0], p, len(y))
	}
	return active != generic
}

// gemv4Fast multiplies a pair of groups with input i.
func gemv4Fast(y []float32, p pair, i int) bool {
	in, blocks := &p.x.data[i*p.x.rowBytes()], p.x.blocks
	switch active {
	case avx512:
		packed, table := p.m.group(p.groups[0])
		apart := p.groups[1] - p.groups[0]
		gemv4VNNI(&y[0], packed, apart*p.m.Stride(), table, apart*groupTable, in, blocks)
	case avxvnni:
		for k, g := range p.groups {
			packed, table := p.m.group(g)
			gemv4AVXVNNI(&y[k*GroupRows], packed, table, in, blocks)
		}
	case avx2:
		for k, g := range p.groups {
			packed, table := p.m.group(g)
			gemv4AVX2(&y[k*GroupRows], packed, table, in, blocks)
		}
	}
	return active != generic
}

// y[64] = the groups at packed and packed+stride, their tables, an input of that many blocks.
//
//go:noescape
func gemv4VNNI(y *float32, packed *byte, stride int, table *byte, tableStride int, x *byte, blocks int)

// y[32] = a group, its table, an input of that many blocks.
//
//go:noescape
func gemv4AVX2(y *float32, packed, table, x *byte, blocks int)

//go:noescape
func gemv4AVXVNNI(y *float32, packed, table, x *byte, blocks int)

// gemm4Fast multiplies a pair of groups with inputs t … t+n−1.
func gemm4Fast(out *tile, p pair, t, n int) bool {
	if active != avx512 {
		return false
	}
	in, stride, blocks := &p.x.data[t*p.x.rowBytes()], p.x.rowBytes(), p.x.blocks
	for k, g := range p.groups {
		packed, table := p.m.group(g)
		y := &out[k*GroupRows]
		switch n {
		case 2:
			gemm4x2VNNI(y, packed, table, in, stride, blocks)
		case 3:
			gemm4x3VNNI(y, packed, table, in, stride, blocks)
		case 4:
			gemm4x4VNNI(y, packed, table, in, stride, blocks)
		case 5:
			gemm4x5VNNI(y, packed, table, in, stride, blocks)
		default:
			gemm4x6VNNI(y, packed, table, in, stride, blocks)
		}
	}
	return true
}

//go:noescape
func gemm4x2VNNI(y *float32, packed, table, x *byte, xStride, blocks int)

//go:noescape
func gemm4x3VNNI(y *float32, packed, table, x *byte, xStride, blocks int)

//go:noescape
func gemm4x4VNNI(y *float32, packed, table, x *byte, xStride, blocks int)

//go:noescape
func gemm4x5VNNI(y *float32, packed, table, x *byte, xStride, blocks int)

//go:noescape
func gemm4x6VNNI(y *float32, packed, table, x *byte, xStride, blocks int)

// gemv4WideFast multiplies group g with a float64 input padded to the matrix's blocks: y [32].
func gemv4WideFast(y []float64, m *Palette4, x []float64, g int) bool {
	packed, lut, octets := m.Packed[g*m.Stride():], &m.LUT[16*g], m.Blocks()*blockOctets
	switch active.dense() {
	case avx512:
		for r := 0; r < GroupRows; r += 16 {
			gemv4WideAVX512(&y[r], &packed[4*r], lut, &x[0], octets)
		}
	case avx2:
		for r := 0; r < GroupRows; r += 4 {
			gemv4WideAVX2(&y[r], &packed[4*r], lut, &x[0], octets)
		}
	}
	return active != generic
}

//go:noescape
func gemv4WideAVX512(y *float64, packed *byte, lut *float32, x *float64, octets int)

//go:noescape
func gemv4WideAVX2(y *float64, packed *byte, lut *float32, x *float64, octets int)

// digitsFast writes whole blocks.
func digitsFast(dst []byte, x []float32) bool {
	switch active.dense() {
	case avx512:
		digitsAVX512(&dst[0], &x[0], len(x)/digitCols, &digitConstants()[0])
	case avx2:
		digitsAVX2(&dst[0], &x[0], len(x)/digitCols, &digitConstants()[0])
	}
	return active != generic
}

//go:noescape
func digitsAVX512(dst *byte, x *float32, blocks int, constants *byte)

//go:noescape
func digitsAVX2(dst *byte, x *float32, blocks int, constants *byte)

// pause lets the other threads of a core go ahead while a loop waits.
//
//go:noescape
func pause()

func encodeF16Fast(dst []uint16, src []float32) bool {
	switch active.dense() {
	case avx512:
		encodeF16AVX512(&dst[0], &src[0], len(dst))
	case avx2:
		encodeF16AVX2(&dst[0], &src[0], len(dst))
	}
	return active != generic
}

//go:noescape
func encodeF16AVX512(dst *uint16, src *float32, n int)

//go:noescape
func encodeF16AVX2(dst *uint16, src *float32, n int)

func widenFast(f format, dst []float32, src []uint16) bool {
	return decodeFast(f, dst, unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), 2*len(src)))
}

func axpy4Fast(y, x []float32, stride int, p *[4]float32) bool {
	switch active.dense() {
	case avx512:
		axpy4AVX512(&y[0], &x[0], stride, &p[0], len(y))
	case avx2:
		axpy4AVX2(&y[0], &x[0], stride, &p[0], len(y))
	}
	return active != generic
}

//go:noescape
func axpy4AVX512(y, x *float32, stride int, p *float32, n int)

//go:noescape
func axpy4AVX2(y, x *float32, stride int, p *float32, n int)

func expShiftFast(y, x []float32, m float32) bool {
	switch active.dense() {
	case avx512:
		expShiftAVX512(&y[0], &x[0], m, len(x), &expConstants[0])
	case avx2:
		expShiftAVX2(&y[0], &x[0], m, len(x), &expConstants[0])
	}
	return active != generic
}

//go:noescape
func expShiftAVX512(y, x *float32, m float32, n int, constants *float32)

//go:noescape
func expShiftAVX2(y, x *float32, m float32, n int, constants *float32)

func geluMulFast(y, x, z []float32) bool {
	switch active.dense() {
	case avx512:
		geluMulAVX512(&y[0], &x[0], &z[0], len(x), &expConstants[0])
	case avx2:
		geluMulAVX2(&y[0], &x[0], &z[0], len(x), &expConstants[0])
	}
	return active != generic
}

//go:noescape
func geluMulAVX512(y, x, z *float32, n int, constants *float32)

//go:noescape
func geluMulAVX2(y, x, z *float32, n int, constants *float32)

func sumStreamsFast(b []byte) (uint64, bool) {
	if active != avx512 {
		return 0, false
	}
	return sumStreamsAVX512(&b[0], len(b)/4, len(b)/4), true
}

//go:noescape
func sumStreamsAVX512(p *byte, stride, n int) uint64

// decodeFast decodes a multiple of 16 numbers.
func decodeFast(f format, dst []float32, src []byte) bool {
	d, s, n := &dst[0], &src[0], len(dst)
	switch {
	case active == avx512 && f == decodeBF16:
		decodeBF16AVX512(d, s, n)
	case active == avx512 && f == decodeF16:
		decodeF16AVX512(d, s, n)
	case active == avx512:
		decodeBF16AsF16AVX512(d, s, n)
	case active.dense() == avx2 && f == decodeBF16:
		decodeBF16AVX2(d, s, n)
	case active.dense() == avx2 && f == decodeF16:
		decodeF16AVX2(d, s, n)
	case active.dense() == avx2:
		decodeBF16AsF16AVX2(d, s, n)
	}
	return active != generic
}

// tiles walks x in blocks of `most` rows and then one by one.
func rows32AVX512(y, w, x []float32, n, t int) {
	i := 0
	for ; i+4 <= t; i += 4 {
		tile32x4AVX512(&y[i*4], &w[0], &x[i*n], n, n, n)
	}
	for ; i < t; i++ {
		tile32x1AVX512(&y[i*4], &w[0], &x[i*n], n, n, n)
	}
}

func rows64AVX512(y []float64, w, x []float32, n, t int) {
	i := 0
	var tile [16]float64
	for ; i+4 <= t; i += 4 {
		tile64x4AVX512(&tile[0], &w[0], &x[i*n], n, n, n)
		for c := range 4 {
			for r := range 4 {
				y[(i+c)*4+r] = tile[r*4+c]
			}
		}
	}
	for ; i < t; i++ {
		tile64x1AVX512(&y[i*4], &w[0], &x[i*n], n, n, n)
	}
}

func rows32AVX2(y, w, x []float32, n, t int) {
	i := 0
	var tile [8]float32
	for ; i+2 <= t; i += 2 {
		tile32x2AVX2(&tile[0], &w[0], &x[i*n], n, n, n)
		for r := range 4 {
			y[i*4+r], y[(i+1)*4+r] = tile[r*2], tile[r*2+1]
		}
	}
	for ; i < t; i++ {
		tile32x1AVX2(&y[i*4], &w[0], &x[i*n], n, n, n)
	}
}

func rows64AVX2(y []float64, w, x []float32, n, t int) {
	for i := range t {
		tile64x1AVX2(&y[i*4], &w[0], &x[i*n], n, n, n)
	}
}

// The tiles: y[r·c + t] = Σ w[r][i]·x[t][i] for 4 weight rows and c activation rows, y[4t + r] for tile32x4AVX512; strides in elements. A
// dot product's lane structure is the same in every tile of a path.

//go:noescape
func tile32x4AVX512(y, w, x *float32, wStride, xStride, n int)

//go:noescape
func tile32x1AVX512(y, w, x *float32, wStride, xStride, n int)

//go:noescape
func tile64x4AVX512(y *float64, w, x *float32, wStride, xStride, n int)

//go:noescape
func tile64x1AVX512(y *float64, w, x *float32, wStride, xStride, n int)

//go:noescape
func tile32x2AVX2(y, w, x *float32, wStride, xStride, n int)

//go:noescape
func tile32x1AVX2(y, w, x *float32, wStride, xStride, n int)

//go:noescape
func tile64x1AVX2(y *float64, w, x *float32, wStride, xStride, n int)

// y[i] += p·x[i]; n a multiple of 16.

//go:noescape
func axpy32AVX512(y, x *float32, p float32, n int)

//go:noescape
func axpy64AVX512(y *float64, x *float32, p float32, n int)

//go:noescape
func axpy32AVX2(y, x *float32, p float32, n int)

//go:noescape
func axpy64AVX2(y *float64, x *float32, p float32, n int)

// The decoders: dst[i] = the float32 value of the i-th 16-bit number; n a multiple of 16.

//go:noescape
func decodeBF16AVX512(dst *float32, src *byte, n int)

//go:noescape
func decodeF16AVX512(dst *float32, src *byte, n int)

//go:noescape
func decodeBF16AsF16AVX512(dst *float32, src *byte, n int)

//go:noescape
func decodeBF16AVX2(dst *float32, src *byte, n int)

//go:noescape
func decodeF16AVX2(dst *float32, src *byte, n int)

//go:noescape
func decodeBF16AsF16AVX2(dst *float32, src *byte, n int)
