package mil

// norms scale by statistics of x.
var norms = table{
	{"layer_norm 15 | x:float axes?!:int gamma?!:float beta?!:float epsilon?!:float", inferLayerNorm},
	{"batch_norm 15 | x:float mean!:float variance!:float gamma?!:float beta?!:float epsilon?!:float", likeX},
	{"instance_norm 15 | x:float gamma?!:float beta?!:float epsilon?!:float", likeX},
	{"l2_norm 15 | x:float epsilon?!:float", likeX},
	{"local_response_norm 15 | x:float size!:int alpha?!:float beta?!:float k?!:float", likeX},
}

// inferLayerNorm: gamma and beta have the dimensions that are normed.
func inferLayerNorm(c *call) []Type {
	shape, ok := c.shape("x")
	list, known := c.ints("axes")
	if !ok || c.has("axes") && !known {
		return likeX(c)
	}
	axes, ok := c.axes("axes", list, len(shape))
	if !ok {
		return nil
	}
	if !c.has("axes") {
		axes = allAxes(len(shape))
	}
	var normed []int64
	for _, a := range axes {
		normed = append(normed, shape[a])
	}
	for _, p := range []string{"gamma", "beta"} {
		if s, ok := c.shape(p); ok && !CompatibleShapes(s, normed) {
			c.wrongShape(p, "%s, the dimensions that are normed", ShapeString(normed))
		}
	}
	return likeX(c)
}
