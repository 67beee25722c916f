package mil

import "math"

// convolutions slide a window over the spatial dimensions of x [N, C, D…].
var convolutions = table{
	{"conv 15 | x:float weight:float bias?:float strides?!:int pad_type?!:string pad?!:int dilations?!:int groups?!:int", inferConv},
	{"conv_transpose 15 | x:float weight:float bias?:float pad?!:int output_shape?!:int pad_type?!:string strides?!:int dilations?!:int groups?!:int", inferConvTranspose},
	{"conv_quantized 15 | x:float weight:any bias?!:any quantization_type!:string nbits?!:int quant_scale!:float quant_bias!:float strides?!:int pad_type?!:string pad?!:int dilations?!:int groups?!:int", inferConvQuantized},
	{"avg_pool 15 | x:float kernel_sizes!:int strides?!:int pad_type!:string pad?!:int exclude_padding_from_average?!:bool ceil_mode?!:bool", inferPool},
	{"max_pool l2_pool 15 | x:float kernel_sizes!:int strides?!:int pad_type!:string pad?!:int ceil_mode?!:bool", inferPool},
}

// padTypes are the ways to say how much to pad.
var padTypes = []string{"valid", "same", "custom", "same_lower"}

// window is what a convolution or pool does along the spatial dimensions.
type window struct {
	kernel, strides, dilations []int64
	pad                        []int64 // [before, after] for each spatial dimension, for pad type custom
	padType                    string
	ceil                       bool
}

// window gathers the parameters; ok is false if one is not known or wrong.
func (c *call) window(kernel []int64) (w window, ok bool) {
	n := len(kernel)
	w = window{kernel: kernel, padType: c.choice("pad_type", "valid", padTypes...), ceil: c.flag("ceil_mode", false)}
	if w.strides, ok = c.perAxis("strides", n, 1); !ok {
		return w, false
	}
	if w.dilations, ok = c.perAxis("dilations", n, 1); !ok {
		return w, false
	}
	w.pad, ok = c.perAxis("pad", 2*n, 0)
	return w, ok
}

// perAxis is an integer list of n entries, or n times a default.
func (c *call) perAxis(param string, n int, absent int64) ([]int64, bool) {
	if !c.has(param) {
		list := make([]int64, n)
		for i := range list {
			list[i] = absent
		}
		return list, true
	}
	list, ok := c.ints(param)
	if ok && len(list) != n {
		c.wrongShape(param, "%d entries", n)
		return nil, false
	}
	for _, x := range list {
		if x < absent {
			c.fail(ErrValue, param, ShapeString(list), "no entry below the default")
			return nil, false
		}
	}
	return list, ok
}

// size is the number of places a window takes along dimension i of n elements; it is negative if the window does not fit.
func (w window) size(i int, n int64) int64 {
	if n < 0 || w.kernel[i] < 0 {
		return Unknown
	}
	stride := w.strides[i]
	if w.padType == "same" || w.padType == "same_lower" {
		return (n + stride - 1) / stride
	}
	span := (w.kernel[i]-1)*w.dilations[i] + 1
	if w.padType == "custom" {
		n += w.pad[2*i] + w.pad[2*i+1]
	}
	if n < span {
		return -3
	}
	if w.ceil {
		return (n-span+stride-1)/stride + 1
	}
	return (n-span)/stride + 1
}

// slide is the spatial part of the output shape.
func (c *call) slide(w window, spatial []int64) []int64 {
	var out []int64
	for i, n := range spatial {
		size := w.size(i, n)
		if size < Unknown {
			c.wrongShape("x", "at least %d in spatial dimension %d", (w.kernel[i]-1)*w.dilations[i]+1, i)
			return nil
		}
		out = append(out, size)
	}
	return out
}

func inferConv(c *call) []Type {
	d := c.typeOf("x").DType
	if _, ok := c.rank("x", 3, 5); !ok {
		return []Type{unranked(d)}
	}
	x, _ := c.shape("x")
	if _, ok := c.rank("weight", len(x), len(x)); !ok {
		return []Type{unranked(d)}
	}
	weight, _ := c.shape("weight")
	groups, known := c.int("groups", 1)
	if !known || groups < 1 {
		c.fail(ErrValue, "groups", "no positive number", "1 or more")
		return nil
	}
	if x[1] >= 0 && weight[1] >= 0 && x[1] != weight[1]*groups {
		c.wrongShape("weight", "second dimension %s: %s channels in %d groups", dimString(x[1]/groups), dimString(x[1]), groups)
		return nil
	}
	c.biasOf(weight[0])
	w, ok := c.window(weight[2:])
	if !ok {
		return []Type{open(d, len(x))}
	}
	return []Type{TensorOf(d, append([]int64{x[0], weight[0]}, c.slide(w, x[2:])...)...)}
}

// biasOf checks that a bias has one entry per output channel.
func (c *call) biasOf(channels int64) {
	if bias, ok := c.shape("bias"); ok && !CompatibleShapes(bias, []int64{channels}) {
		c.wrongShape("bias", "[%s]", dimString(channels))
	}
}

func inferConvQuantized(c *call) []Type {
	shape, ok := c.shape("x")
	if !ok {
		return []Type{unranked(c.typeOf("x").DType)}
	}
	return []Type{open(c.typeOf("x").DType, len(shape))}
}

func inferConvTranspose(c *call) []Type {
	d := c.typeOf("x").DType
	if _, ok := c.rank("x", 3, 5); !ok {
		return []Type{unranked(d)}
	}
	x, _ := c.shape("x")
	if _, ok := c.rank("weight", len(x), len(x)); !ok {
		return []Type{unranked(d)}
	}
	if shape, ok := c.ints("output_shape"); ok {
		return []Type{TensorOf(d, shape...)}
	}
	weight, _ := c.shape("weight") // [Cin, Cout/groups, K…]
	groups, known := c.int("groups", 1)
	w, ok := c.window(weight[2:])
	if !ok || !known {
		return []Type{open(d, len(x))}
	}
	out := []int64{x[0], times(weight[1], groups)}
	for i, n := range x[2:] {
		out = append(out, w.spread(i, n))
	}
	return []Type{TensorOf(d, out...)}
}

// spread is the size of a transposed convolution's output.
func (w window) spread(i int, n int64) int64 {
	if n < 0 || w.kernel[i] < 0 {
		return Unknown
	}
	switch w.padType {
	case "valid":
		return (n-1)*w.strides[i] + (w.kernel[i]-1)*w.dilations[i] + 1
	case "custom":
		return (n-1)*w.strides[i] + (w.kernel[i]-1)*w.dilations[i] + 1 - w.pad[2*i] - w.pad[2*i+1]
	}
	return n * w.strides[i]
}

// times multiplies two dimensions; what no tensor can have is as good as unknown.
func times(a, b int64) int64 {
	if a < 0 || b < 0 || b > 0 && a > math.MaxInt64/b {
		return Unknown
	}
	return a * b
}

func inferPool(c *call) []Type {
	d := c.typeOf("x").DType
	if _, ok := c.rank("x", 3, 5); !ok {
		return []Type{unranked(d)}
	}
	x, _ := c.shape("x")
	kernel, ok := c.ints("kernel_sizes")
	if !ok {
		return []Type{open(d, len(x))}
	}
	if len(kernel) != len(x)-2 {
		c.wrongShape("kernel_sizes", "%d entries", len(x)-2)
		return nil
	}
	w, ok := c.window(kernel)
	if !ok {
		return []Type{open(d, len(x))}
	}
	return []Type{TensorOf(d, append([]int64{x[0], x[1]}, c.slide(w, x[2:])...)...)}
}
