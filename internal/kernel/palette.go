package kernel

import (
	"encoding/binary"
	"math"
)

// Palette4 is a weight [Rows, Cols] of 4-bit indices in the order the kernels want, rows in lanes.
//
// 32 rows are a group. For every 8 inputs a group holds 2 × 16 dwords: dword r of the first 16 belongs to row r, of the second to
// row 16+r; nibble j of a dword is the index of input 8o+j. Groups follow one another; inputs are padded to a multiple of 128,
// rows to a multiple of 64. The palettes of a group are 16 float32 numbers, the values of its fp16 entries.
type Palette4 struct {
	Rows, Cols int
	Packed     []byte    // [groups, octets, 2, 16 dwords], and in memory at least a byte more, which kernels may read
	LUT        []float32 // [groups, 16]
	tables     []byte    // [groups, groupTable], what the integer kernels read, derived from LUT
}

// Sizes of the layout.
const (
	GroupRows   = 32  // rows that share a palette
	BlockCols   = 128 // inputs are padded to a multiple
	digitCols   = 64  // inputs that share a scale in the integer kernels
	blockOctets = BlockCols / 8
	octetBytes  = 32 // 8 high and 8 low digits
	headBytes   = 32 // scales of a block
	groupTable  = 48 // 16 integers of two bytes, scale
)

// Groups is the number of groups, an even number.
func (m *Palette4) Groups() int { return (m.Rows + 2*GroupRows - 1) / (2 * GroupRows) * 2 }

// Blocks is the number of input blocks.
func (m *Palette4) Blocks() int { return (m.Cols + BlockCols - 1) / BlockCols }

// Stride is the number of packed bytes of a group.
func (m *Palette4) Stride() int { return m.Blocks() * blockOctets * 128 }

// NewPalette4 allocates the packed form of a matrix; Set fills it, Seal makes it ready.
func NewPalette4(rows, cols int) *Palette4 {
	m := &Palette4{Rows: rows, Cols: cols}
	n := m.Groups() * m.Stride()
	m.Packed, m.LUT = make([]byte, n, n+1), make([]float32, 16*m.Groups())
	return m
}

// group is where the indices and the table of a group begin.
func (m *Palette4) group(g int) (packed, table *byte) {
	return &m.Packed[g*m.Stride()], &m.tables[g*groupTable]
}

// at is the byte and the shift of an index.
func (m *Palette4) at(r, k int) (byteAt int, shift uint) {
	g, lane := r/GroupRows, r%GroupRows
	return g*m.Stride() + k/8*128 + lane*4 + k%8/2, uint(k % 2 * 4)
}

// Set stores the index of row r, input k.
func (m *Palette4) Set(r, k int, index byte) {
	at, shift := m.at(r, k)
	m.Packed[at] = m.Packed[at]&^(15<<shift) | index<<shift
}

// SetRow stores the indices of row r, which must be zero before.
func (m *Palette4) SetRow(r int, index []byte) {
	base := r/GroupRows*m.Stride() + r%GroupRows*4
	for k, i := range index {
		m.Packed[base+k/8*128+k%8/2] |= i << (k % 2 * 4)
	}
}

// Index returns the index of row r, input k.
func (m *Palette4) Index(r, k int) byte {
	at, shift := m.at(r, k)
	return m.Packed[at] >> shift & 15
}

// Row decodes row r into dst [Cols].
func (m *Palette4) Row(dst []float32, r int) {
	lut := (*[16]float32)(m.LUT[r/GroupRows*16:])
	base := r/GroupRows*m.Stride() + r%GroupRows*4
	for k := range dst[:m.Cols] {
		dst[k] = lut[m.Packed[base+k/8*128+k%8/2]>>(k%2*4)&15]
	}
}

// Seal derives the integer tables from LUT. An entry p is scale·n with n of 16 bits; the scale is a power of two, so that entries
// within a factor of 16 of the greatest are exact, and the others are off by at most 2^-16 of it.
func (m *Palette4) Seal() {
	m.tables = make([]byte, groupTable*m.Groups())
	for g := range m.Groups() {
		t, lut := m.tables[g*groupTable:], m.LUT[16*g:16*g+16]
		var peak float64
		for _, p := range lut {
			peak = max(peak, math.Abs(float64(p)))
		}
		if peak-peak != 0 { // every result of the group will be a NaN
			putFloat(t[32:], float32(math.NaN()))
			continue
		}
		_, exp := math.Frexp(peak)
		scale := math.Ldexp(1, exp-15)
		for i, p := range lut {
			n := int(min(max(math.RoundToEven(float64(p)/scale), -32767), 32767))
			binary.LittleEndian.PutUint16(t[2*i:], uint16(n))
		}
		putFloat(t[32:], float32(scale))
	}
}

// Palette4Wide is y = W·x for the rows of groups [lo, hi) in the canonical structure of Dot64: y [(hi−lo)·32]. x is the input as
// float64, padded with zeros to a multiple of 128; row is scratch for one decoded row.
func Palette4Wide(y []float64, m *Palette4, x []float64, row []float32, groups [2]int) {
	if len(y) != (groups[1]-groups[0])*GroupRows || len(x) != m.Blocks()*BlockCols || len(row) < m.Cols {
		panic("kernel: Palette4Wide: want 32 results per group, an input padded to whole blocks, and room for a row")
	}
	for g := groups[0]; g < groups[1]; g++ {
		out := y[(g-groups[0])*GroupRows:][:GroupRows]
		if !gemv4WideFast(out, m, x, g) {
			gemv4WideGo(out, m, x, row, g)
		}
	}
}

func gemv4WideGo(y []float64, m *Palette4, x []float64, row []float32, g int) {
	for r := range y {
		if g*GroupRows+r >= m.Rows {
			y[r] = 0
			continue
		}
		m.Row(row, g*GroupRows+r)
		var l Lanes
		for k, w := range row[:m.Cols] {
			l[k&7] += float64(float64(w) * x[k])
		}
		y[r] = l.Sum()
	}
}
