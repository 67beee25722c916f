package mil

// elementwise are ops that treat every element alike.
var elementwise = table{
	{"acos asin atan atanh ceil cos cosh erf exp floor round sin sinh sqrt tan tanh sigmoid silu relu relu6 softplus softsign 15 | x:float", likeX},
	{"abs exp2 sign square 15 | x:number", likeX},
	{"clip 15 | x:float alpha!:float beta!:float", likeX},
	{"clamped_relu linear_activation scaled_tanh sigmoid_hard 15 | x:float alpha!:float beta!:float", likeX},
	{"softplus_parametric 15 | x:float alpha!:float beta!:float", likeX},
	{"elu leaky_relu thresholded_relu prelu 15 | x:float alpha!:float", likeX},
	{"threshold 15 | x:number/T alpha!:number/T", likeX},
	{"inverse log rsqrt 15 | x:float epsilon?!:float", likeX}, // epsilon may be fp32 beside an fp16 x, where fp16 would make it 0
	{"gelu 15 | x:float mode?!:string", inferGelu},
	{"cast 15 | x:any dtype!:string", inferCast},
	{"logical_not 15 | x:bool", likeX},

	{"add sub mul real_div floor_div mod pow maximum minimum 15 | x:numbers/T y:numbers/T", inferBinary},
	{"equal not_equal 15 | x:any/T y:any/T", inferComparison},
	{"greater greater_equal less less_equal 15 | x:numbers/T y:numbers/T", inferComparison},
	{"logical_and logical_or logical_xor 15 | x:bool y:bool", inferBinary},
	{"select 15 | cond:bool a:data/T b:data/T", inferSelect},

	{"quantize 17 | input:float/T zero_point?!:byte scale!:float/T axis?!:int output_dtype!:string", inferQuantize},
	{"dequantize 17 | input:byte/T zero_point?!:byte/T scale!:float axis?!:int", inferDequantize},
	{"random_categorical 15 | x:float mode?!:string size?!:int seed?!:int", nil},
}

// likeX yields the type of operand x.
func likeX(c *call) []Type { return []Type{c.typeOf("x")} }

// likeData yields the type of operand data.
func likeData(c *call) []Type { return []Type{c.typeOf("data")} }

func inferGelu(c *call) []Type {
	c.choice("mode", "EXACT", "EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION")
	return likeX(c)
}

func inferCast(c *call) []Type {
	x := c.typeOf("x")
	return c.withDType("dtype", x)
}

// withDType is t with the element type that a string operand names.
func (c *call) withDType(param string, t Type) []Type {
	name := c.text(param, "")
	d, ok := ParseDType(name)
	if !ok || d == String {
		c.fail(ErrValue, param, "\""+name+"\"", "an element type such as fp16 or int32")
	}
	t.DType = d
	return []Type{t}
}

func inferBinary(c *call) []Type {
	return []Type{{Kind: Tensor, DType: c.typeOf("x").DType, Shape: c.broadcast("x", "y")}}
}

func inferComparison(c *call) []Type {
	return []Type{{Kind: Tensor, DType: Bool, Shape: c.broadcast("x", "y")}}
}

// inferSelect trusts the declared shape where both choices are scalars: coremltools 9 then declares a scalar, whatever cond is.
func inferSelect(c *call) []Type {
	a, b := c.typeOf("a"), c.typeOf("b")
	if a.IsScalar() && b.IsScalar() {
		return []Type{unranked(a.DType)}
	}
	return []Type{{Kind: Tensor, DType: a.DType, Shape: c.broadcast("cond", "a", "b")}}
}

func inferQuantize(c *call) []Type { return c.withDType("output_dtype", c.typeOf("input")) }

func inferDequantize(c *call) []Type {
	t := c.typeOf("input")
	t.DType = c.typeOf("scale").DType
	return []Type{t}
}

// broadcast is the common shape of operands under numpy's rule: aligned at the last dimension, a 1 stretches.
func (c *call) broadcast(operands ...string) []int64 {
	var shape []int64
	for _, p := range operands {
		s, ok := c.shape(p)
		if !ok {
			return []int64{Variadic}
		}
		joined, ok := broadcast(shape, s)
		if !ok {
			c.wrongShape(p, "a shape that stretches to %s", ShapeString(shape))
			return nil
		}
		shape = joined
	}
	return shape
}

func broadcast(a, b []int64) (shape []int64, ok bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape = append([]int64{}, a...)
	for i, d := range b {
		at := len(a) - len(b) + i
		if shape[at], ok = broadcastDim(a[at], d); !ok {
			return nil, false
		}
	}
	return shape, true
}

func broadcastDim(a, b int64) (int64, bool) {
	switch {
	case a == b || b == 1:
		return a, true
	case a == 1:
		return b, true
	case a < 0:
		return b, true // the open one is b or 1
	case b < 0:
		return a, true
	}
	return 0, false
}
