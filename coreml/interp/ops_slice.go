package interp

import (
	"fmt"

	"anelab/coreml/mil"
)

// slicing takes or replaces a part of a tensor.
var slicing = family{"slice_by_index": sliceByIndex, "slice_by_size": sliceBySize, "slice_update": sliceUpdate, "sliding_windows": slidingWindows, "crop": crop}

// spans resolves begin, end, stride and masks for the shape of x.
func (c *call) spans(x *array) []mil.Span {
	wide := func(param string) []int64 {
		if c.value(param) == nil {
			return nil
		}
		return sizes(c.ints(param, []int{}))
	}
	s := mil.Slice{Begin: wide("begin"), End: wide("end"), Stride: wide("stride"), BeginMask: wide("begin_mask"),
		EndMask: wide("end_mask"), SqueezeMask: wide("squeeze_mask")}
	spans, err := s.Spans(sizes(x.shape))
	if err != nil {
		c.failValue("begin", err.Error(), "a part of "+mil.ShapeString(sizes(x.shape)))
	}
	return spans
}

func sliceByIndex(c *call) {
	x := c.array("x")
	if spans := c.spans(x); c.err == nil {
		c.yield(x.slice(spans))
	}
}

// sliceBySize: a size of −1 takes the rest.
func sliceBySize(c *call) {
	x := c.array("x")
	begin, size := c.ints("begin", nil), c.ints("size", nil)
	if len(begin) != len(x.shape) || len(size) != len(x.shape) {
		c.failValue("begin", plural(len(begin), "entry"), plural(len(x.shape), "entry"))
		return
	}
	for axis, n := range size {
		lo := fromEnd(begin[axis], x.shape[axis])
		if n == -1 {
			n = x.shape[axis] - lo
		}
		if lo < 0 || n < 0 || lo+n > x.shape[axis] {
			c.failValue("begin", fmt.Sprintf("[%d, %d) in dimension %d", lo, lo+n, axis), fmt.Sprintf("a part of [0, %d)", x.shape[axis]))
			return
		}
		x = x.narrow(axis, lo, n)
	}
	c.yield(x)
}

// sliceUpdate is a copy of x with a part replaced. A part that lies beyond x is a mistake, such as a position behind the end of a
// cache; it would be lost without a word.
func sliceUpdate(c *call) {
	x, update := c.array("x"), c.array("update")
	spans := c.spans(x)
	if c.err != nil {
		return
	}
	out := c.blank(x.dtype, x.shape...)
	c.place(out, x)
	part := out.slice(spans)
	if part.count() == 0 && update.count() > 0 {
		got := fmt.Sprintf("begin %v, end %v", c.ints("begin", nil), c.ints("end", nil))
		c.failValue("begin", got, "a part of "+mil.ShapeString(sizes(x.shape)))
		return
	}
	if shape := c.stretch(part, update); c.err == nil && count(shape) == part.count() {
		copyInto(part, update.reshape(tail(update.shape, len(part.shape))...).broadcast(part.shape))
		c.yield(out)
		return
	}
	c.failValue("update", update.typ().String(), mil.ShapeString(sizes(part.shape))+", the part that is replaced")
}

// tail is the last n dimensions; those before are 1.
func tail(shape []int, n int) []int { return shape[max(0, len(shape)-n):] }

func slidingWindows(c *call) {
	x := c.array("x")
	axis, size, step := c.axis("axis", 0, len(x.shape)), c.int("size", 1), max(1, c.int("stride", 1))
	n := (x.shape[axis]-size)/step + 1
	if size > x.shape[axis] || size < 1 {
		c.failValue("size", fmt.Sprint(size), fmt.Sprintf("1 to %d", x.shape[axis]))
		return
	}
	var shape, stride []int
	for i, d := range x.shape {
		if i == axis {
			shape, stride = append(shape, n, size), append(stride, x.stride[i]*step, x.stride[i])
			continue
		}
		shape, stride = append(shape, d), append(stride, x.stride[i])
	}
	c.yield(x.view(shape, stride, x.offset))
}

func crop(c *call) {
	x := c.array("x")
	for i, edges := range [][]int{c.ints("crop_height", nil), c.ints("crop_width", nil)} {
		axis := len(x.shape) - 2 + i
		x = x.narrow(axis, edges[0], x.shape[axis]-edges[0]-edges[1])
	}
	c.yield(x)
}
