package mil

import "math"

// images resample the last two dimensions of x [..., H, W].
var images = table{
	{"upsample_bilinear 15 | x:float scale_factor_height?!:number scale_factor_width?!:number align_corners?!:bool half_pixel_centers?!>16:bool", inferUpsample},
	{"upsample_nearest_neighbor 15 | x:float scale_factor_height?!:number scale_factor_width?!:number", inferUpsample},
	{"resize_bilinear 15 | x:float target_size_height?!:int target_size_width?!:int sampling_mode?!:string", inferResize},
	{"resize_nearest_neighbor 15 | x:float target_size_height!:int target_size_width!:int", inferResize},
	{"resize 17 | x:number shape:int resized_dims!:int interpolation_mode?!:string sampling_mode?!:string", inferSameRank},
	{"crop_resize 15 | x:float roi?:float boxes?>17:any box_indices?>17:int target_height?!:int target_width?!:int normalized_coordinates?!:bool spatial_scale?!:float " +
		"box_coordinate_mode?!:string sampling_mode?!:string pad_value?!>16:float", nil},
	{"affine 15 | x:float transform_matrix:float output_height!:int output_width!:int sampling_mode!:string padding_mode!:string padding_value!:float coordinates_mode!:string align_corners!:bool", inferAffine},
	{"resample 15 | x:float coordinates:any sampling_mode!:string padding_mode!:string padding_value!:float coordinates_mode!:string align_corners!:bool", inferResample},
}

// resized is x with other last two dimensions.
func (c *call) resized(height, width int64) []Type {
	x := c.typeOf("x")
	if !x.Ranked() || len(x.Shape) < 2 {
		return []Type{unranked(x.DType)}
	}
	shape := append([]int64{}, x.Shape...)
	shape[len(shape)-2], shape[len(shape)-1] = height, width
	return []Type{TensorOf(x.DType, shape...)}
}

func inferUpsample(c *call) []Type {
	x, ok := c.shape("x")
	if !ok || len(x) < 2 {
		return []Type{unranked(c.typeOf("x").DType)}
	}
	return c.resized(c.scaled("scale_factor_height", x[len(x)-2]), c.scaled("scale_factor_width", x[len(x)-1]))
}

// scaled multiplies a dimension by a factor that may be a fraction.
func (c *call) scaled(param string, n int64) int64 {
	v := c.value(param)
	switch {
	case n < 0 || v == nil && c.has(param):
		return Unknown
	case v == nil:
		return n
	}
	if k, ok := v.Int(); ok {
		return times(n, k)
	}
	if f, ok := v.Float(); ok && f > 0 && f < 1<<20 {
		return int64(math.Floor(float64(n) * f))
	}
	return Unknown
}

func inferResize(c *call) []Type { return c.resizedTo("target_size_height", "target_size_width") }

func inferAffine(c *call) []Type { return c.resizedTo("output_height", "output_width") }

func (c *call) resizedTo(height, width string) []Type {
	h, okH := c.int(height, 1)
	w, okW := c.int(width, 1)
	if !okH {
		h = Unknown
	}
	if !okW {
		w = Unknown
	}
	return c.resized(h, w)
}

// inferResample: coordinates [N, H, W, 2].
func inferResample(c *call) []Type {
	s, ok := c.shape("coordinates")
	if !ok || len(s) != 4 {
		return inferSameRank(c)
	}
	return c.resized(s[1], s[2])
}

// randoms draw numbers; what they draw is not specified.
var randoms = table{
	{"random_bernoulli 15 | shape:int prob?!:float/T seed?!:int", inferRandom},
	{"random_normal 15 | shape:int mean?!:float/T stddev?!:float/T seed?!:int", inferRandom},
	{"random_uniform 15 | shape:int low?!:float/T high?!:float/T seed?!:int", inferRandom},
}

func inferRandom(c *call) []Type {
	d := Float32
	for _, p := range []string{"prob", "mean", "stddev", "low", "high"} {
		if c.has(p) {
			d = c.typeOf(p).DType
		}
	}
	if shape, ok := c.ints("shape"); ok {
		return []Type{TensorOf(d, shape...)}
	}
	return []Type{unranked(d)}
}
