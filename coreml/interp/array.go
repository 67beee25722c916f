package interp

import (
	"slices"

	"anelab/coreml/mil"
)

// array is a tensor while a program runs: a view of elements that are never written to once the array is the result of an op.
// Element (i, j, …) is at offset + i·stride[0] + j·stride[1] + … of floats or ints; a stride of 0 repeats.
type array struct {
	dtype         mil.DType
	shape, stride []int
	offset        int
	floats        []float32
	ints          []int32
	buffer        *buffer // that floats are borrowed from; nil if they are the array's own
}

// newArray is a row-major array of zeros.
func newArray(d mil.DType, shape ...int) *array {
	a := &array{dtype: d, shape: shape, stride: rowMajor(shape)}
	if d.IsFloat() {
		a.floats = make([]float32, count(shape))
	} else {
		a.ints = make([]int32, count(shape))
	}
	return a
}

func ofFloats(d mil.DType, x []float32, shape ...int) *array {
	return &array{dtype: d, shape: shape, stride: rowMajor(shape), floats: x}
}

func ofInts(d mil.DType, x []int32, shape ...int) *array {
	return &array{dtype: d, shape: shape, stride: rowMajor(shape), ints: x}
}

func ofTensor(t *Tensor) *array {
	return &array{dtype: t.DType, shape: t.Shape, stride: rowMajor(t.Shape), floats: t.Floats, ints: t.Ints}
}

// tensor is the array as a tensor, which may share its elements.
func (a *array) tensor() *Tensor {
	a = a.contiguous()
	n := a.count()
	t := &Tensor{DType: a.dtype, Shape: a.shape}
	if a.floats != nil {
		t.Floats = a.floats[a.offset : a.offset+n : a.offset+n]
	} else {
		t.Ints = a.ints[a.offset : a.offset+n : a.offset+n]
	}
	return t
}

func rowMajor(shape []int) []int {
	stride := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		stride[i] = n
		n *= shape[i]
	}
	return stride
}

func (a *array) count() int { return count(a.shape) }

func (a *array) isFloat() bool { return a.dtype.IsFloat() }

// typ is the type of the array.
func (a *array) typ() mil.Type { return mil.TensorOf(a.dtype, sizes(a.shape)...) }

// view is another view of the same elements.
func (a *array) view(shape, stride []int, offset int) *array {
	return &array{dtype: a.dtype, shape: shape, stride: stride, offset: offset, floats: a.floats, ints: a.ints, buffer: a.buffer}
}

// isContiguous reports whether the elements follow one another in row-major order.
func (a *array) isContiguous() bool {
	n := 1
	for i := len(a.shape) - 1; i >= 0; i-- {
		if a.shape[i] != 1 && a.stride[i] != n {
			return false
		}
		n *= a.shape[i]
	}
	return true
}

// contiguous is the array itself, or a row-major copy.
func (a *array) contiguous() *array {
	if a.isContiguous() {
		return a
	}
	b := newArray(a.dtype, a.shape...)
	copyInto(b, a)
	return b
}

// flat is the elements in row-major order, not to be written to.
func (a *array) flat() []float32 {
	c := a.contiguous()
	return c.floats[c.offset : c.offset+c.count()]
}

// flatInts is flat for integers.
func (a *array) flatInts() []int32 {
	c := a.contiguous()
	return c.ints[c.offset : c.offset+c.count()]
}

// reshape is the elements in row-major order under another shape: a view where that is possible, a copy otherwise.
func (a *array) reshape(shape ...int) *array {
	if stride, ok := a.regrouped(shape); ok {
		return a.view(shape, stride, a.offset)
	}
	c := a.contiguous()
	return c.view(shape, rowMajor(shape), c.offset)
}

// regrouped finds strides for another shape of as many elements. Old and new dimensions are matched run by run; the old ones of a
// run must be one even row.
func (a *array) regrouped(shape []int) (stride []int, ok bool) {
	if a.count() == 0 {
		return nil, false
	}
	old := a.withoutOnes()
	stride = make([]int, len(shape))
	for i, j := 0, 0; i < len(old.shape) && j < len(shape); {
		first, start, have, want := i, j, old.shape[i], shape[j]
		for i, j = i+1, j+1; have != want; {
			if want < have {
				want *= shape[j]
				j++
			} else {
				have *= old.shape[i]
				i++
			}
		}
		for k := first; k+1 < i; k++ {
			if old.stride[k] != old.stride[k+1]*old.shape[k+1] {
				return nil, false
			}
		}
		step := old.stride[i-1]
		for k := j - 1; k >= start; k-- {
			stride[k] = step
			step *= shape[k]
		}
	}
	return stride, true
}

// withoutOnes drops dimensions of size 1.
func (a *array) withoutOnes() *array {
	var shape, stride []int
	for i, n := range a.shape {
		if n != 1 {
			shape, stride = append(shape, n), append(stride, a.stride[i])
		}
	}
	return a.view(shape, stride, a.offset)
}

// permute orders the axes anew.
func (a *array) permute(perm []int) *array {
	shape, stride := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		shape[i], stride[i] = a.shape[p], a.stride[p]
	}
	return a.view(shape, stride, a.offset)
}

// toLast moves axes to the end, in order; back is the permutation that undoes it.
func (a *array) toLast(axes []int) (moved *array, back []int) {
	perm := make([]int, 0, len(a.shape))
	for i := range a.shape {
		if !slices.Contains(axes, i) {
			perm = append(perm, i)
		}
	}
	perm = append(perm, axes...)
	back = make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	return a.permute(perm), back
}

// broadcast stretches dimensions of size 1; the shape must admit it.
func (a *array) broadcast(shape []int) *array {
	stride := make([]int, len(shape))
	lead := len(shape) - len(a.shape)
	for i, n := range a.shape {
		if n == shape[lead+i] {
			stride[lead+i] = a.stride[i]
		}
	}
	return a.view(shape, stride, a.offset)
}

// narrow is the part [lo, lo+n) of an axis.
func (a *array) narrow(axis, lo, n int) *array {
	shape := slices.Clone(a.shape)
	shape[axis] = n
	return a.view(shape, a.stride, a.offset+lo*a.stride[axis])
}

// slice is the part that spans take, without the dimensions they squeeze.
func (a *array) slice(spans []mil.Span) *array {
	var shape, stride []int
	offset := a.offset
	for i, s := range spans {
		if s.Count > 0 {
			offset += int(s.Begin) * a.stride[i]
		}
		if !s.Squeeze {
			shape, stride = append(shape, int(s.Count)), append(stride, a.stride[i]*int(s.Step))
		}
	}
	return a.view(shape, stride, offset)
}

// place is copyInto with the work shared among cores where there is much of it.
func (c *call) place(dst, src *array) {
	w := newWalk(dst.shape, dst, src)
	if w.n*w.rows < parallelFrom || !dst.isFloat() || w.n == 0 {
		copyInto(dst, src)
		return
	}
	g := c.numerics.narrow
	if w.rows > 1 {
		g.Parallel(w.rows, max(1, parallelFrom/2/w.n), blocks(func(lo, hi int) {
			part := w.part(lo, hi)
			copyRows(&part, dst.floats, src.floats)
		}))
		return
	}
	to, from := w.inner[0], w.inner[1]
	spread(g, w.n, func(lo, hi int) {
		part := walk{n: hi - lo, inner: w.inner, at: []int{w.at[0] + lo*to, w.at[1] + lo*from}, rows: 1}
		copyRows(&part, dst.floats, src.floats)
	})
}

// copyInto writes src to the elements that dst views; the shapes are the same.
func copyInto(dst, src *array) {
	w := newWalk(dst.shape, dst, src)
	if dst.isFloat() {
		copyRows(&w, dst.floats, src.floats)
	} else {
		copyRows(&w, dst.ints, src.ints)
	}
}

func copyRows[T float32 | int32](w *walk, dst, src []T) {
	to, from := w.inner[0], w.inner[1]
	for w.next() {
		d, s := w.at[0], w.at[1]
		switch {
		case to == 1 && from == 1:
			copy(dst[d:d+w.n], src[s:s+w.n])
		case to == 1 && from == 0:
			row, x := dst[d:d+w.n], src[s]
			for i := range row {
				row[i] = x
			}
		default:
			for range w.n {
				dst[d] = src[s]
				d += to
				s += from
			}
		}
	}
}
