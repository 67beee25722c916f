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

// Palette4Rows is y = x·Wᵀ for the rows of groups [lo, hi) of m, both even; y [T, Rows] is written only there. Exact within a block
// of 128 inputs but for the rounding of inputs to 24 bits, so a result depends neither on T nor on the path.
func Palette4Rows(y []float32, m *Palette4, x *Digits, lo, hi int) {
	if len(y) != x.rows*m.Rows || lo%2 != 0 || hi%2 != 0 || hi > m.Groups() || x.blocks != m.Blocks() {
		panic("kernel: Palette4Rows: want y [T, Rows], an even range of groups, and inputs of the matrix's width")
	}
	var tile [4 * 2 * GroupRows]float32
	for g := lo; g < hi; g += 2 {
		first := g * GroupRows
		last := min(first+2*GroupRows, m.Rows)
		for t := 0; t < x.rows; t += 4 {
			n := min(4, x.rows-t)
			pairOfGroups(&tile, m, x, [3]int{g, t, n})
			for i := range n {
				copy(y[(t+i)*m.Rows+first:(t+i)*m.Rows+last], tile[i*2*GroupRows:])
			}
		}
	}
}

// pairOfGroups fills tile [4, 64] with groups g and g+1 times inputs t … t+n−1; at is g, t, n.
func pairOfGroups(tile *[8 * GroupRows]float32, m *Palette4, x *Digits, at [3]int) {
	g, t, n := at[0], at[1], at[2]
	if n == 4 && gemm4Fast(tile, m, x, g, t) {
		return
	}
	for i := range n {
		out := tile[i*2*GroupRows:][:2*GroupRows]
		if !gemv4Fast(out, m, x, g, t+i) {
			gemv4Go(out, m, x, g, t+i)
			gemv4Go(out[GroupRows:], m, x, g+1, t+i)
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
