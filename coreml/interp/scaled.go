package interp

import (
	"anelab/coreml/mil"
	"anelab/internal/half"
	"anelab/quant"
)

// scaled is a constant of numbers that are multiplied with scales block by block, after an offset is subtracted
// (constexpr_blockwise_shift_scale and, with one block per channel, constexpr_affine_dequantize).
type scaled struct {
	grid   // of the scales
	data   numbers
	dtype  mil.DType // that results are rounded to: of the scales, unless nothing is rounded
	scale  []float32 // per block
	offset []float32 // per block; nil for 0
}

// numbers are elements of any type, packed or already decoded.
type numbers struct {
	dtype  mil.DType
	packed []byte    // nil if decoded
	floats []float32 // decoded
}

func (n numbers) at(i int) float32 {
	switch {
	case n.packed == nil:
		return n.floats[i]
	case n.dtype.IsFloat():
		return float32(mil.Float(n.dtype, n.packed, int64(i)))
	}
	return float32(mil.Element(n.dtype, n.packed, int64(i)))
}

func (s *scaled) count() int { return count(s.shape) }

func (s *scaled) read(dst []float32, first int) {
	c := s.grid.at(first)
	for i := range dst {
		x := s.data.at(first + i)
		if s.offset != nil {
			x -= s.offset[c.block]
		}
		dst[i] = s.narrow(x * s.scale[c.block])
		c.next()
	}
}

// narrow rounds to the type of the result.
func (s *scaled) narrow(x float32) float32 {
	if s.dtype == mil.Float16 {
		return half.RoundF16(x)
	}
	return x
}

// form is the constant as quant has it: a scale per row, or per run of columns where those are one dimension.
func (s *scaled) form(rows, cols int) quant.Matrix {
	bits, scale := s.data.dtype.Bits(), quant.F32
	if s.dtype == mil.Float16 {
		scale = quant.F16
	}
	if s.data.packed == nil || !s.data.dtype.IsInt() || bits != 4 && bits != 8 || len(s.shape) < 2 || s.shape[0] != rows {
		return nil
	}
	runs := s.blocks[1]
	if s.blocks[0] != rows || count(s.blocks) != rows*runs || runs > 1 && s.shape[1] != cols {
		return nil
	}
	spec := quant.LinearSpec{Integer: quant.U8, Bits: bits, Granularity: quant.PerBlock, Block: cols / runs, Scale: scale}
	if s.data.dtype.IsSigned() {
		spec.Integer = quant.I8
	}
	parts := quant.LinearParts{Data: s.data.packed, Scale: s.scale}
	for _, x := range s.offset {
		parts.Offset = append(parts.Offset, int16(x))
	}
	m, err := quant.NewLinear(rows, cols, spec, parts)
	if err != nil {
		return nil
	}
	return m
}
