package mil

// reductions fold dimensions, or walk along one.
var reductions = table{
	{"reduce_max reduce_min reduce_sum reduce_mean reduce_prod reduce_l1_norm reduce_l2_norm reduce_log_sum reduce_log_sum_exp reduce_sum_square 15 | " +
		"x:number axes?!:int keep_dims?!:bool", inferReduce},
	{"reduce_argmax reduce_argmin 15 | x:number axis?!:int keep_dims?!:bool output_dtype?!>17:string", inferArg},
	{"argsort 15 | x:number axis?!:int ascending?!:bool", inferArgsort},
	{"topk 15 | x:numbers k?!:int axis?!:int ascending?!:bool sort?!>16:bool return_indices?!>16:bool output_indices_dtype?!>17:string", inferTopK},
	{"cumsum 15 | x:number axis?!:int exclusive?!:bool reverse?!:bool", alongAxis(0)},
	{"softmax 15 | x:float axis?!:int", alongAxis(-1)},
}

// alongAxis yields the type of x after a look at the axis.
func alongAxis(absent int64) inferFunc {
	return func(c *call) []Type {
		if shape, ok := c.shape("x"); ok {
			c.axis("axis", absent, len(shape))
		}
		return likeX(c)
	}
}

func inferReduce(c *call) []Type {
	d := c.typeOf("x").DType
	shape, ok := c.shape("x")
	list, known := c.ints("axes")
	if !ok || c.has("axes") && !known {
		return []Type{unranked(d)}
	}
	axes, ok := c.axes("axes", list, len(shape))
	if !ok {
		return nil
	}
	if !c.has("axes") {
		axes = allAxes(len(shape))
	}
	return []Type{{Kind: Tensor, DType: d, Shape: folded(shape, axes, c.flag("keep_dims", false))}}
}

func allAxes(rank int) []int {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	return axes
}

// folded is shape with some dimensions made 1, or left out.
func folded(shape []int64, axes []int, keep bool) []int64 {
	gone := map[int]bool{}
	for _, a := range axes {
		gone[a] = true
	}
	var out []int64
	for i, d := range shape {
		switch {
		case !gone[i]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

func inferArg(c *call) []Type {
	d := Int32
	if c.has("output_dtype") {
		d = c.withDType("output_dtype", Type{})[0].DType
	}
	shape, ok := c.shape("x")
	if !ok {
		return []Type{unranked(d)}
	}
	axis, ok := c.axis("axis", -1, len(shape))
	if !ok {
		return nil
	}
	return []Type{{Kind: Tensor, DType: d, Shape: folded(shape, []int{axis}, c.flag("keep_dims", false))}}
}

func inferArgsort(c *call) []Type {
	t := alongAxis(-1)(c)[0]
	t.DType = Int32
	return []Type{t}
}

func inferTopK(c *call) []Type {
	values := c.typeOf("x")
	shape, ok := c.shape("x")
	k, known := c.int("k", 1)
	if ok {
		axis, found := c.axis("axis", -1, len(shape))
		if !found {
			return nil
		}
		values.Shape = append([]int64{}, shape...)
		values.Shape[axis] = Unknown
		if known && k >= 0 { // −1: the whole axis
			values.Shape[axis] = k
		} else if known {
			values.Shape[axis] = shape[axis]
		}
	}
	indices := values
	indices.DType = Int32
	if c.has("output_indices_dtype") {
		indices = c.withDType("output_indices_dtype", values)[0]
	}
	if !c.flag("return_indices", true) {
		return []Type{values}
	}
	return []Type{values, indices}
}
