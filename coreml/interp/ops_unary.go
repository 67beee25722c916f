package interp

import (
	"math"

	"anelab/internal/arith"
)

// unary are ops on one operand, element by element.
var unary = family{
	"exp":  vector((*arith.Graph).Exp),
	"tanh": vector((*arith.Graph).Tanh),
	"gelu": gelu,

	"abs": either(math.Abs, func(x int32) int32 { return max(x, -x) }), "sign": either(sign, intSign),
	"square": either(func(x float64) float64 { return x * x }, func(x int32) int32 { return x * x }),

	"acos": each(math.Acos), "asin": each(math.Asin), "atan": each(math.Atan), "atanh": each(math.Atanh), "ceil": each(math.Ceil),
	"cos": each(cos), "cosh": each(math.Cosh), "erf": each(math.Erf), "exp2": each(math.Exp2), "floor": each(math.Floor),
	"round": each(math.RoundToEven), "sin": each(sin), "sinh": each(math.Sinh), "sqrt": each(math.Sqrt), "tan": each(math.Tan),
	"sigmoid": each(sigmoid), "silu": each(func(x float64) float64 { return x * sigmoid(x) }), "relu": each(relu),
	"relu6": each(func(x float64) float64 { return math.Min(relu(x), 6) }), "softplus": each(softplus),
	"softsign": each(func(x float64) float64 { return x / (1 + math.Abs(x)) }),

	"rsqrt":   withEpsilon(1e-12, func(x float64) float64 { return 1 / math.Sqrt(x) }),
	"inverse": withEpsilon(1e-4, func(x float64) float64 { return 1 / x }),
	"log":     withEpsilon(1e-45, logarithm),

	"clip":                shaped(func(x, a, b float64) float64 { return math.Min(math.Max(x, a), b) }),
	"clamped_relu":        shaped(func(x, a, b float64) float64 { return math.Min(leaky(x, a), b) }),
	"linear_activation":   shaped(func(x, a, b float64) float64 { return float64(a*x) + b }),
	"scaled_tanh":         shaped(func(x, a, b float64) float64 { return a * arith.Tanh64(b*x) }),
	"sigmoid_hard":        shaped(func(x, a, b float64) float64 { return math.Min(math.Max(float64(a*x)+b, 0), 1) }),
	"elu":                 shaped(func(x, a, _ float64) float64 { return elu(x, a) }),
	"leaky_relu":          shaped(func(x, a, _ float64) float64 { return leaky(x, a) }),
	"thresholded_relu":    shaped(func(x, a, _ float64) float64 { return thresholded(x, a) }),
	"threshold":           shaped(func(x, a, _ float64) float64 { return math.Max(x, a) }),
	"logical_not":         logicalNot,
	"prelu":               prelu,
	"softplus_parametric": softplusParametric,
}

// parallelFrom is the number of elements from which work is shared among cores.
const parallelFrom = 1 << 15

// blocks is a job on disjoint parts of slices.
type blocks func(lo, hi int)

// Run implements arith.Job.
func (b blocks) Run(lo, hi int) { b(lo, hi) }

// spread runs f on the parts of n elements.
func spread(g *arith.Graph, n int, f func(lo, hi int)) {
	if n < parallelFrom {
		f(0, n)
		return
	}
	g.Parallel(n, parallelFrom/2, blocks(f))
}

// mapped is x through f, which takes and gives slices of the same length.
func (c *call) mapped(x *array, f func(g *arith.Graph, y, x []float32)) {
	g, in := c.graph(), x.flat()
	y := c.blank(c.declared(0).DType, x.shape...)
	spread(g, len(in), func(lo, hi int) { f(g, y.floats[lo:hi], in[lo:hi]) })
	c.yield(y)
}

func vector(f func(g *arith.Graph, y, x []float32)) impl {
	return func(c *call) { c.mapped(c.array("x"), f) }
}

// each applies a function of float64 numbers.
func each(f func(float64) float64) impl {
	return vector(func(g *arith.Graph, y, x []float32) { g.Map(y, x, f) })
}

// either is for ops that take integers too.
func either(f func(float64) float64, ints func(int32) int32) impl {
	floats := each(f)
	return func(c *call) {
		x := c.array("x")
		if x.isFloat() {
			floats(c)
			return
		}
		y := newArray(x.dtype, x.shape...)
		for i, v := range x.flatInts() {
			y.ints[i] = ints(v)
		}
		c.yield(y)
	}
}

// withEpsilon adds epsilon to x first. It may be of a wider type than x.
func withEpsilon(absent float64, f func(float64) float64) impl {
	return func(c *call) {
		epsilon := c.float("epsilon", absent)
		c.mapped(c.array("x"), func(g *arith.Graph, y, x []float32) {
			g.Map(y, x, func(v float64) float64 { return f(v + epsilon) })
		})
	}
}

// shaped is a function with the parameters alpha and beta.
func shaped(f func(x, alpha, beta float64) float64) impl {
	return func(c *call) {
		alpha, beta := c.float("alpha", 0), c.float("beta", 0)
		c.mapped(c.array("x"), func(g *arith.Graph, y, x []float32) {
			g.Map(y, x, func(v float64) float64 { return f(v, alpha, beta) })
		})
	}
}

func gelu(c *call) {
	f := (*arith.Graph).GELU
	switch c.text("mode", "EXACT") {
	case "EXACT":
		f = func(g *arith.Graph, y, x []float32) {
			g.Map(y, x, func(v float64) float64 { return float64(0.5*v) * (1 + math.Erf(v/math.Sqrt2)) })
		}
	case "SIGMOID_APPROXIMATION":
		f = func(g *arith.Graph, y, x []float32) {
			g.Map(y, x, func(v float64) float64 { return v * sigmoid(1.702*v) })
		}
	}
	c.mapped(c.array("x"), f)
}

func sin(x float64) float64 {
	if math.Abs(x) >= 1<<19 {
		return math.Sin(x)
	}
	s, _ := arith.SinCos64(x)
	return s
}

func cos(x float64) float64 {
	if math.Abs(x) >= 1<<19 {
		return math.Cos(x)
	}
	_, c := arith.SinCos64(x)
	return c
}

func sigmoid(x float64) float64 { return 1 / (1 + arith.Exp64(-x)) }

func relu(x float64) float64 { return math.Max(x, 0) }

func leaky(x, slope float64) float64 {
	if x >= 0 {
		return x
	}
	return slope * x
}

func elu(x, alpha float64) float64 {
	if x >= 0 {
		return x
	}
	return alpha * math.Expm1(x)
}

func thresholded(x, alpha float64) float64 {
	if x < alpha {
		return 0
	}
	return x
}

// softplus is ln(1 + eˣ) without overflow.
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(arith.Exp64(-math.Abs(x))) }

// logarithm is the natural logarithm; the pinned one takes finite positive numbers only.
func logarithm(x float64) float64 {
	if x > 0 && x <= math.MaxFloat64 {
		return arith.Log64(x)
	}
	return math.Log(x)
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func intSign(x int32) int32 { return int32(sign(float64(x))) }

func logicalNot(c *call) {
	x := c.array("x")
	y := newArray(x.dtype, x.shape...)
	for i, v := range x.flatInts() {
		y.ints[i] = 1 - v
	}
	c.yield(y)
}

// prelu has a slope per channel, dimension 1.
func prelu(c *call) {
	c.perChannel([]string{"alpha"}, func(x float64, p []float64) float64 { return leaky(x, p[0]) })
}

// perChannel applies a function with parameters that have an entry for each index of dimension 1; absent ones are 0.
func (c *call) perChannel(params []string, f func(x float64, p []float64) float64) {
	x := c.array("x")
	in, y := x.flat(), newArray(c.declared(0).DType, x.shape...)
	entries := make([][]float32, len(params))
	for i, name := range params {
		entries[i] = c.floats(name)
	}
	inner, p := count(x.shape[2:]), make([]float64, len(params))
	for i := range in {
		channel := i / inner % x.shape[1]
		for k, list := range entries {
			if list != nil {
				p[k] = float64(list[channel%len(list)])
			}
		}
		y.floats[i] = float32(f(float64(in[i]), p))
	}
	c.graph().Store(y.floats)
	c.yield(y)
}

// softplusParametric is alpha·ln(1 + exp(beta·x)).
func softplusParametric(c *call) {
	c.perChannel([]string{"alpha", "beta"}, func(x float64, p []float64) float64 { return p[0] * softplus(p[1]*x) })
}
