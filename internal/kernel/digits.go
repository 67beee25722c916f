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
	data   []byte
	blocks int
}

// Set quantises x; numbers beyond its end are zero.
func (d *Digits) Set(x []float32) {
	d.blocks = (len(x) + BlockCols - 1) / BlockCols
	n := d.blocks * (headBytes + blockOctets*octetBytes)
	if cap(d.data) < n {
		d.data = make([]byte, n)
	}
	d.data = d.data[:n]
	for b := range d.blocks {
		setBlock(d.block(b), x[b*BlockCols:min((b+1)*BlockCols, len(x))])
	}
}

func (d *Digits) block(b int) []byte {
	const n = headBytes + blockOctets*octetBytes
	return d.data[b*n : (b+1)*n]
}

// maxDigits is the greatest integer of three balanced bytes, 127·65536 + 127·256 + 127.
const maxDigits = 0x7f7f7f

// setBlock writes one block.
func setBlock(dst []byte, x []float32) {
	clear(dst)
	var peak float32
	for _, v := range x {
		peak = max(peak, v, -v)
	}
	if peak == 0 {
		return
	}
	scale := float64(peak) / maxDigits
	var sum [3]int32
	for i, v := range x {
		n := int32(math.RoundToEven(float64(v) / scale))
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
	putFloat(dst[12:], float32(scale*65536))
	putFloat(dst[16:], float32(scale*256))
}

func putFloat(b []byte, v float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(v)) }

func getFloat(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// Gemv4 is y = W·x for groups [lo, hi) of m, both even: y [(hi−lo)·32]. Exact within a block of 128 inputs but for the rounding of
// inputs to 24 bits; the same bits on every path.
func Gemv4(y []float32, m *Palette4, x *Digits, lo, hi int) {
	if len(y) != (hi-lo)*GroupRows || lo%2 != 0 || hi%2 != 0 || hi > m.Groups() || x.blocks != m.Blocks() {
		panic("kernel: Gemv4: want an even range of groups, 32 results for each, and an input of the matrix's width")
	}
	for g := lo; g < hi; g += 2 {
		out := y[(g-lo)*GroupRows:][:2*GroupRows]
		if !gemv4Fast(out, m, x, g) {
			gemv4Go(out, m, x, g)
			gemv4Go(out[GroupRows:], m, x, g+1)
		}
	}
}

// gemv4Go is one group: per block t = 256·Σh·H + Σ(h·M + l·H) and c = Σ(h·L + l·M), where h, l are the bytes of a palette entry and
// H, M, L those of the input; Σl·L is left out on purpose: it is below the input's own rounding.
func gemv4Go(y []float32, m *Palette4, x *Digits, g int) {
	table := m.tables[g*groupTable : (g+1)*groupTable]
	packed := m.Packed[g*m.Stride() : (g+1)*m.Stride()]
	for r := range GroupRows {
		var total float32
		for b := range x.blocks {
			block := x.block(b)
			t, c := int32(0), int32(0)
			for i := range BlockCols {
				at := headBytes + i/8*octetBytes + i%2*4 + i%8/2
				index := packed[(b*blockOctets+i/8)*128+r*4+i%8/2] >> (i % 2 * 4) & 15
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
