package kernel

import (
	"encoding/binary"
	"math"
)

// Digits is an input vector [Cols] as the integer kernels read it: per block of 128 numbers a scale and 24-bit integers, each
// as three signed bytes, X = 65536·h + 256·m + l.
//
//	block   head: −128·Σh, −128·Σm, −128·Σl (int32), 2^16·scale, 2^8·scale (float32), 12 bytes unused
//	        16 octets of 8 numbers: h even, h odd, m even, m odd, l even, l odd, four bytes each
//
// The sums undo the offset of 128 that makes a table's high bytes unsigned.
type Digits struct {
	data   []byte // [T, blocks, head and octets]
	blocks int
	rows   int // T
}

const digitBlockBytes = headBytes + blockOctets*octetBytes

// Set quantises t rows x [t, n]; inputs beyond n are zero.
func (d *Digits) Set(x []float32, t int) {
	n := len(x) / t
	d.blocks, d.rows = (n+BlockCols-1)/BlockCols, t
	size := t * d.rowBytes()
	if cap(d.data) < size {
		d.data = make([]byte, size)
	}
	d.data = d.data[:size]
	for i := range t {
		row, whole := x[i*n:(i+1)*n], 0
		if n >= BlockCols && digitsFast(d.block(i, 0), row[:n/BlockCols*BlockCols]) {
			whole = n / BlockCols
		}
		for b := whole; b < d.blocks; b++ {
			setBlock(d.block(i, b), row[b*BlockCols:min((b+1)*BlockCols, n)])
		}
	}
}

// rowBytes is the size of one input.
func (d *Digits) rowBytes() int { return d.blocks * digitBlockBytes }

// block is block b of input i.
func (d *Digits) block(i, b int) []byte {
	at := i*d.rowBytes() + b*digitBlockBytes
	return d.data[at : at+digitBlockBytes]
}

// digitLimit is the greatest integer that inputs are scaled to, a little below that of three balanced bytes.
const digitLimit = 0x7f7f00

// setBlock writes one block. Every step is a float32 operation, so that vector code gives the same bytes.
func setBlock(dst []byte, x []float32) {
	clear(dst)
	var bits uint32
	for _, v := range x { // as integers, so that a NaN is the greatest and makes every result a NaN
		bits = max(bits, math.Float32bits(v)&0x7fffffff)
	}
	peak := math.Float32frombits(bits)
	if peak == 0 {
		return
	}
	inverse, scale := digitLimit/peak, peak/digitLimit
	var sum [3]int32
	for i, v := range x {
		n := int32(math.RoundToEven(float64(float32(v * inverse))))
		l := int32(int8(n))
		n = (n - l) >> 8
		m := int32(int8(n))
		h := (n - m) >> 8
		at := headBytes + i/8*octetBytes + i%2*4 + i%8/2
		dst[at], dst[at+8], dst[at+16] = byte(h), byte(m), byte(l)
		sum[0], sum[1], sum[2] = sum[0]+h, sum[1]+m, sum[2]+l
	}
	for k, s := range sum {
		binary.LittleEndian.PutUint32(dst[4*k:], uint32(-128*s))
	}
	putFloat(dst[12:], scale*65536)
	putFloat(dst[16:], scale*256)
}

// Palette4Rows is y = x·Wᵀ for the rows of groups [lo, hi) of m, both even: y [T, (hi−lo)·32]. Exact within a block of 128 inputs
// but for the rounding of inputs to 24 bits, so a result depends neither on T nor on the path.
func Palette4Rows(y []float32, m *Palette4, x *Digits, lo, hi int) {
	width := (hi - lo) * GroupRows
	if len(y) != x.rows*width || lo%2 != 0 || hi%2 != 0 || hi > m.Groups() || x.blocks != m.Blocks() {
		panic("kernel: Palette4Rows: want an even range of groups, 32 results for each and input, and inputs of the matrix's width")
	}
	for g := lo; g < hi; g += 2 {
		t := 0
		for ; t+4 <= x.rows; t += 4 {
			gemm4(y, m, x, place{g, t, (g - lo) * GroupRows, width})
		}
		for ; t < x.rows; t++ {
			out := y[t*width+(g-lo)*GroupRows:][:2*GroupRows]
			if !gemv4Fast(out, m, x, g, t) {
				gemv4Go(out, m, x, g, t)
				gemv4Go(out[GroupRows:], m, x, g+1, t)
			}
		}
	}
}

// place says where a tile of results belongs: groups g and g+1, inputs t to t+3, column at of rows that are width wide.
type place struct{ g, t, at, width int }

// gemm4 multiplies two groups with four inputs.
func gemm4(y []float32, m *Palette4, x *Digits, p place) {
	var tile [4 * GroupRows]float32
	for g := p.g; g < p.g+2; g++ {
		at := p.at + (g-p.g)*GroupRows
		if gemm4Fast(tile[:], m, x.data[p.t*x.rowBytes():], x.rowBytes(), g) {
			for i := range 4 {
				copy(y[(p.t+i)*p.width+at:], tile[i*GroupRows:(i+1)*GroupRows])
			}
			continue
		}
		for i := range 4 {
			gemv4Go(y[(p.t+i)*p.width+at:], m, x, g, p.t+i)
		}
	}
}

// gemv4Go is one group times input i: per block t = 256·Σh·H + Σ(h·M + l·H) and c = Σ(h·L + l·M), where h, l are the bytes of a palette
// entry and H, M, L those of the input; Σl·L is left out on purpose: it is below the input's own rounding.
func gemv4Go(y []float32, m *Palette4, x *Digits, g, i int) {
	table := m.tables[g*groupTable : (g+1)*groupTable]
	packed := m.Packed[g*m.Stride() : (g+1)*m.Stride()]
	for r := range GroupRows {
		var total float32
		for b := range x.blocks {
			block := x.block(i, b)
			t, c := int32(0), int32(0)
			for k := range BlockCols {
				at := headBytes + k/8*octetBytes + k%2*4 + k%8/2
				index := packed[(b*blockOctets+k/8)*128+r*4+k%8/2] >> (k % 2 * 4) & 15
				h, l := int32(table[index])-128, int32(table[16+index])
				xh, xm, xl := int32(int8(block[at])), int32(int8(block[at+8])), int32(int8(block[at+16]))
				t += h*xh<<8 + h*xm + l*xh
				c += h*xl + l*xm
			}
			total += float32(float32(t)*getFloat(block[12:])) + float32(float32(c)*getFloat(block[16:]))
		}
		y[r] = total * getFloat(table[32:])
	}
}
