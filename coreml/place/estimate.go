package place

import (
	"math"

	"anelab/coreml/mil"
)

// family is a kind of work with a rate of its own.
type family string

// The families, with what they count.
const (
	moving       family = "moving"      // bytes in and out
	relus        family = "relu"        // bytes in and out
	joining      family = "joining"     // elements in and out
	lookingUp    family = "looking up"  // elements of the table
	arithmetic   family = "arithmetic"  // elements in
	curves       family = "gelu"        // elements
	turning      family = "transposing" // elements
	convolving   family = "convolution" // operations: two for each product
	convolvingS  family = "small conv"  // operations, where they are few
	multiplying  family = "matmul"      // operations
	linearFamily family = "linear"      // operations, by the shape of the weight
)

// rate is how much of a family's work a backend does per second; 0 if the family does not bound it there.
type rate [backends]float64

// gibi is 2^30, in which the compiler states its bandwidths.
const gibi = 1 << 30

// prices are the rates of all families.
type prices struct {
	rates  map[family]rate
	linear []linearRate
}

// linearRate is the rate of linear for one shape of its weight.
type linearRate struct {
	out, in int64
	rate    rate
}

// shipped are the compiler's rates, derived from the estimates in 46 texts of M4 and macOS 27; they are equal in all texts to five
// digits. 68 GiB/s for the engine, 1.2 times less for the CPU; 10 G elements/s for the older CPU library, 1.15 times more for the
// newer. Nothing is known between the shapes of linear; the nearest is taken.
var shipped = prices{
	rates: map[family]rate{
		moving:      {68 * gibi, 68 * gibi / 1.2, 68 * gibi / 1.2},
		relus:       {1e11, 1e11, 1e11},
		joining:     {1e11, 1.1502e10, 1e10},
		lookingUp:   {0, 1.1502e10, 1e10},
		arithmetic:  {1.7990e10, 1.0561e10, 9.1818e9},
		curves:      {0, 9.6737e9, 8.4102e9},
		turning:     {1.7213e10, 2.1865e10, 1.9009e10},
		convolving:  {1.61524e13, 7.54488e11, 6.55953e11},
		convolvingS: {7.16083e12, 3.88061e11, 3.37381e11},
		multiplying: {1.61524e13, 7.54525e11, 6.56e11},
	},
	linear: []linearRate{
		{128, 128, rate{5.8044e11, 2.25438e10, 1.95996e10}},
		{256, 256, rate{5.8044e11, 2.25441e10, 1.95999e10}},
		{512, 256, rate{1.05813e13, 3.35506e11, 2.91689e11}},
		{512, 512, rate{5.29076e12, 1.67757e11, 1.45849e11}},
		{1024, 1024, rate{5.29076e12, 1.67757e11, 1.45849e11}},
	},
}

// smallConvolution is where convolutions begin to have the full rate: 8.4 million operations have not, 18.9 million have.
const smallConvolution = 12.6e6

// work is what an op does of one family.
type work struct {
	family family
	amount float64
}

// seconds estimates an op on every backend. What nobody has met is priced by the bytes it moves.
func (s *scope) seconds(op *mil.Op, p *prices) Seconds {
	var longest Seconds
	if carries(op.Type) {
		return longest
	}
	for _, w := range s.work(op) {
		r := p.rates[w.family]
		if w.family == linearFamily {
			r = p.nearest(s.operands(op))
		}
		for b := range longest {
			if r[b] > 0 {
				longest[b] = max(longest[b], w.amount/r[b])
			}
		}
	}
	return longest
}

// work lists what bounds an op; the longest counts.
func (s *scope) work(op *mil.Op) []work {
	operands := s.operands(op)
	bytes, in, out := s.sizes(op, operands)
	move := work{moving, bytes}
	switch op.Type {
	case "conv", "conv_transpose":
		return []work{s.convolution(op, operands, out)}
	case "linear":
		x, _ := find(operands, "x")
		n := len(x.typ.Shape)
		if n == 0 {
			return []work{move}
		}
		return []work{{linearFamily, 2 * out * float64(x.typ.Shape[n-1])}}
	case "matmul", "einsum":
		return []work{move, {multiplying, 2 * out * float64(contraction(op, operands))}}
	case "relu", "relu6", "leaky_relu", "prelu", "clamped_relu", "thresholded_relu":
		return []work{{relus, bytes}}
	case "concat", "stack":
		return []work{{joining, in + out}}
	case "gather", "gather_along_axis", "gather_nd":
		return []work{move, {lookingUp, in}}
	case "add", "sub", "mul", "real_div":
		return []work{move, {arithmetic, in}}
	case "gelu":
		return []work{move, {curves, out}}
	case "transpose":
		return []work{{turning, out}}
	}
	return []work{move}
}

// convolution counts two operations for each product.
func (s *scope) convolution(op *mil.Op, operands []operand, out float64) work {
	w, ok := find(operands, "weight")
	if !ok || len(w.typ.Shape) < 3 {
		return work{convolving, 0}
	}
	window := product(w.typ.Shape[2:])
	per := w.typ.Shape[1] * window // products for each result
	if op.Type == "conv_transpose" {
		per = w.typ.Shape[0] * window
	}
	operations := 2 * out * float64(per)
	if operations < smallConvolution {
		return work{convolvingS, operations}
	}
	return work{convolving, operations}
}

// sizes are the bytes that an op moves, and the elements that go in and come out.
func (s *scope) sizes(op *mil.Op, operands []operand) (bytes, in, out float64) {
	for _, o := range operands {
		t, ok := o.typ.AsTensor()
		if n, known := t.Count(); ok && known && t.DType != mil.String {
			size, _ := t.ByteSize()
			bytes += float64(size)
			in += float64(n)
		}
	}
	for _, v := range op.Outputs[:min(1, len(op.Outputs))] { // the compiler counts the first of several
		t, ok := v.Type.AsTensor()
		if n, known := t.Count(); ok && known {
			size, _ := t.ByteSize()
			bytes += float64(size)
			out += float64(n)
		}
	}
	return bytes, in, out
}

// nearest is the rate of the known shape that is nearest in octaves.
func (p *prices) nearest(operands []operand) rate {
	w, ok := find(operands, "weight")
	if !ok || len(w.typ.Shape) != 2 {
		return p.rates[convolvingS]
	}
	best, distance := p.rates[convolvingS], math.Inf(1)
	for _, r := range p.linear {
		d := math.Abs(math.Log2(float64(w.typ.Shape[0])/float64(r.out))) + math.Abs(math.Log2(float64(w.typ.Shape[1])/float64(r.in)))
		if d < distance {
			best, distance = r.rate, d
		}
	}
	return best
}
