package interp

import (
	"fmt"
	"slices"
)

// gathering picks elements by index. Negative indices count from the end.
var gathering = family{"gather": gather, "gather_along_axis": gatherAlong, "gather_nd": gatherND}

// index resolves an index among n; false after a failure.
func (c *call) index(i int32, n int) (int, bool) {
	at := fromEnd(int(i), n)
	if at < 0 || at >= n {
		c.failValue("indices", fmt.Sprint(i), fmt.Sprintf("-%d to %d", n, n-1))
		return 0, false
	}
	return at, true
}

// gather replaces the axis by the dimensions of indices.
func gather(c *call) {
	indices, batch := c.array("indices"), c.int("batch_dims", 0)
	v := c.value("x")
	axis := c.axis("axis", 0, len(v.shape))
	shape := slices.Concat(v.shape[:axis], indices.shape[batch:], v.shape[axis+1:])
	if v.weight != nil && axis == 0 && batch == 0 {
		c.gatherRows(v, indices.flatInts(), shape)
		return
	}
	x := c.array("x").contiguous()
	n, inner := x.shape[axis], count(x.shape[axis+1:])
	between, each := count(x.shape[batch:axis]), count(indices.shape[batch:])
	out, list, at := newArray(x.dtype, shape...), indices.flatInts(), 0
	for outer := range count(x.shape[:axis]) {
		b := outer / max(between, 1)
		for _, i := range list[b*each : (b+1)*each] {
			k, ok := c.index(i, n)
			if !ok {
				return
			}
			out.put(at, x, (outer*n+k)*inner, inner)
			at += inner
		}
	}
	c.yield(out)
}

// put copies n elements of a contiguous array.
func (a *array) put(at int, src *array, from, n int) {
	if a.isFloat() {
		copy(a.floats[at:at+n], src.floats[src.offset+from:])
	} else {
		copy(a.ints[at:at+n], src.ints[src.offset+from:])
	}
}

// gatherRows decodes the rows that are asked for, and no others.
func (c *call) gatherRows(v *value, indices []int32, shape []int) {
	table, out := v.weight.matrix(v.shape[0]), newArray(v.dtype, shape...)
	width := table.Cols()
	for at, i := range indices {
		k, ok := c.index(i, table.Rows())
		if !ok {
			return
		}
		table.Row(out.floats[at*width:(at+1)*width], k)
	}
	c.yield(out)
}

// gatherAlong has the shape of indices, which agrees with x except along the axis.
func gatherAlong(c *call) {
	x, indices := c.array("x").contiguous(), c.array("indices")
	axis := c.axis("axis", 0, len(x.shape))
	n, m, inner := x.shape[axis], indices.shape[axis], count(x.shape[axis+1:])
	out := newArray(x.dtype, indices.shape...)
	for at, i := range indices.flatInts() {
		k, ok := c.index(i, n)
		if !ok {
			return
		}
		out.put(at, x, (at/(m*inner)*n+k)*inner+at%inner, 1)
	}
	c.yield(out)
}

// gatherND: the last dimension of indices holds coordinates in the dimensions of x after the batch dimensions.
func gatherND(c *call) {
	x, indices, batch := c.array("x").contiguous(), c.array("indices"), c.int("batch_dims", 0)
	rank := len(indices.shape)
	depth := indices.shape[rank-1]
	inner := count(x.shape[batch+depth:])
	out := newArray(x.dtype, slices.Concat(indices.shape[:rank-1], x.shape[batch+depth:])...)
	perBatch := count(indices.shape[batch : rank-1])
	for at, list := 0, indices.flatInts(); len(list) > 0; at, list = at+1, list[depth:] {
		from, ok := c.coordinates(at/max(perBatch, 1), list[:depth], x.shape[batch:batch+depth])
		if !ok {
			return
		}
		out.put(at*inner, x, from*inner, inner)
	}
	c.yield(out)
}

// coordinates is the row-major place of an index of several dimensions, behind an outer index.
func (c *call) coordinates(outer int, index []int32, shape []int) (int, bool) {
	at := outer
	for d, i := range index {
		k, ok := c.index(i, shape[d])
		if !ok {
			return 0, false
		}
		at = at*shape[d] + k
	}
	return at, true
}

// scattering puts updates where indices say, in order.
var scattering = family{"scatter": scatter, "scatter_along_axis": scatterAlong, "scatter_nd": scatterND}

// combiners are the modes of scatter.
var combiners = map[string]func(old, x float64) float64{
	"add": func(old, x float64) float64 { return old + x }, "sub": func(old, x float64) float64 { return old - x },
	"mul": func(old, x float64) float64 { return old * x }, "div": func(old, x float64) float64 { return old / x },
	"max": func(old, x float64) float64 { return max(old, x) }, "min": func(old, x float64) float64 { return min(old, x) },
	"update": func(_, x float64) float64 { return x },
}

// scattered is a copy of data under change.
type scattered struct {
	*array
	updates *array
	combine func(old, x float64) float64
}

func (c *call) scattered() scattered {
	data, out := c.array("data"), newArray(c.declared(0).DType, c.value("data").shape...)
	copyInto(out, data)
	return scattered{out, c.array("updates").contiguous(), combiners[c.text("mode", "add")]}
}

// apply combines n elements.
func (s scattered) apply(at, from, n int) {
	for i := range n {
		x := s.combine(s.number(at+i), s.updates.number(s.updates.offset+from+i))
		if s.isFloat() {
			s.floats[at+i] = float32(x)
		} else {
			s.ints[at+i] = int32(x)
		}
	}
}

// finish yields the result, rounded once.
func (s scattered) finish(c *call) {
	if s.isFloat() {
		c.graph().Store(s.floats)
	}
	c.yield(s.array)
}

func scatter(c *call) {
	s, indices := c.scattered(), c.array("indices").flatInts()
	axis := c.axis("axis", 0, len(s.shape))
	n, inner := s.shape[axis], count(s.shape[axis+1:])
	for outer := range count(s.shape[:axis]) {
		for j, i := range indices {
			k, ok := c.index(i, n)
			if !ok {
				return
			}
			s.apply((outer*n+k)*inner, (outer*len(indices)+j)*inner, inner)
		}
	}
	s.finish(c)
}

func scatterAlong(c *call) {
	s, indices := c.scattered(), c.array("indices")
	axis := c.axis("axis", 0, len(s.shape))
	n, m, inner := s.shape[axis], indices.shape[axis], count(s.shape[axis+1:])
	for at, i := range indices.flatInts() {
		k, ok := c.index(i, n)
		if !ok {
			return
		}
		s.apply((at/(m*inner)*n+k)*inner+at%inner, at, 1)
	}
	s.finish(c)
}

func scatterND(c *call) {
	s, indices := c.scattered(), c.array("indices")
	depth := indices.shape[len(indices.shape)-1]
	inner := count(s.shape[depth:])
	for at, list := 0, indices.flatInts(); len(list) > 0; at, list = at+1, list[depth:] {
		to, ok := c.coordinates(0, list[:depth], s.shape[:depth])
		if !ok {
			return
		}
		s.apply(to*inner, at*inner, inner)
	}
	s.finish(c)
}
