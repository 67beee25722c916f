package quant

import "anelab/internal/kernel"

// Packed is a 4-bit palette in the order that the kernels want, rows in lanes. It reads as the palette it was made of.
type Packed struct {
	k     *kernel.Palette4
	bytes int64
	group int
}

// Pack4 repacks a palette for the kernels. Only 4-bit scalar palettes along the rows, in groups of whole 32 rows or one for
// all, have such a form; others report false and are multiplied row by row.
func Pack4(p *Palette) (*Packed, bool) {
	e := p.Encoding()
	if e.Bits != 4 || e.Axis != 0 || e.Vector > 1 || p.Scale() != nil || e.DType != F16 || e.Group%kernel.GroupRows != 0 {
		return nil, false
	}
	m := &Packed{k: kernel.NewPalette4(p.rows, p.cols), bytes: p.Bytes(), group: e.Group}
	index := make([]byte, p.cols)
	for r := range p.rows {
		Unpack(index, p.packed, 4, r*p.cols)
		m.k.SetRow(r, index)
	}
	for g := 0; g*kernel.GroupRows < p.rows; g++ {
		copy(m.k.LUT[16*g:], p.Table(g*kernel.GroupRows/p.encoding.Group))
	}
	m.k.Seal()
	return m, true
}

// NewPacked views a matrix that is packed already; group is the number of rows per palette, 0 for one palette.
func NewPacked(k *kernel.Palette4, group int) *Packed {
	e := Encoding{DType: F16, Bits: 4, Group: group}
	return &Packed{k: k, bytes: e.Bytes(k.Rows, k.Cols), group: group}
}

// Kernel is the packed form, for arithmetic.
func (m *Packed) Kernel() *kernel.Palette4 { return m.k }

// Rows is the number of outputs.
func (m *Packed) Rows() int { return m.k.Rows }

// Cols is the number of inputs.
func (m *Packed) Cols() int { return m.k.Cols }

// Bytes is the size as Core ML stores it.
func (m *Packed) Bytes() int64 { return m.bytes }

// Encoding is int4 in groups of rows.
func (m *Packed) Encoding() Encoding { return Encoding{DType: F16, Bits: 4, Group: m.group} }

// Row decodes row r.
func (m *Packed) Row(dst []float32, r int) { m.k.Row(dst, r) }

// MulVec is the plain reference product.
func (m *Packed) MulVec(y, x []float32) { mulVecRows(y, m, x) }
