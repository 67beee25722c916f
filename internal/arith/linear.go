package arith

import (
	"sync"

	"anelab/quant"
)

// rowBuffers holds scratch for one decoded weight row, so that a steady decode step allocates nothing.
var rowBuffers = sync.Pool{New: func() any { return new([]float32) }}

// rowBuffer returns a buffer of at least n values.
func rowBuffer(n int) *[]float32 {
	buf := rowBuffers.Get().(*[]float32)
	if cap(*buf) < n {
		*buf = make([]float32, n)
	}
	*buf = (*buf)[:cap(*buf)]
	return buf
}

func checkLinear(y []float32, w quant.Matrix, x []float32, t int) {
	if len(x) != t*w.Cols() || len(y) != t*w.Rows() {
		panic("arith: Linear: want x [t, Cols] and y [t, Rows]")
	}
}

// grain is how many rows a core takes at a time: a multiple of 4, some 64 K products, so that hand-over costs nothing.
func grain(w quant.Matrix, t int) int { return (max(1, 1<<16/max(1, w.Cols()*t)) + 3) &^ 3 }

// wideBuffers holds scratch for float64 sums.
var wideBuffers = sync.Pool{New: func() any { return new([]float64) }}

// wideBuffer returns a buffer of at least n values.
func wideBuffer(n int) *[]float64 {
	buf := wideBuffers.Get().(*[]float64)
	if cap(*buf) < n {
		*buf = make([]float64, n)
	}
	*buf = (*buf)[:cap(*buf)]
	return buf
}

// decode4 decodes rows r, r+1, … of m into w [4, Cols], at most 4 and below hi; it returns how many. The rest of w keeps what
// it held, and the caller drops those products.
func decode4(w []float32, m quant.Matrix, r, hi int) int {
	cols, n := m.Cols(), min(4, hi-r)
	for i := range n {
		m.Row(w[i*cols:(i+1)*cols], r+i)
	}
	return n
}

// block is how many rows of x go through a group of weight rows at a time, so that they stay in the second-level cache.
func block(cols int) int { return max(4, 1<<18/cols&^3) }
