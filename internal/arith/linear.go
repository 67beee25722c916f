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

// grain is how many rows a core takes at a time: some 64 K products, so that hand-over costs nothing.
func grain(w quant.Matrix, t int) int { return max(1, 1<<16/max(1, w.Cols()*t)) }
