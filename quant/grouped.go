package quant

import (
	"fmt"

	"anelab/internal/half"
)

// Grouped4 is a 4-bit palette per group of output rows, coremltools' per_grouped_channel (spec forward.md §5.5):
// w[o, i] = LUT[o/Group][index[o, i]], indices two per byte, low nibble first, row-major.
type Grouped4 struct {
	rows, cols, group int
	lut               []float32 // [ceil(rows/group), 16], values of the fp16 entries
	packed            []byte    // [rows·cols/2]
}

// NewGrouped4 views packed indices and fp16 tables as a matrix. group 0 means one table for all rows.
func NewGrouped4(shape [2]int, group int, lut []uint16, packed []byte) (*Grouped4, error) {
	rows, cols := shape[0], shape[1]
	if group == 0 {
		group = max(rows, 1)
	}
	groups := (rows + group - 1) / group
	if len(lut) != 16*groups {
		return nil, fmt.Errorf("quant: palette of [%d, %d] in groups of %d: %d entries, want %d", rows, cols, group, len(lut), 16*groups)
	}
	if len(packed) != (rows*cols+1)/2 {
		return nil, fmt.Errorf("quant: palette of [%d, %d]: %d index bytes, want %d", rows, cols, len(packed), (rows*cols+1)/2)
	}
	m := &Grouped4{rows: rows, cols: cols, group: group, packed: packed, lut: make([]float32, len(lut))}
	for i, b := range lut {
		m.lut[i] = half.F16ToF32(b)
	}
	return m, nil
}

// Rows is the number of outputs.
func (m *Grouped4) Rows() int { return m.rows }

// Cols is the number of inputs.
func (m *Grouped4) Cols() int { return m.cols }

// Bytes is the size of indices and tables as Core ML stores them.
func (m *Grouped4) Bytes() int64 { return m.Encoding().Bytes(m.rows, m.cols) }

// Encoding is int4 in groups of rows.
func (m *Grouped4) Encoding() Encoding { return Encoding{DType: F16, Bits: 4, Group: m.group} }

// MulVec is the plain reference product.
func (m *Grouped4) MulVec(y, x []float32) { mulVecRows(y, m, x) }

// Row decodes row r through its group's table.
func (m *Grouped4) Row(dst []float32, r int) {
	g := r / m.group
	lut := (*[16]float32)(m.lut[16*g:])
	at := r * m.cols
	for i := range dst[:m.cols] {
		dst[i] = lut[m.packed[at>>1]>>(4*(at&1))&15]
		at++
	}
}
