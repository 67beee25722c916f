package quant

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"anelab/internal/half"
)

// Sparse is a matrix of which only the elements that are not zero are stored, Core ML's constexpr_sparse_to_dense: one bit per
// element, and the values where it is set, row-major.
type Sparse struct {
	rows, cols int
	dtype      DType
	mask       []byte // one bit per element, packed as by Pack
	values     []byte // of dtype, little-endian
	before     []int  // [rows]: values in earlier rows
}

// NewSparse views a mask and values of type F16 or F32 as a matrix.
func NewSparse(rows, cols int, mask []byte, values Tensor) (*Sparse, error) {
	if err := checkShape("sparse", rows, cols); err != nil {
		return nil, err
	}
	if len(mask) != PackedLen(rows*cols, 1) {
		return nil, fmt.Errorf("quant: sparse [%d, %d]: %d mask bytes, want %d", rows, cols, len(mask), PackedLen(rows*cols, 1))
	}
	if values.DType != F16 && values.DType != F32 {
		return nil, fmt.Errorf("quant: sparse values of type %s, want f16 or f32", values.DType)
	}
	m := &Sparse{rows: rows, cols: cols, dtype: values.DType, mask: mask, values: values.Data, before: make([]int, rows)}
	n, bits := 0, make([]byte, cols)
	for r := range rows {
		m.before[r] = n
		Unpack(bits, mask, 1, r*cols)
		for _, b := range bits {
			n += int(b)
		}
	}
	if len(values.Data) != n*values.DType.Size() {
		return nil, fmt.Errorf("quant: sparse [%d, %d]: %d value bytes, want %d for the %d bits set", rows, cols, len(values.Data), n*values.DType.Size(), n)
	}
	return m, nil
}

// Rows is the number of outputs.
func (m *Sparse) Rows() int { return m.rows }

// Cols is the number of inputs.
func (m *Sparse) Cols() int { return m.cols }

// Bytes is the size of mask and values.
func (m *Sparse) Bytes() int64 { return int64(len(m.mask) + len(m.values)) }

// Encoding is the type of the values.
func (m *Sparse) Encoding() Encoding { return Encoding{DType: m.dtype, Bits: 8 * m.dtype.Size()} }

// Mask is one bit per element; not to be written to.
func (m *Sparse) Mask() []byte { return m.mask }

// Values are the elements whose bit is set.
func (m *Sparse) Values() Tensor {
	return Tensor{DType: m.dtype, Shape: []int{len(m.values) / m.dtype.Size()}, Data: m.values}
}

// MulVec is the plain reference product.
func (m *Sparse) MulVec(y, x []float32) { mulVecRows(y, m, x) }

// Row decodes row r.
func (m *Sparse) Row(dst []float32, r int) {
	dst = dst[:m.cols]
	next := m.before[r]
	var bits [256]byte
	for done := 0; done < len(dst); done += len(bits) {
		part := bits[:min(len(bits), len(dst)-done)]
		Unpack(part, m.mask, 1, r*m.cols+done)
		for i, b := range part {
			dst[done+i] = 0
			if b == 1 {
				dst[done+i] = m.value(next)
				next++
			}
		}
	}
}

func (m *Sparse) value(i int) float32 {
	if m.dtype == F16 {
		return half.F16ToF32(binary.LittleEndian.Uint16(m.values[2*i:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(m.values[4*i:]))
}

// PruneThreshold drops the elements of magnitude at most limit, rounded to the weights' type.
func PruneThreshold(m Matrix, limit float32) *Sparse {
	s := newPruning(m)
	limit = s.narrow(limit)
	return s.keep(func(line []float32, r int) {
		for i, x := range line {
			if abs(x) <= limit {
				line[i] = 0
			}
		}
	})
}

// PruneMagnitude drops the smallest elements, a share of all between 0 and 1. As in coremltools the limit is numpy's percentile of
// the magnitudes, which is interpolated, and elements equal to it go too.
func PruneMagnitude(m Matrix, share float64) (*Sparse, error) {
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("quant: prune a share of %g, want 0 to 1", share)
	}
	limit := float32(-1)
	switch share {
	case 0:
	case 1:
		limit = float32(math.Inf(1))
	default:
		limit = newPruning(m).percentile(share)
	}
	return PruneThreshold(m, limit), nil
}

// PruneNOfM keeps all but the n smallest of every m neighbours in a row; a run of fewer at the end counts as filled up with zeros.
// Of equals the first go.
func PruneNOfM(w Matrix, n, m int) (*Sparse, error) {
	if n < 0 || m < 1 || n > m || m > w.Cols()/2 {
		return nil, fmt.Errorf("quant: prune %d of %d in rows of %d, want at most half a row", n, m, w.Cols())
	}
	order := make([]int, m)
	return newPruning(w).keep(func(line []float32, r int) {
		for at := 0; at < len(line); at += m {
			run := line[at:min(at+m, len(line))]
			size := func(i int) float32 {
				if i < len(run) {
					return abs(run[i])
				}
				return 0
			}
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(a), size(b)) })
			for _, i := range order[:n] {
				if i < len(run) {
					run[i] = 0
				}
			}
		}
	}), nil
}

// pruning reads weights in their own type.
type pruning struct {
	m    Matrix
	read func(dst []float32, r, c int)
	half bool
}

func newPruning(m Matrix) *pruning {
	p := &pruning{half: entryType(m) == F16, m: m}
	if p.half {
		p.m = AsF16(m)
	}
	p.read = exactReader(p.m, nil)
	return p
}

func (p *pruning) narrow(x float32) float32 {
	if p.half {
		return half.RoundF16(x)
	}
	return x
}

// keep stores what drop leaves of every row.
func (p *pruning) keep(drop func(line []float32, r int)) *Sparse {
	rows, cols := p.m.Rows(), p.m.Cols()
	s := &Sparse{rows: rows, cols: cols, dtype: F32, mask: make([]byte, PackedLen(rows*cols, 1)), before: make([]int, rows)}
	if p.half {
		s.dtype = F16
	}
	line, bits := make([]float32, cols), make([]byte, cols)
	for r := range rows {
		s.before[r] = len(s.values) / s.dtype.Size()
		p.read(line, r, 0)
		drop(line, r)
		for i, x := range line {
			bits[i] = 0
			if x != 0 {
				bits[i] = 1
				s.append(x)
			}
		}
		packAt(s.mask, r*cols, bits, 1)
	}
	return s
}

func (m *Sparse) append(x float32) {
	if m.dtype == F16 {
		m.values = binary.LittleEndian.AppendUint16(m.values, half.F32ToF16(x))
	} else {
		m.values = binary.LittleEndian.AppendUint32(m.values, math.Float32bits(x))
	}
}

// percentile is numpy's linear percentile of the magnitudes, in the weights' type.
func (p *pruning) percentile(share float64) float32 {
	cols := p.m.Cols()
	all := make([]float32, p.m.Rows()*cols)
	for r := range p.m.Rows() {
		p.read(all[r*cols:(r+1)*cols], r, 0)
	}
	for i, x := range all {
		all[i] = abs(x)
	}
	slices.Sort(all)
	at := p.position(share, len(all)-1)
	low := int(at)
	if low+1 >= len(all) {
		return all[len(all)-1]
	}
	return p.between(all[low], all[low+1], at-float64(low))
}

// position is where in 0 … last a share falls. numpy computes it in the type of the weights: with fp16 every second position
// exists beyond 2048, and beyond 65504 none, where coremltools prunes everything and this does not.
func (p *pruning) position(share float64, last int) float64 {
	if at := p.narrow(p.narrow(float32(last)) * p.narrow(p.narrow(float32(share*100))/100)); at-at == 0 {
		return float64(at)
	}
	return share * float64(last)
}

// between interpolates as numpy does: from the nearer end.
func (p *pruning) between(a, b float32, t float64) float32 {
	step, part := p.narrow(b-a), p.narrow(float32(t))
	if t >= 0.5 {
		return p.narrow(b - p.narrow(float32(step*p.narrow(1-part))))
	}
	return p.narrow(a + p.narrow(float32(step*part)))
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }
