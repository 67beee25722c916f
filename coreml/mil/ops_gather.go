package mil

import "fmt"

// gathering picks elements by index, or puts them there.
var gathering = table{
	{"gather 15 | x:data indices:int axis?!:int batch_dims?!>16:int validate_indices?!>17:bool", inferGather},
	{"gather_along_axis 15 | x:data indices:int axis?!:int validate_indices?!>17:bool", inferGatherAlong},
	{"gather_nd 15 | x:data indices:int batch_dims?!>16:int validate_indices?!>17:bool", inferGatherND},
	{"scatter 15 | data:data/T indices:int updates:data/T axis?!:int mode?!:string validate_indices?!>17:bool", inferScatter},
	{"scatter_along_axis 15 | data:data/T indices:int updates:data/T axis?!:int mode?!:string validate_indices?!>17:bool", inferScatter},
	{"scatter_nd 15 | data:data/T indices:int updates:data/T mode?!:string validate_indices?!>17:bool", inferScatter},
	{"non_maximum_suppression 15 | boxes:float scores:float iou_threshold!:float score_threshold?!:float max_boxes!:int per_class_suppression?!:bool", nil},
}

// inferGather: x with the axis replaced by the dimensions of indices after the batch dimensions.
func inferGather(c *call) []Type {
	x := c.typeOf("x")
	indices, ok := c.shape("indices")
	batch, known := c.int("batch_dims", 0)
	if !ok || !x.Ranked() || !known {
		return []Type{unranked(x.DType)}
	}
	axis, ok := c.axis("axis", 0, len(x.Shape))
	if !ok {
		return nil
	}
	if batch < 0 || batch > int64(len(indices)) || batch > int64(axis) {
		c.fail(ErrValue, "batch_dims", fmt.Sprint(batch), fmt.Sprintf("at most the axis, %d, and the rank of indices, %d", axis, len(indices)))
		return nil
	}
	shape := append([]int64{}, x.Shape[:axis]...)
	shape = append(shape, indices[batch:]...)
	return []Type{TensorOf(x.DType, append(shape, x.Shape[axis+1:]...)...)}
}

// inferGatherAlong yields the shape of indices, which agrees with x except along the axis.
func inferGatherAlong(c *call) []Type {
	x := c.typeOf("x")
	indices, ok := c.shape("indices")
	if !ok || !x.Ranked() {
		return []Type{unranked(x.DType)}
	}
	axis, ok := c.axis("axis", 0, len(x.Shape))
	if !ok {
		return nil
	}
	want := append([]int64{}, x.Shape...)
	want[axis] = Unknown
	if !CompatibleShapes(want, indices) {
		c.wrongShape("indices", "%s", ShapeString(want))
	}
	return []Type{TensorOf(x.DType, indices...)}
}

func inferGatherND(c *call) []Type {
	x := c.typeOf("x")
	indices, ok := c.shape("indices")
	batch, known := c.int("batch_dims", 0)
	if !ok || !x.Ranked() || !known || len(indices) == 0 || indices[len(indices)-1] < 0 {
		return []Type{unranked(x.DType)}
	}
	last := indices[len(indices)-1]
	if batch < 0 || last > int64(len(x.Shape)) || batch+last > int64(len(x.Shape)) {
		c.wrongShape("indices", "a last dimension of at most %d", int64(len(x.Shape))-batch)
		return nil
	}
	shape := append([]int64{}, indices[:len(indices)-1]...)
	return []Type{TensorOf(x.DType, append(shape, x.Shape[batch+last:]...)...)}
}

func inferScatter(c *call) []Type {
	c.choice("mode", "add", "add", "sub", "mul", "div", "max", "min", "update")
	if data, ok := c.shape("data"); ok {
		c.axis("axis", 0, max(1, len(data)))
	}
	return likeData(c)
}
