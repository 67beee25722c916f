package quant

import (
	"fmt"
	"math"

	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/internal/kernel"
)

// Linear is a matrix of small integers with a scale per block, Core ML's constexpr_blockwise_shift_scale (spec coreml.md §4):
// w = scale·(data − offset), rounded once to the type of the scale. A block is a run of columns of one row, one row, or the matrix.
type Linear struct {
	rows, cols int
	spec       LinearSpec // Block never 0
	parts      LinearParts
}

// LinearSpec is the form of the integers.
type LinearSpec struct {
	Integer     DType // I8 or U8: signed or not
	Bits        int   // 4 or 8
	Granularity Granularity
	Block       int   // columns per scale for PerBlock
	Scale       DType // F16 or F32
}

// Granularity is what shares a scale.
type Granularity uint8

// Granularities, from the converter's configuration.
const (
	PerTensor Granularity = iota
	PerRow
	PerBlock
)

// LinearParts are the stored parts.
type LinearParts struct {
	Data   []byte    // [rows, cols] packed as by Pack, two's complement when signed
	Scale  []float32 // one per block, row-major
	Offset []int16   // one per block; nil = 0
}

// NewLinear views stored integers as a matrix.
func NewLinear(rows, cols int, s LinearSpec, parts LinearParts) (*Linear, error) {
	m, err := newLinear(rows, cols, s)
	if err != nil {
		return nil, err
	}
	n := m.rowsOfScales() * (cols / m.spec.Block)
	switch {
	case len(parts.Data) != PackedLen(rows*cols, s.Bits):
		return nil, fmt.Errorf("quant: linear [%d, %d] of %d bits: %d bytes, want %d", rows, cols, s.Bits, len(parts.Data), PackedLen(rows*cols, s.Bits))
	case len(parts.Scale) != n, parts.Offset != nil && len(parts.Offset) != n:
		return nil, fmt.Errorf("quant: linear [%d, %d]: %d scales and %d offsets, want %d", rows, cols, len(parts.Scale), len(parts.Offset), n)
	}
	m.parts = parts
	return m, nil
}

func newLinear(rows, cols int, s LinearSpec) (*Linear, error) {
	if s.Bits != 4 && s.Bits != 8 || s.Integer != I8 && s.Integer != U8 || s.Scale != F16 && s.Scale != F32 {
		return nil, fmt.Errorf("quant: linear of %d-bit %s with %s scales, want 4 or 8 bits, i8 or u8, f16 or f32", s.Bits, s.Integer, s.Scale)
	}
	if err := checkShape("linear", rows, cols); err != nil {
		return nil, err
	}
	if s.Granularity != PerBlock {
		s.Block = cols
	}
	if s.Block < 1 || cols%s.Block != 0 {
		return nil, fmt.Errorf("quant: linear [%d, %d]: rows are not divisible into blocks of %d", rows, cols, s.Block)
	}
	return &Linear{rows: rows, cols: cols, spec: s}, nil
}

// rowsOfScales is 1 where the whole matrix shares a scale.
func (m *Linear) rowsOfScales() int {
	if m.spec.Granularity == PerTensor {
		return 1
	}
	return m.rows
}

// Rows is the number of outputs.
func (m *Linear) Rows() int { return m.rows }

// Cols is the number of inputs.
func (m *Linear) Cols() int { return m.cols }

// Bytes is the stored size: integers, scales and offsets.
func (m *Linear) Bytes() int64 {
	return int64(len(m.parts.Data) + len(m.parts.Scale)*m.spec.Scale.Size() + PackedLen(len(m.parts.Offset), m.spec.Bits))
}

// Encoding is the bits and, for blocks, their size.
func (m *Linear) Encoding() Encoding {
	e := Encoding{DType: m.spec.Integer, Bits: m.spec.Bits}
	if m.spec.Granularity == PerBlock {
		e.Group = m.spec.Block
	}
	return e
}

// Spec is the form of the integers, Block in columns whatever the granularity.
func (m *Linear) Spec() LinearSpec { return m.spec }

// Parts are what is stored; not to be written to.
func (m *Linear) Parts() LinearParts { return m.parts }

// MulVec is the plain reference product.
func (m *Linear) MulVec(y, x []float32) { mulVecRows(y, m, x) }

// Row decodes row r.
func (m *Linear) Row(dst []float32, r int) {
	dst = dst[:m.cols]
	if m.spec.Bits == 8 && m.spec.Integer == I8 && m.spec.Granularity == PerRow && m.spec.Scale == F32 && m.parts.Offset == nil {
		kernel.DecodeI8(dst, m.parts.Data[r*m.cols:], m.parts.Scale[r])
		return
	}
	first := 0
	if m.spec.Granularity != PerTensor {
		first = r * (m.cols / m.spec.Block)
	}
	var raw [256]byte
	for done := 0; done < len(dst); done += len(raw) {
		part := raw[:min(len(raw), len(dst)-done)]
		Unpack(part, m.parts.Data, m.spec.Bits, r*m.cols+done)
		for i, b := range part {
			at := first + (done+i)/m.spec.Block
			q := m.integer(b)
			if m.parts.Offset != nil {
				q -= float32(m.parts.Offset[at])
			}
			dst[done+i] = m.spec.narrow(q * m.parts.Scale[at])
		}
	}
}

// integer widens one stored element.
func (m *Linear) integer(b byte) float32 {
	if m.spec.Integer == U8 {
		return float32(b)
	}
	return float32(int8(b<<(8-m.spec.Bits)) >> (8 - m.spec.Bits))
}

// narrow rounds to the type of the scale.
func (s LinearSpec) narrow(x float32) float32 {
	if s.Scale == F16 {
		return half.RoundF16(x)
	}
	return x
}

// Symmetry says where zero is.
type Symmetry uint8

// Symmetric ranges reach as far below zero as above and lose the lowest integer; asymmetric ones hold zero and fit the weights.
const (
	Symmetric Symmetry = iota
	Asymmetric
)

// Quantize makes the integers that coremltools' linear_quantize_weights makes, bit for bit: every step is rounded to the weights'
// type, fp16 for all but float32. The type of the scale is taken from m, whatever s says. A block of zeros has scale 0 and data
// that decode to 0, where coremltools divides 0 by 0.
func Quantize(m Matrix, s LinearSpec, symmetry Symmetry) (*Linear, error) {
	s.Scale = entryType(m)
	if s.Scale == F16 {
		m = AsF16(m)
	}
	out, err := newLinear(m.Rows(), m.Cols(), s)
	if err != nil {
		return nil, err
	}
	q := newQuantizing(m, out, symmetry)
	for first := range out.rowsOfScales() {
		rows := block{r0: first, r1: first + 1, c1: out.cols}
		if s.Granularity == PerTensor {
			rows.r1 = out.rows
		}
		for c := 0; c < out.cols; c += out.spec.Block {
			rows.c0, rows.c1 = c, c+out.spec.Block
			if err := q.block(rows); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// quantizing is one call of Quantize.
type quantizing struct {
	out      *Linear
	read     func(dst []float32, r, c int)
	symmetry Symmetry
	low, top float32 // range of the integers
	line     []float32
	bytes    []byte
}

func newQuantizing(m Matrix, out *Linear, symmetry Symmetry) *quantizing {
	q := &quantizing{out: out, read: exactReader(m, nil), symmetry: symmetry}
	q.top = float32(int(1)<<out.spec.Bits - 1)
	if out.spec.Integer == I8 {
		q.low, q.top = -(q.top+1)/2, (q.top-1)/2
	}
	if symmetry == Symmetric {
		if out.spec.Integer == I8 {
			q.low++
		} else {
			q.top--
		}
	}
	out.parts.Data = make([]byte, PackedLen(out.rows*out.cols, out.spec.Bits))
	q.line, q.bytes = make([]float32, out.spec.Block), make([]byte, out.spec.Block)
	return q
}

// block quantises the elements that share a scale.
func (q *quantizing) block(b block) error {
	least, greatest, err := q.extent(b)
	if err != nil {
		return err
	}
	s, parts := q.out.spec, &q.out.parts
	span := s.narrow(greatest - least)
	if span-span != 0 {
		return &format.Error{Got: fmt.Sprintf("weights from %g to %g", least, greatest), Want: "a range that fp16 can hold (65504)", Fix: "use smaller blocks or a palette"}
	}
	scale, offset := s.narrow(span/(q.top-q.low)), q.offset(least, greatest)
	parts.Scale = append(parts.Scale, scale)
	if q.symmetry == Asymmetric || s.Integer == U8 {
		parts.Offset = append(parts.Offset, int16(offset))
	}
	for r := b.r0; r < b.r1; r++ {
		q.read(q.line, r, b.c0)
		for i, x := range q.line {
			v := offset
			if scale != 0 {
				v += float32(math.RoundToEven(float64(s.narrow(x / scale))))
			}
			q.bytes[i] = byte(int(min(max(v, q.low), q.top)))
		}
		packAt(parts.Data, r*q.out.cols+b.c0, q.bytes, s.Bits)
	}
	return nil
}

// extent is the range to be covered.
func (q *quantizing) extent(b block) (least, greatest float32, err error) {
	least, greatest = float32(math.Inf(1)), float32(math.Inf(-1))
	for r := b.r0; r < b.r1; r++ {
		q.read(q.line, r, b.c0)
		for _, x := range q.line {
			if x-x != 0 {
				return 0, 0, &format.Error{Field: fmt.Sprintf("row %d", r), Got: "an infinite or undefined weight", Want: "finite weights",
					Fix: "leave masks and other constants that are not weights alone; scale weights beyond 65504 down"}
			}
			least, greatest = min(least, x), max(greatest, x)
		}
	}
	if q.symmetry == Symmetric {
		greatest = max(greatest, -least)
		return -greatest, greatest, nil
	}
	return min(least, 0), max(greatest, 0), nil
}

// offset is the integer that stands for zero.
func (q *quantizing) offset(least, greatest float32) float32 {
	if q.symmetry == Symmetric {
		if q.out.spec.Integer == U8 {
			return float32(int(q.top) / 2)
		}
		return 0
	}
	narrow := q.out.spec.narrow
	span := narrow(greatest - least)
	if span == 0 {
		return min(max(0, q.low), q.top)
	}
	zero := narrow(narrow(narrow(float32(q.low*greatest))-narrow(float32(q.top*least))) / span)
	return min(max(float32(math.RoundToEven(float64(zero))), q.low), q.top)
}
