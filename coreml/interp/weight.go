package interp

import (
	"sync"

	"anelab/quant"
)

// source yields the elements of a constant from where they are stored.
type source interface {
	count() int
	read(dst []float32, first int) // elements [first, first+len(dst)), row-major
}

// formed is implemented by sources that know a matrix of their own for some shapes.
type formed interface {
	form(rows, cols int) quant.Matrix // nil if there is none
}

// weight is a floating constant in its stored form. Values of different shape may share it, and so may functions.
type weight struct {
	source
	mu       sync.Mutex
	floats   []float32            // decoded, once an op has asked for elements
	matrices map[int]quant.Matrix // by rows
}

// dense decodes all elements; they stay decoded.
func (w *weight) dense() []float32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.floats == nil {
		w.floats = make([]float32, w.count())
		w.read(w.floats, 0)
	}
	return w.floats
}

// matrix is the constant as a matrix of so many rows, in the form that multiplies fastest.
func (w *weight) matrix(rows int) quant.Matrix {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.matrices[rows]; m != nil {
		return m
	}
	m := w.form(rows)
	if w.matrices == nil {
		w.matrices = map[int]quant.Matrix{}
	}
	w.matrices[rows] = m
	return m
}

func (w *weight) form(rows int) quant.Matrix {
	cols := w.count() / max(rows, 1)
	if f, ok := w.source.(formed); ok {
		if m := f.form(rows, cols); m != nil {
			if p, ok := m.(*quant.Palette); ok {
				if packed, ok := quant.Pack4(p); ok {
					return packed
				}
			}
			return m
		}
	}
	return &reading{w.source, rows, cols}
}

// reading is the matrix of a source that has no better form: rows are decoded as they are asked for.
type reading struct {
	source
	rows, cols int
}

// Rows implements quant.Matrix.
func (r *reading) Rows() int { return r.rows }

// Cols implements quant.Matrix.
func (r *reading) Cols() int { return r.cols }

// Bytes implements quant.Matrix; the stored size is not known here.
func (r *reading) Bytes() int64 { return 0 }

// Encoding implements quant.Matrix.
func (r *reading) Encoding() quant.Encoding { return quant.DenseF32 }

// Row implements quant.Matrix.
func (r *reading) Row(dst []float32, i int) { r.read(dst[:r.cols], i*r.cols) }

// MulVec implements quant.Matrix.
func (r *reading) MulVec(y, x []float32) { mulVec(y, r, x) }

// part is the rows [lo, lo+n) of a matrix: one group of a convolution.
type part struct {
	quant.Matrix
	lo, n int
}

// Rows implements quant.Matrix.
func (p *part) Rows() int { return p.n }

// Row implements quant.Matrix.
func (p *part) Row(dst []float32, i int) { p.Matrix.Row(dst, p.lo+i) }

// MulVec implements quant.Matrix.
func (p *part) MulVec(y, x []float32) { mulVec(y, p, x) }

// stored is a constant of floating-point numbers, one after the other.
type stored struct {
	dtype quant.DType // F16, BF16 or F32
	data  []byte
}

func (s *stored) count() int { return len(s.data) / s.dtype.Size() }

func (s *stored) form(rows, cols int) quant.Matrix {
	m, err := quant.Dense(quant.Tensor{DType: s.dtype, Shape: []int{rows, cols}, Data: s.data})
	if err != nil {
		return nil
	}
	return m
}

func (s *stored) read(dst []float32, first int) {
	n := s.dtype.Size()
	t := quant.Tensor{DType: s.dtype, Shape: []int{1, len(dst)}, Data: s.data[first*n : (first+len(dst))*n]}
	if m, err := quant.Dense(t); err == nil {
		m.Row(dst, 0)
	}
}

// listed is a constant that is held decoded.
type listed []float32

func (l listed) count() int { return len(l) }

func (l listed) read(dst []float32, first int) { copy(dst, l[first:]) }

func (l listed) form(rows, _ int) quant.Matrix { return rowsOf(l, rows) }
