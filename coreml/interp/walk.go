package interp

import "slices"

// walk visits the rows of arrays of one shape side by side. Dimensions that all arrays pass through evenly are one.
type walk struct {
	n     int   // elements of a row
	inner []int // per array: distance of neighbours in a row
	at    []int // per array: where the current row starts

	shape   []int   // outer dimensions, innermost first
	strides [][]int // [dimension][array]
	index   []int
	rows    int // left
	started started
}

// started says that next has been called.
type started bool

// newWalk starts a walk over arrays that all have this shape.
func newWalk(shape []int, arrays ...*array) walk {
	w := walk{n: 1, inner: make([]int, len(arrays)), at: make([]int, len(arrays)), rows: 1}
	for k, a := range arrays {
		w.at[k], w.inner[k] = a.offset, 1
	}
	merged := 0
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 1 {
			continue
		}
		w.push(shape[i], strideAt(arrays, i), &merged)
	}
	if len(w.shape) > 0 {
		w.n, w.shape = w.shape[0], w.shape[1:]
		w.inner, w.strides = w.strides[0], w.strides[1:]
	}
	for _, d := range w.shape {
		w.rows *= d
	}
	if w.n == 0 {
		w.rows = 0
	}
	w.index = make([]int, len(w.shape))
	return w
}

func strideAt(arrays []*array, axis int) []int {
	s := make([]int, len(arrays))
	for k, a := range arrays {
		s[k] = a.stride[axis]
	}
	return s
}

// push adds an outer dimension, or widens the last one.
func (w *walk) push(n int, stride []int, count *int) {
	if last := *count - 1; last >= 0 && follows(stride, w.strides[last], w.shape[last]) {
		w.shape[last] *= n
		return
	}
	w.shape, w.strides = append(w.shape, n), append(w.strides, stride)
	*count++
}

// follows reports whether, in every array, a step of the outer dimension is n steps of the inner one.
func follows(outer, inner []int, n int) bool {
	for k := range outer {
		if outer[k] != n*inner[k] {
			return false
		}
	}
	return true
}

// next goes to the next row; false when there is none.
func (w *walk) next() bool {
	if w.rows == 0 {
		return false
	}
	w.rows--
	if !w.started {
		w.started = true
		return true
	}
	for d := range w.shape {
		w.index[d]++
		if w.index[d] < w.shape[d] {
			w.move(d, 1)
			return true
		}
		w.move(d, 1-w.shape[d])
		w.index[d] = 0
	}
	return true
}

func (w *walk) move(d, steps int) {
	for k := range w.at {
		w.at[k] += steps * w.strides[d][k]
	}
}

// part is a walk over rows [lo, hi); w must not have begun.
func (w *walk) part(lo, hi int) walk {
	p := *w
	p.at, p.index, p.rows = slices.Clone(w.at), make([]int, len(w.shape)), hi-lo
	for d := range p.shape {
		p.index[d] = lo % p.shape[d]
		p.move(d, p.index[d])
		lo /= p.shape[d]
	}
	return p
}
