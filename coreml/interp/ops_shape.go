package interp

import (
	"slices"

	"anelab/coreml/mil"
)

// shapes are ops that arrange the same elements anew. Those that can, yield a view.
var shapes = family{
	"identity":    func(c *call) { c.yieldValue(c.value("x")) },
	"reshape":     reshape,
	"squeeze":     squeeze,
	"expand_dims": expandDims,
	"flatten2d":   flatten,
	"transpose":   transpose,
	"reverse":     reverse,
	"tile":        tile,
	"shape":       shapeOp,

	"depth_to_space": depthToSpace, "space_to_depth": spaceToDepth, "pixel_shuffle": pixelShuffle, "pixel_unshuffle": pixelUnshuffle,
}

// yieldReshaped yields x under another shape.
func (c *call) yieldReshaped(shape []int) {
	v, err := c.value("x").reshaped(shape)
	if err != nil {
		c.fail(err)
		return
	}
	c.yieldValue(v)
}

// reshape: one −1 stands for what is left, a 0 copies the dimension of x.
func reshape(c *call) {
	x := c.value("x").shape
	shape, rest, product := c.ints("shape", nil), -1, 1
	for i, n := range shape {
		if n == 0 && i < len(x) {
			shape[i] = x[i]
		}
		if n == -1 {
			rest = i
			continue
		}
		product *= shape[i]
	}
	if rest >= 0 && product > 0 {
		shape[rest] = count(x) / product
		product *= shape[rest]
	}
	if product != count(x) {
		c.failValue("shape", mil.ShapeString(sizes(shape)), plural(count(x), "element")+", as x has")
		return
	}
	c.yieldReshaped(shape)
}

// squeeze leaves a listed axis that is not 1 alone.
func squeeze(c *call) {
	x := c.value("x").shape
	axes := c.axes("axes", len(x))
	var shape []int
	for i, n := range x {
		if n != 1 || !slices.Contains(axes, i) {
			shape = append(shape, n)
		}
	}
	c.yieldReshaped(shape)
}

func expandDims(c *call) {
	x := c.value("x").shape
	rank := len(x) + len(c.ints("axes", nil))
	axes, shape := c.axes("axes", rank), make([]int, 0, rank)
	for i := range rank {
		if slices.Contains(axes, i) {
			shape = append(shape, 1)
			continue
		}
		shape, x = append(shape, x[0]), x[1:]
	}
	c.yieldReshaped(shape)
}

func flatten(c *call) {
	x := c.value("x").shape
	axis := c.axis("axis", 1, len(x))
	c.yieldReshaped([]int{count(x[:axis]), count(x[axis:])})
}

func transpose(c *call) {
	x := c.array("x")
	c.yield(x.permute(c.axes("perm", len(x.shape))))
}

func reverse(c *call) {
	x := c.array("x")
	stride, offset := slices.Clone(x.stride), x.offset
	for _, a := range c.axes("axes", len(x.shape)) {
		offset += max(0, x.shape[a]-1) * stride[a]
		stride[a] = -stride[a]
	}
	c.yield(x.view(x.shape, stride, offset))
}

// tile repeats; along a dimension of one element that is a view.
func tile(c *call) {
	x, reps := c.array("x"), c.ints("reps", nil)
	if len(reps) != len(x.shape) {
		c.failValue("reps", plural(len(reps), "entry"), plural(len(x.shape), "entry"))
		return
	}
	shape, inner, split := slices.Clone(x.shape), []int{}, []int{}
	stride := []int{}
	for i, n := range x.shape {
		shape[i] *= reps[i]
		inner, split = append(inner, n), append(split, reps[i], n)
		stride = append(stride, 0, x.stride[i])
	}
	if count(inner) == count(shape) {
		c.yield(x)
		return
	}
	repeated := x.view(split, stride, x.offset)
	if merged := merge(repeated); merged != nil {
		c.yield(merged)
		return
	}
	c.yield(repeated.reshape(shape...))
}

// merge joins dimensions 2i and 2i+1 of a view where one of them is 1; nil if some pair has no such dimension.
func merge(a *array) *array {
	var shape, stride []int
	for i := 0; i < len(a.shape); i += 2 {
		n, m := a.shape[i], a.shape[i+1]
		switch {
		case n == 1:
			shape, stride = append(shape, m), append(stride, a.stride[i+1])
		case m == 1:
			shape, stride = append(shape, n), append(stride, a.stride[i])
		default:
			return nil
		}
	}
	return a.view(shape, stride, a.offset)
}

func shapeOp(c *call) {
	x := c.value("x").shape
	out := newArray(c.declared(0).DType, len(x))
	for i, n := range x {
		out.ints[i] = int32(n)
	}
	c.yield(out)
}

// arranged yields x split into dimensions, permuted and joined again.
func (c *call) arranged(split, perm, shape []int) {
	c.yield(c.array("x").reshape(split...).permute(perm).reshape(shape...))
}

// depthToSpace takes channels in the order [b, b, C], pixelShuffle in the order [C, b, b].
func depthToSpace(c *call) {
	s, b := c.value("x").shape, c.int("block_size", 1)
	c.arranged([]int{s[0], b, b, s[1] / (b * b), s[2], s[3]}, []int{0, 3, 4, 1, 5, 2}, []int{s[0], s[1] / (b * b), s[2] * b, s[3] * b})
}

func spaceToDepth(c *call) {
	s, b := c.value("x").shape, c.int("block_size", 1)
	c.arranged([]int{s[0], s[1], s[2] / b, b, s[3] / b, b}, []int{0, 3, 5, 1, 2, 4}, []int{s[0], s[1] * b * b, s[2] / b, s[3] / b})
}

func pixelShuffle(c *call) {
	s, b := c.value("x").shape, c.int("upscale_factor", 1)
	c.arranged([]int{s[0], s[1] / (b * b), b, b, s[2], s[3]}, []int{0, 1, 4, 2, 5, 3}, []int{s[0], s[1] / (b * b), s[2] * b, s[3] * b})
}

func pixelUnshuffle(c *call) {
	s, b := c.value("x").shape, c.int("downscale_factor", 1)
	c.arranged([]int{s[0], s[1], s[2] / b, b, s[3] / b, b}, []int{0, 1, 3, 5, 2, 4}, []int{s[0], s[1] * b * b, s[2] / b, s[3] / b})
}
