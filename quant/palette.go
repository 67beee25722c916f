package quant

import (
	"fmt"
	"slices"

	"anelab/internal/half"
)

// Palette is a matrix whose elements are indices into tables, Core ML's constexpr_lut_to_dense (spec forward.md §5.5,
// coreml.md §4): the channels of one axis are divided into groups of equal size, each with a table of 2^bits entries,
//
//	axis 0   w[o, i] = LUT[o/group][index[o, i]]
//	axis 1   w[o, i] = LUT[i/group][index[o, i]]
//
// An entry of a vector palette is several elements along the axis; index [o/v, i] then holds rows o … o+v−1. A scale, where
// there is one, belongs to the channels of the other axis and multiplies the entry, rounded once to the type of the entries.
type Palette struct {
	rows, cols int
	encoding   Encoding  // Group never 0, Vector at least 1
	lut        []float32 // [groups, 2^bits, vector]
	scale      []float32 // [cols] for axis 0, [rows] for axis 1; nil = none
	packed     []byte    // indices [rows/v, cols] or [rows, cols/v]
}

// Tables are the stored parts of a palette.
type Tables struct {
	LUT     []float32 // [groups, 2^bits, vector], exact values of the stored type
	Scale   []float32 // per channel of the other axis; nil = none
	Indices []byte    // packed as by Pack
}

// NewPalette views stored tables as a matrix [rows, cols]. Encoding.Group 0 means one table.
func NewPalette(rows, cols int, e Encoding, t Tables) (*Palette, error) {
	p, entries, err := emptyPalette(rows, cols, e)
	if err != nil {
		return nil, err
	}
	other, bytes := []int{cols, rows}[e.Axis], p.indexBytes()
	switch {
	case len(t.LUT) != entries:
		return nil, fmt.Errorf("quant: %s palette of [%d, %d]: %d entries, want %d", e, rows, cols, len(t.LUT), entries)
	case len(t.Indices) != bytes:
		return nil, fmt.Errorf("quant: %s palette of [%d, %d]: %d index bytes, want %d", e, rows, cols, len(t.Indices), bytes)
	case t.Scale != nil && len(t.Scale) != other:
		return nil, fmt.Errorf("quant: %s palette of [%d, %d]: %d scales, want %d", e, rows, cols, len(t.Scale), other)
	}
	p.lut, p.scale, p.packed = t.LUT, t.Scale, t.Indices
	return p, nil
}

// newPalette is a palette of zeros.
func newPalette(rows, cols int, e Encoding) (*Palette, error) {
	p, entries, err := emptyPalette(rows, cols, e)
	if err != nil {
		return nil, err
	}
	p.lut, p.packed = make([]float32, entries), make([]byte, p.indexBytes())
	return p, nil
}

// emptyPalette is a palette without its parts, and the number of entries that its tables must have.
func emptyPalette(rows, cols int, e Encoding) (p *Palette, entries int, err error) {
	if err := checkShape("palette", rows, cols); err != nil {
		return nil, 0, err
	}
	if e.Axis != 0 && e.Axis != 1 {
		return nil, 0, fmt.Errorf("quant: palette along axis %d of a matrix, want 0 or 1", e.Axis)
	}
	if !e.Palette() || !paletteBits(e.Bits) || e.DType != F16 && e.DType != F32 {
		return nil, 0, fmt.Errorf("quant: palette of %d bits with %s entries, want 1, 2, 3, 4, 6 or 8 bits and f16 or f32", e.Bits, e.DType)
	}
	channels := []int{rows, cols}[e.Axis]
	if e.Group == 0 {
		e.Group = channels
	}
	e.Vector = max(e.Vector, 1)
	if e.Group < 0 || channels%e.Group != 0 {
		return nil, 0, fmt.Errorf("quant: palette of [%d, %d]: axis %d is not divisible into groups of %d", rows, cols, e.Axis, e.Group)
	}
	if e.Group%e.Vector != 0 {
		return nil, 0, fmt.Errorf("quant: palette of [%d, %d]: groups of %d are not divisible into vectors of %d", rows, cols, e.Group, e.Vector)
	}
	return &Palette{rows: rows, cols: cols, encoding: e}, channels / e.Group * e.Vector << e.Bits, nil
}

func (p *Palette) indexBytes() int {
	return PackedLen(p.rows*p.cols/p.encoding.Vector, p.encoding.Bits)
}

// Rows is the number of outputs.
func (p *Palette) Rows() int { return p.rows }

// Cols is the number of inputs.
func (p *Palette) Cols() int { return p.cols }

// Bytes is the size of indices, tables and scales as Core ML stores them.
func (p *Palette) Bytes() int64 {
	return int64(len(p.packed)) + int64(len(p.lut)+len(p.scale))*int64(p.encoding.DType.Size())
}

// Encoding is bits, group and axis. One table for all says so even where a group of that size would mean the same.
func (p *Palette) Encoding() Encoding {
	e := p.encoding
	if e.Vector == 1 {
		e.Vector = 0
	}
	if e.Group == []int{p.rows, p.cols}[e.Axis] {
		e.Group = 0
	}
	return e
}

// Groups is the number of tables.
func (p *Palette) Groups() int { return []int{p.rows, p.cols}[p.encoding.Axis] / p.encoding.Group }

// Table is the LUT of group g, [2^bits, vector]; not to be written to.
func (p *Palette) Table(g int) []float32 {
	n := p.encoding.Vector << p.encoding.Bits
	return p.lut[g*n : (g+1)*n]
}

// Scale is the factor per channel of the other axis, nil where there is none; not to be written to.
func (p *Palette) Scale() []float32 { return p.scale }

// Indices are the packed indices; not to be written to.
func (p *Palette) Indices() []byte { return p.packed }

// MulVec is the plain reference product.
func (p *Palette) MulVec(y, x []float32) { mulVecRows(y, p, x) }

// Row decodes row r.
func (p *Palette) Row(dst []float32, r int) {
	dst = dst[:p.cols]
	if p.encoding.Axis == 0 {
		p.rowOfGroup(dst, r)
	} else {
		p.rowAcrossGroups(dst, r)
	}
	if p.scale != nil {
		p.multiply(dst, r)
	}
}

// rowOfGroup decodes a row that has one table for all its elements.
func (p *Palette) rowOfGroup(dst []float32, r int) {
	v := p.encoding.Vector
	table, component := p.Table(r/p.encoding.Group), r%v
	var index [256]byte
	for done := 0; done < len(dst); done += len(index) {
		out := dst[done:min(done+len(index), len(dst))]
		Unpack(index[:len(out)], p.packed, p.encoding.Bits, r/v*p.cols+done)
		for i := range out {
			out[i] = table[int(index[i])*v+component]
		}
	}
}

// rowAcrossGroups decodes a row that passes from table to table.
func (p *Palette) rowAcrossGroups(dst []float32, r int) {
	v, per := p.encoding.Vector, p.encoding.Group/p.encoding.Vector
	var index [256]byte
	indices := p.cols / v
	for done := 0; done < indices; done += len(index) {
		n := min(len(index), indices-done)
		Unpack(index[:n], p.packed, p.encoding.Bits, r*indices+done)
		for i, at := range index[:n] {
			c := done + i
			copy(dst[c*v:(c+1)*v], p.Table(c / per)[int(at)*v:])
		}
	}
}

// multiply applies the scales to a decoded row.
func (p *Palette) multiply(dst []float32, r int) {
	for i := range dst {
		at := i
		if p.encoding.Axis == 1 {
			at = r
		}
		dst[i] *= p.scale[at]
		if p.encoding.DType == F16 {
			dst[i] = half.RoundF16(dst[i])
		}
	}
}

// ScaledTables are the tables with the scales multiplied in, [groups, channels of the other axis, 2^bits, vector]: one table per
// group and channel instead of a scale. The Neural Engine's compiler refuses scaled tables (QNT-02, spec coreml.md §7), so a
// package for it stores this. Without scales there is one channel.
func (p *Palette) ScaledTables() []float32 {
	if p.scale == nil {
		return slices.Clone(p.lut)
	}
	out := make([]float32, 0, len(p.lut)*len(p.scale))
	for g := range p.Groups() {
		for _, s := range p.scale {
			for _, entry := range p.Table(g) {
				x := entry * s
				if p.encoding.DType == F16 {
					x = half.RoundF16(x)
				}
				out = append(out, x)
			}
		}
	}
	return out
}
