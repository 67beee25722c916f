package mil

import "fmt"

// shapes rearrange elements without changing them.
var shapes = table{
	{"identity 15 | x:anything", likeX},
	{"reshape 15 | x:data shape:int", inferReshape},
	{"reshape_like 16 | x:data ref_tensors*:any begins*!:int ends*!:int end_masks*!:bool", inferRefShape},
	{"transpose 15 | x:data perm!:int", inferTranspose},
	{"squeeze 15 | x:data axes?!:int", inferSqueeze},
	{"expand_dims 15 | x:data axes!:int", inferExpandDims},
	{"flatten2d 15 | x:data axis?!:int", inferFlatten},
	{"concat 15 | values*:any/T axis!:int interleave?!:bool", inferConcat},
	{"stack 15 | values*:any/T axis!:int", inferStack},
	{"split 15 | x:data num_splits?!:int split_sizes?!:int axis!:int", inferSplit},
	{"tile 15 | x:data reps:int", inferTile},
	{"pad 15 | x:data pad:int mode?!:string constant_val?!:data", inferPad},
	{"reverse 15 | x:data axes?!:int", likeX},
	{"reverse_sequence 15 | x:data lengths:int seq_axis?!:int batch_axis?!:int", likeX},
	{"band_part 15 | x:data lower?!:int upper?!:int", likeX},
	{"shape 15 | x:data", inferShapeOp},
	{"fill 15 | shape:int value?!:data", inferFill},
	{"fill_like 16 | ref_tensor:data value?!:data", inferFillLike},
	{"range_1d 15 | end:number/T start:number/T step:number/T", inferRange},
	{"one_hot 15 | indices:int one_hot_vector_size:int axis?!:int on_value?!:data/T off_value?!:data/T", inferOneHot},
	{"non_zero 15 | x:data", inferNonZero},
	{"depth_to_space 15 | x:float block_size!:int", blocks("block_size", 1)},
	{"space_to_depth 15 | x:float block_size!:int", blocks("block_size", -1)},
	{"pixel_shuffle 15 | x:float upscale_factor!:int", blocks("upscale_factor", 1)},
	{"pixel_unshuffle 16 | x:float downscale_factor!:int", blocks("downscale_factor", -1)},
	{"space_to_batch 15 | x:float block_shape!:int paddings!:int", inferSameRank},
	{"batch_to_space 15 | x:float block_shape!:int crops!:int", inferSameRank},
}

// inferSameRank knows the rank only.
func inferSameRank(c *call) []Type {
	t := c.typeOf("x")
	if !t.Ranked() {
		return []Type{t}
	}
	return []Type{open(t.DType, len(t.Shape))}
}

func inferRefShape(c *call) []Type { return []Type{unranked(c.typeOf("x").DType)} }

// inferReshape: one −1 stands for what is left, a 0 copies the dimension of x.
func inferReshape(c *call) []Type {
	x := c.typeOf("x")
	want, known := c.ints("shape")
	if !known {
		return []Type{c.shapedBy("shape", x.DType)}
	}
	shape, rest, product := make([]int64, len(want)), -1, int64(1)
	for i, n := range want {
		if n == 0 && i < len(x.Shape) {
			n = x.Shape[i]
		}
		switch {
		case n == -1 && want[i] == -1 && rest >= 0:
			c.fail(ErrValue, "shape", ShapeString(want), "at most one -1")
			return nil
		case n == -1 && want[i] == -1:
			rest = i
		case n < -1:
			c.fail(ErrValue, "shape", ShapeString(want), "no entry below -1")
			return nil
		}
		shape[i] = n
		if i != rest {
			product = times(product, n)
		}
	}
	count, ok := x.Count()
	if !ok || product < 0 {
		return []Type{TensorOf(x.DType, shape...)}
	}
	if rest >= 0 && product > 0 && count%product == 0 {
		shape[rest] = count / product
		product = count
	}
	if product != count {
		c.wrongShape("x", "as many elements as %s has", ShapeString(want))
	}
	return []Type{TensorOf(x.DType, shape...)}
}

func inferTranspose(c *call) []Type {
	x := c.typeOf("x")
	list, known := c.ints("perm")
	if !x.Ranked() || !known {
		return inferSameRank(c)
	}
	axes, ok := c.axes("perm", list, len(x.Shape))
	if !ok {
		return nil
	}
	seen, shape := map[int]bool{}, []int64{}
	for _, a := range axes {
		seen[a] = true
		shape = append(shape, x.Shape[a])
	}
	if len(axes) != len(x.Shape) || len(seen) != len(axes) {
		c.fail(ErrValue, "perm", ShapeString(list), fmt.Sprintf("each of %d axes once", len(x.Shape)))
	}
	return []Type{TensorOf(x.DType, shape...)}
}

// inferSqueeze leaves a listed axis that is not 1 alone, as torch does.
func inferSqueeze(c *call) []Type {
	x := c.typeOf("x")
	list, known := c.ints("axes")
	if !x.Ranked() || c.has("axes") && !known {
		return []Type{unranked(x.DType)}
	}
	axes, ok := c.axes("axes", list, len(x.Shape))
	if !ok {
		return nil
	}
	if !c.has("axes") {
		axes = allAxes(len(x.Shape))
	}
	var gone []int
	for _, a := range axes {
		if x.Shape[a] == Unknown {
			return []Type{unranked(x.DType)}
		}
		if x.Shape[a] == 1 {
			gone = append(gone, a)
		}
	}
	return []Type{TensorOf(x.DType, folded(x.Shape, gone, false)...)}
}

// inferExpandDims counts axes in the output.
func inferExpandDims(c *call) []Type {
	x := c.typeOf("x")
	list, known := c.ints("axes")
	if !x.Ranked() || !known {
		return []Type{unranked(x.DType)}
	}
	axes, ok := c.axes("axes", list, len(x.Shape)+len(list))
	if !ok {
		return nil
	}
	fresh := map[int]bool{}
	for _, a := range axes {
		fresh[a] = true
	}
	if len(fresh) != len(axes) {
		c.fail(ErrValue, "axes", ShapeString(list), "each axis once")
		return nil
	}
	var shape []int64
	for i, next := 0, 0; i < len(x.Shape)+len(axes); i++ {
		if fresh[i] {
			shape = append(shape, 1)
			continue
		}
		shape = append(shape, x.Shape[next])
		next++
	}
	return []Type{TensorOf(x.DType, shape...)}
}

func inferFlatten(c *call) []Type {
	x := c.typeOf("x")
	axis, known := c.int("axis", 1)
	if !x.Ranked() || !known || axis < 0 || axis > int64(len(x.Shape)) {
		return []Type{open(x.DType, 2)}
	}
	shape := []int64{1, 1}
	for i, d := range x.Shape {
		at := 0
		if int64(i) >= axis {
			at = 1
		}
		shape[at] = times(shape[at], d)
	}
	return []Type{TensorOf(x.DType, shape...)}
}

// members are the types of a tuple operand; ok is false if one has no known rank.
func (c *call) members(param string) (types []Type, ok bool) {
	for _, b := range c.bindings(param) {
		t, _ := c.typeOfBinding(b)
		if !t.Ranked() {
			return nil, false
		}
		types = append(types, t)
	}
	return types, len(types) > 0
}

func inferConcat(c *call) []Type {
	values, ok := c.members("values")
	d := c.typeOf("values").DType
	if !ok {
		return []Type{unranked(d)}
	}
	axis, ok := c.axis("axis", 0, len(values[0].Shape))
	if !ok {
		return nil
	}
	shape := append([]int64{}, values[0].Shape...)
	for _, v := range values[1:] {
		if len(v.Shape) != len(shape) {
			c.fail(ErrShape, "values", v.String(), fmt.Sprintf("rank %d, as the first", len(shape)))
			return nil
		}
		for i, n := range v.Shape {
			switch {
			case i == axis && (n < 0 || shape[i] < 0):
				shape[i] = Unknown
			case i == axis:
				shape[i] += n
			case shape[i] < 0:
				shape[i] = n
			case n >= 0 && n != shape[i]:
				c.fail(ErrShape, "values", v.String(), fmt.Sprintf("%s except in dimension %d", ShapeString(shape), axis))
				return nil
			}
		}
	}
	return []Type{TensorOf(d, shape...)}
}

func inferStack(c *call) []Type {
	values, ok := c.members("values")
	d := c.typeOf("values").DType
	if !ok {
		return []Type{unranked(d)}
	}
	axis, ok := c.axis("axis", 0, len(values[0].Shape)+1)
	if !ok {
		return nil
	}
	for _, v := range values[1:] {
		if !CompatibleShapes(v.Shape, values[0].Shape) {
			c.fail(ErrShape, "values", v.String(), values[0].String()+", as the first")
			return nil
		}
	}
	shape := append([]int64{}, values[0].Shape[:axis]...)
	shape = append(append(shape, int64(len(values))), values[0].Shape[axis:]...)
	return []Type{TensorOf(d, shape...)}
}

// inferSplit has as many outputs as parts: num_splits equal ones, or split_sizes.
func inferSplit(c *call) []Type {
	x := c.typeOf("x")
	if !x.Ranked() {
		return nil
	}
	axis, ok := c.axis("axis", 0, len(x.Shape))
	if !ok {
		return nil
	}
	sizes, known := c.ints("split_sizes")
	if !known {
		n, ok := c.int("num_splits", 0)
		if !ok || n != int64(len(c.op.Outputs)) || n == 0 {
			c.fail(ErrValue, "num_splits", fmt.Sprint(n), fmt.Sprintf("split_sizes, or the number of outputs, %d", len(c.op.Outputs)))
			return nil
		}
		if x.Shape[axis]%n != 0 && x.Shape[axis] >= 0 {
			c.wrongShape("x", "dimension %d divisible by %d", axis, n)
			return nil
		}
		for range n {
			sizes = append(sizes, max(x.Shape[axis]/n, Unknown))
		}
		if x.Shape[axis] < 0 {
			sizes = open(x.DType, int(n)).Shape
		}
	} else if total := sum(sizes); x.Shape[axis] >= 0 && total != x.Shape[axis] {
		c.wrongShape("split_sizes", "a sum of %d, dimension %d of x; the sum is %d", x.Shape[axis], axis, total)
		return nil
	}
	var types []Type
	for _, n := range sizes {
		part := append([]int64{}, x.Shape...)
		part[axis] = n
		types = append(types, TensorOf(x.DType, part...))
	}
	return types
}

func sum(list []int64) (total int64) {
	for _, n := range list {
		total += n
	}
	return total
}

func inferTile(c *call) []Type {
	x := c.typeOf("x")
	reps, known := c.ints("reps")
	if !x.Ranked() || !known {
		return inferSameRank(c)
	}
	if len(reps) != len(x.Shape) {
		c.wrongShape("reps", "%d entries", len(x.Shape))
		return nil
	}
	shape := make([]int64, len(reps))
	for i, r := range reps {
		shape[i] = times(x.Shape[i], r)
	}
	return []Type{TensorOf(x.DType, shape...)}
}

// inferPad: pad has [before, after] for each of the last dimensions, in the order of the dimensions.
func inferPad(c *call) []Type {
	x := c.typeOf("x")
	c.choice("mode", "constant", "constant", "reflect", "replicate")
	pad, known := c.ints("pad")
	if !x.Ranked() || !known {
		return inferSameRank(c)
	}
	if len(pad)%2 != 0 || len(pad) > 2*len(x.Shape) {
		c.wrongShape("pad", "two entries for each of at most %d dimensions", len(x.Shape))
		return nil
	}
	shape := append([]int64{}, x.Shape...)
	first := len(shape) - len(pad)/2
	for i := range len(pad) / 2 {
		if shape[first+i] >= 0 {
			shape[first+i] += pad[2*i] + pad[2*i+1]
		}
	}
	return []Type{TensorOf(x.DType, shape...)}
}

func inferShapeOp(c *call) []Type {
	if x := c.typeOf("x"); x.Ranked() {
		return []Type{TensorOf(Int32, int64(len(x.Shape)))}
	}
	return []Type{TensorOf(Int32, Unknown)}
}

func inferFill(c *call) []Type {
	d := Float32
	if c.has("value") {
		d = c.typeOf("value").DType
	}
	if shape, ok := c.ints("shape"); ok {
		return []Type{TensorOf(d, shape...)}
	}
	return []Type{c.shapedBy("shape", d)}
}

// mostDims bounds the ranks that are inferred from the length of a list computed at run time; Core ML stops at 5.
const mostDims = 16

// shapedBy is a tensor whose sizes come at run time, in a list of known length.
func (c *call) shapedBy(param string, d DType) Type {
	if s, ok := c.shape(param); ok && len(s) == 1 && s[0] >= 0 && s[0] <= mostDims {
		return open(d, int(s[0]))
	}
	return unranked(d)
}

func inferFillLike(c *call) []Type {
	t := c.typeOf("ref_tensor")
	t.DType = Float32
	if c.has("value") {
		t.DType = c.typeOf("value").DType
	}
	return []Type{t}
}

func inferRange(c *call) []Type { return []Type{TensorOf(c.typeOf("end").DType, Unknown)} }

func inferOneHot(c *call) []Type {
	d := Int32
	if c.has("on_value") {
		d = c.typeOf("on_value").DType
	}
	indices, ok := c.shape("indices")
	if !ok {
		return []Type{unranked(d)}
	}
	axis, ok := c.axis("axis", -1, len(indices)+1)
	if !ok {
		return nil
	}
	size, known := c.int("one_hot_vector_size", 0)
	if !known {
		size = Unknown
	}
	shape := append([]int64{}, indices[:axis]...)
	return []Type{TensorOf(d, append(append(shape, size), indices[axis:]...)...)}
}

func inferNonZero(c *call) []Type {
	if x := c.typeOf("x"); x.Ranked() {
		return []Type{TensorOf(Int32, Unknown, int64(len(x.Shape)))}
	}
	return []Type{open(Int32, 2)}
}

// blocks moves b×b blocks of [N, C, H, W] between channels and space; sign 1 is towards space.
func blocks(param string, sign int) inferFunc {
	return func(c *call) []Type {
		x := c.typeOf("x")
		b, known := c.int(param, 0)
		if _, ok := c.rank("x", 4, 4); !ok || !known || b < 1 {
			return []Type{open(x.DType, 4)}
		}
		s := append([]int64{}, x.Shape...)
		if sign > 0 {
			return []Type{TensorOf(x.DType, s[0], over(s[1], b*b), times(s[2], b), times(s[3], b))}
		}
		return []Type{TensorOf(x.DType, s[0], times(s[1], b*b), over(s[2], b), over(s[3], b))}
	}
}

// over divides a dimension.
func over(a, b int64) int64 {
	if a < 0 {
		return Unknown
	}
	return a / b
}
