package interp

import (
	"math"
	"slices"

	"anelab/coreml/mil"
)

// joining puts tensors together and takes them apart.
var joining = family{"concat": concat, "stack": stack, "split": splitOp, "pad": pad, "band_part": bandPart}

func concat(c *call) {
	values := c.arrays("values")
	axis := c.axis("axis", 0, len(values[0].shape))
	shape := slices.Clone(values[0].shape)
	shape[axis] = 0
	for _, v := range values {
		shape[axis] += v.shape[axis]
	}
	out := c.blank(values[0].dtype, shape...)
	if c.flag("interleave") {
		c.interleave(out, values, axis)
		return
	}
	at := 0
	for _, v := range values {
		c.place(out.narrow(axis, at, v.shape[axis]), v)
		at += v.shape[axis]
	}
	c.yield(out)
}

// interleave takes one element of the axis from each of the values in turn; they have the same shape.
func (c *call) interleave(out *array, values []*array, axis int) {
	for i, v := range values {
		if v.shape[axis] != values[0].shape[axis] {
			c.failValue("values", v.typ().String(), "the shape of the first, to interleave")
			return
		}
		part, stride := out.narrow(axis, i, v.shape[axis]), slices.Clone(out.stride)
		stride[axis] *= len(values)
		copyInto(part.view(part.shape, stride, part.offset), v)
	}
	c.yield(out)
}

func stack(c *call) {
	values := c.arrays("values")
	axis := c.axis("axis", 0, len(values[0].shape)+1)
	out := newArray(values[0].dtype, slices.Insert(slices.Clone(values[0].shape), axis, len(values))...)
	for i, v := range values {
		part := out.narrow(axis, i, 1)
		copyInto(part.view(v.shape, slices.Delete(slices.Clone(part.stride), axis, axis+1), part.offset), v)
	}
	c.yield(out)
}

// splitOp yields views.
func splitOp(c *call) {
	x := c.array("x")
	axis := c.axis("axis", 0, len(x.shape))
	sizes := c.ints("split_sizes", nil)
	if sizes == nil {
		n := max(1, c.int("num_splits", 1))
		for range n {
			sizes = append(sizes, x.shape[axis]/n)
		}
	}
	at := 0
	for _, n := range sizes {
		if n < 0 || at+n > x.shape[axis] {
			c.failValue("split_sizes", plural(at+n, "row"), plural(x.shape[axis], "row")+" as x has")
			return
		}
		c.yield(x.narrow(axis, at, n))
		at += n
	}
}

// pad has [before, after] for each of the last dimensions, in the order of the dimensions.
func pad(c *call) {
	x, list := c.array("x"), c.ints("pad", nil)
	shape, before := slices.Clone(x.shape), make([]int, len(x.shape))
	first := len(shape) - len(list)/2
	for i := range len(list) / 2 {
		before[first+i] = list[2*i]
		shape[first+i] += list[2*i] + list[2*i+1]
	}
	mode := c.text("mode", "constant")
	if mode != "constant" {
		for axis := first; axis < len(shape); axis++ {
			x = c.mirrored(x, axis, [2]int{before[axis], shape[axis] - x.shape[axis] - before[axis]}, mode)
		}
		if c.err == nil {
			c.yield(x)
		}
		return
	}
	out := newArray(x.dtype, shape...)
	if v := c.array("constant_val"); v != nil {
		copyInto(out, v.reshape().broadcast(shape))
	}
	inside := out
	for axis, n := range x.shape {
		inside = inside.narrow(axis, before[axis], n)
	}
	copyInto(inside, x)
	c.yield(out)
}

// mirrored pads one axis with what lies behind its ends: the elements mirrored at the edge ones, or those repeated.
func (c *call) mirrored(x *array, axis int, pads [2]int, mode string) *array {
	n := x.shape[axis]
	if n == 0 || mode == "reflect" && max(pads[0], pads[1]) >= n {
		c.failValue("pad", mil.ShapeString(sizes(pads[:])), "less than the "+plural(n, "element")+" that there are to mirror")
		return x
	}
	shape := slices.Clone(x.shape)
	shape[axis] += pads[0] + pads[1]
	out := newArray(x.dtype, shape...)
	for i := range shape[axis] {
		from := i - pads[0]
		if mode == "reflect" {
			from = max(from, -from)
			from = min(from, 2*(n-1)-from)
		}
		copyInto(out.narrow(axis, i, 1), x.narrow(axis, min(max(from, 0), n-1), 1))
	}
	return out
}

// bandPart keeps the diagonal with so many below and above, all if negative.
func bandPart(c *call) {
	x := c.array("x")
	lower, upper := c.int("lower", -1), c.int("upper", -1)
	out := newArray(x.dtype, x.shape...)
	copyInto(out, x)
	rank := len(x.shape)
	rows, cols := x.shape[rank-2], x.shape[rank-1]
	for i := range out.count() {
		r, col := i/cols%rows, i%cols
		if (lower < 0 || r-col <= lower) && (upper < 0 || col-r <= upper) {
			continue
		}
		if out.isFloat() {
			out.floats[i] = 0
		} else {
			out.ints[i] = 0
		}
	}
	c.yield(out)
}

// filling makes tensors from few numbers.
var filling = family{"fill": fill, "fill_like": fillLike, "range_1d": rangeOf, "one_hot": oneHot, "non_zero": nonZero}

// filled yields a tensor of one value.
func (c *call) filled(shape []int) {
	out := newArray(c.declared(0).DType, shape...)
	if v := c.array("value"); v != nil {
		copyInto(out, v.reshape().broadcast(shape))
	}
	c.yield(out)
}

func fill(c *call)     { c.filled(c.ints("shape", nil)) }
func fillLike(c *call) { c.filled(c.value("ref_tensor").shape) }

// mostRange bounds what range_1d makes.
const mostRange = 1 << 28

func rangeOf(c *call) {
	end, start, step := c.float("end", 0), c.float("start", 0), c.float("step", 1)
	n := 0
	if step != 0 {
		n = int(min(max(0, math.Ceil((end-start)/step)), mostRange+1))
	}
	if step == 0 || n > mostRange {
		c.failValue("step", plural(n, "element"), "a step that ends")
		return
	}
	out := newArray(c.declared(0).DType, n)
	for i := range n {
		x := start + float64(float64(i)*step)
		if out.floats != nil {
			out.floats[i] = float32(x)
		} else {
			out.ints[i] = int32(x)
		}
	}
	if out.isFloat() {
		c.graph().Store(out.floats)
	}
	c.yield(out)
}

func oneHot(c *call) {
	indices, size := c.array("indices"), c.int("one_hot_vector_size", 0)
	axis := c.axis("axis", -1, len(indices.shape)+1)
	on, off := c.array("on_value"), c.array("off_value")
	shape := slices.Insert(slices.Clone(indices.shape), axis, size)
	out := newArray(c.declared(0).DType, shape...)
	if off != nil {
		copyInto(out, off.reshape().broadcast(shape))
	}
	inner := count(indices.shape[axis:])
	for i, x := range indices.flatInts() {
		if x < 0 || int(x) >= size {
			continue
		}
		at := (i/inner*size+int(x))*inner + i%inner
		switch {
		case out.floats != nil:
			out.floats[at] = float32(orOne(on))
		default:
			out.ints[at] = int32(orOne(on))
		}
	}
	c.yield(out)
}

// orOne is a scalar, 1 if it is absent.
func orOne(a *array) float64 {
	if a == nil {
		return 1
	}
	return a.number(a.offset)
}

func nonZero(c *call) {
	x := c.array("x")
	index, found := grid{shape: x.shape, blocks: x.shape}.at(0), []int32{}
	for _, v := range toFloats(x) {
		if v != 0 {
			for _, i := range index.index {
				found = append(found, int32(i))
			}
		}
		index.next()
	}
	c.yield(ofInts(c.declared(0).DType, found, len(found)/max(1, len(x.shape)), len(x.shape)))
}
