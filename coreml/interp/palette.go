package interp

import (
	"anelab/coreml/mil"
	"anelab/quant"
)

// palette is a constant of indices into tables (constexpr_lut_to_dense).
type palette struct {
	grid              // of the indices
	bits       int    // of an index
	indices    []byte // packed, for the elements of grid.shape
	tables     []float32
	dtype      mil.DType // of the entries
	vector     int       // elements of an entry
	vectorAxis int       // that entries stretch
}

func (p *palette) count() int { return count(p.shape) * p.vector }

// read decodes elements of any palette; [palette.form] has faster ways for the usual ones.
func (p *palette) read(dst []float32, first int) {
	out := stretched(p.shape, p.vectorAxis, p.vector)
	if p.vector == 1 {
		p.readScalars(dst, first)
		return
	}
	element := grid{shape: out, blocks: out}.at(first)
	for i := range dst {
		at := 0
		for axis, x := range element.index {
			if axis == p.vectorAxis {
				x /= p.vector
			}
			at = at*p.shape[axis] + x
		}
		component := element.index[p.vectorAxis] % p.vector
		dst[i] = p.tables[p.entry(p.grid.at(at).block, at)*p.vector+component]
		element.next()
	}
}

func (p *palette) readScalars(dst []float32, first int) {
	c := p.grid.at(first)
	for i := range dst {
		dst[i] = p.tables[p.entry(c.block, first+i)]
		c.next()
	}
}

// entry is the number of the entry that index i means in a block.
func (p *palette) entry(block, i int) int {
	var index [1]byte
	quant.Unpack(index[:], p.indices, p.bits, i)
	return block<<p.bits + int(index[0])
}

// stretched is shape with an axis n times as long.
func stretched(shape []int, axis, n int) []int {
	out := append([]int{}, shape...)
	if n > 1 {
		out[axis] *= n
	}
	return out
}

// form is the palette as quant has it: tables along the rows, or along the columns where those are one dimension.
func (p *palette) form(rows, cols int) quant.Matrix {
	entries, ok := map[mil.DType]quant.DType{mil.Float16: quant.F16, mil.Float32: quant.F32}[p.dtype]
	axis, single := p.single()
	if !ok || !single || len(p.shape) == 0 || axis > 1 {
		return nil
	}
	if p.vector > 1 && axis >= 0 && axis != p.vectorAxis || p.vectorAxis > 1 && p.vector > 1 {
		return nil
	}
	if p.vector > 1 {
		axis = p.vectorAxis
	}
	axis = max(axis, 0)
	out := stretched(p.shape, p.vectorAxis, p.vector)
	if out[0] != rows || axis == 1 && out[1] != cols {
		return nil
	}
	e := quant.Encoding{DType: entries, Bits: p.bits, Axis: axis, Vector: p.vector, Group: out[axis] / p.blocks[axis]}
	m, err := quant.NewPalette(rows, cols, e, quant.Tables{LUT: p.tables, Indices: p.indices})
	if err != nil {
		return nil
	}
	return m
}
