package kernel

import (
	"encoding/binary"
	"math"
)

// Digits is an input vector [Cols] as the integer kernels read it: per block of 64 numbers a scale and 22-bit integers, each
// as two signed digits of 11 bits, X = 2048·h + l.
//
//	block   head: 2048·scale, scale (float32), 24 bytes unused
//	        8 octets of 8 numbers: 8 high digits, 8 low digits, two bytes each, in the order of the path
//
// A palette entry has 16 bits, so a block's sum of products with one digit fits 32 bits and is exact.
type Digits struct {
	data   []byte // [T, blocks, head and octets]
	blocks int
	rows   int // T
}

const (
	digitBlockBytes = headBytes + digitCols/8*octetBytes
	digitBits       = 11
	// digitLimit is the greatest integer that inputs are scaled to: with it no high digit exceeds 1023.
	digitLimit = 1023 << digitBits
	// digitLeast is 2^-96, below which a block counts as zero: the inverse of its scale would overflow.
	digitLeast = (127 - 96) << 23
)

// The order of an octet's digits: place i is the word of input i. The kernels of avx512 look words up, and find inputs j and j+4 side by
// side; the others look bytes up, even inputs and odd ones.
var (
	pairsOrder = [8]uint8{0, 2, 4, 6, 1, 3, 5, 7}
	splitOrder = [8]uint8{0, 4, 1, 5, 2, 6, 3, 7}
)

// octetOrder is the order of the path in use.
func octetOrder() *[8]uint8 {
	if active == avx512 {
		return &pairsOrder
	}
	return &splitOrder
}

// Set quantises t rows x [t, n]; inputs beyond n are zero.
func (d *Digits) Set(x []float32, t int) {
	n := len(x) / t
	d.blocks, d.rows = (n+BlockCols-1)/BlockCols*(BlockCols/digitCols), t
	size := t * d.rowBytes()
	if cap(d.data) < size {
		d.data = make([]byte, size)
	}
	d.data = d.data[:size]
	for i := range t {
		row, whole := x[i*n:(i+1)*n], 0
		if n >= digitCols && digitsFast(d.block(i, 0), row[:n/digitCols*digitCols]) {
			whole = n / digitCols
		}
		for b := whole; b < d.blocks; b++ {
			setBlock(d.block(i, b), row[min(b*digitCols, n):min((b+1)*digitCols, n)])
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

// setBlock writes one block. Every step is a float32 operation, so that vector code gives the same bytes.
func setBlock(dst []byte, x []float32) {
	clear(dst)
	var bits uint32
	for _, v := range x { // as integers, so that a NaN is the greatest and makes every result a NaN
		bits = max(bits, math.Float32bits(v)&0x7fffffff)
	}
	if bits < digitLeast {
		return
	}
	peak := math.Float32frombits(bits)
	inverse, scale := digitLimit/peak, peak/digitLimit
	order := octetOrder()
	for i, v := range x {
		n := int32(math.RoundToEven(float64(float32(v * inverse))))
		l := n << (32 - digitBits) >> (32 - digitBits)
		at := headBytes + i/8*octetBytes + 2*int(order[i%8])
		binary.LittleEndian.PutUint16(dst[at:], uint16((n-l)>>digitBits))
		binary.LittleEndian.PutUint16(dst[at+octetBytes/2:], uint16(l))
	}
	putFloat(dst[0:], scale*(1<<digitBits))
	putFloat(dst[4:], scale)
}

// digits are the two digits of input k of a block.
func digits(block []byte, k int, order *[8]uint8) (h, l int32) {
	at := headBytes + k/8*octetBytes + 2*int(order[k%8])
	return int32(int16(binary.LittleEndian.Uint16(block[at:]))), int32(int16(binary.LittleEndian.Uint16(block[at+octetBytes/2:])))
}

// inputBytes is how much of the digits goes through a range of groups at a time, so that it stays in the second-level cache.
const inputBytes = 1 << 20

// Palette4Rows is y = x·Wᵀ for the rows of groups [lo, hi) of m, both even; y [T, Rows] is written only there. Exact within a block
// of 64 inputs but for the rounding of inputs to 22 bits of the block's greatest, so a result depends neither on T nor on the path.
func Palette4Rows(y []float32, m *Palette4, x *Digits, lo, hi int) {
	if len(y) != x.rows*m.Rows || lo%2 != 0 || hi%2 != 0 || hi > m.Groups() || x.blocks*digitCols != m.Blocks()*BlockCols {
		panic("kernel: Palette4Rows: want y [T, Rows], an even range of groups, and inputs of the matrix's width")
	}
	part, half := max(inputBytes/x.rowBytes()/gemmInputs, 1)*gemmInputs, (hi-lo)/2
	for first := 0; first < x.rows; first += part {
		for g := lo; g < lo+half; g++ {
			p := pair{m: m, x: x, groups: [2]int{g, g + half}}
			p.rows(y, first, min(first+part, x.rows))
		}
	}
}

// pair is two groups that go through a kernel together. Those of one half of a range and of the other are two streams through memory,
// each without gaps, as prefetching likes it.
type pair struct {
	m      *Palette4
	x      *Digits
	groups [2]int
}

// gemmInputs is how many inputs share a read of the weights.
const gemmInputs = 6

// tile is the results of a kernel: for every input 32 rows of either group.
type tile [gemmInputs * 2 * GroupRows]float32

// rows fills the pair's rows of y for inputs [first, end).
func (p pair) rows(y []float32, first, end int) {
	var out tile
	for t := first; t < end; t += gemmInputs {
		n := min(gemmInputs, end-t)
		p.fill(&out, t, n)
		for i := range n {
			for k, g := range p.groups {
				row, last := min(g*GroupRows, p.m.Rows), min((g+1)*GroupRows, p.m.Rows)
				copy(y[(t+i)*p.m.Rows+row:(t+i)*p.m.Rows+last], out[(2*i+k)*GroupRows:])
			}
		}
	}
}

// fill computes inputs t … t+n−1.
func (p pair) fill(out *tile, t, n int) {
	if n > 1 && gemm4Fast(out, p, t, n) {
		return
	}
	for i := range n {
		y := out[i*2*GroupRows:][:2*GroupRows]
		if !gemv4Fast(y, p, t+i) {
			gemv4Go(y, p.m, p.x, p.groups[0], t+i)
			gemv4Go(y[GroupRows:], p.m, p.x, p.groups[1], t+i)
		}
	}
}

// gemv4Go is one group times input i: per block the sums of the palette's integers times the high digits and times the low ones.
func gemv4Go(y []float32, m *Palette4, x *Digits, g, i int) {
	table := m.tables[g*groupTable : (g+1)*groupTable]
	packed := m.Packed[g*m.Stride() : (g+1)*m.Stride()]
	order := octetOrder()
	for r := range GroupRows {
		var total float32
		for b := range x.blocks {
			block := x.block(i, b)
			high, low := int32(0), int32(0)
			for k := range digitCols {
				index := packed[(b*digitCols/8+k/8)*128+r*4+k%8/2] >> (k % 2 * 4) & 15
				w := int32(int16(binary.LittleEndian.Uint16(table[2*index:])))
				h, l := digits(block, k, order)
				high, low = high+w*h, low+w*l
			}
			total += float32(float32(high)*getFloat(block[0:])) + float32(float32(low)*getFloat(block[4:]))
		}
		y[r] = total * getFloat(table[32:])
	}
}
