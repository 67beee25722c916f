package converted

import (
	"math"

	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/half"
	"anelab/quant"
)

// Choices are how a converter wrote down what a checkpoint leaves open. They do not change the model, they change roundings.
type Choices struct {
	Rules  arith.ANERules // as the Go model must be told, for weights of a checkpoint
	Folded FoldedScale
}

// FoldedScale says that the weight of the per-layer model projection already contains hidden^−½.
type FoldedScale bool

// choices reads off the form of a graph what it says; parts of the model that are in another chunk leave the zero value.
func (g *graph) choices(c gemma4.Config) Choices {
	var o Choices
	for _, op := range g.function.Body.Ops {
		switch op.Type {
		case "rsqrt":
			o.Rules.VNorm = arith.VNormFiveSteps
		case "softmax":
			o.Rules.Softmax = arith.SoftmaxFused
		case "layer_norm":
			if eps, ok := one(g.constant(op.Input("epsilon"))); ok && float32(eps) == float32(c.RMSNormEps) && half.RoundF16(float32(eps)) != float32(eps) {
				o.Rules.Eps = arith.EpsExact
			}
		}
	}
	if op := g.products[headName]; op != nil {
		if _, how := g.scale(op); how == "mul" {
			o.Rules.SoftCap = arith.SoftCapMultiplies
		}
	}
	if op := g.products[modelProjection]; op != nil && !g.scaled(op, c) {
		o.Rules.PLEScale, o.Folded = arith.PLEScaleFolded, true
	}
	return o
}

// scaled reports whether a product is multiplied with hidden^−½, as a constant of fp16 or more.
func (g *graph) scaled(op *mil.Op, c gemma4.Config) bool {
	factor, how := g.scale(op)
	want := 1 / math.Sqrt(float64(c.HiddenSize))
	if how == "real_div" {
		factor = 1 / factor
	}
	return how != "" && math.Abs(factor-want) < want/1000
}

// or takes what either says.
func (o Choices) or(p Choices) Choices {
	o.Rules.VNorm = max(o.Rules.VNorm, p.Rules.VNorm)
	o.Rules.Softmax = max(o.Rules.Softmax, p.Rules.Softmax)
	o.Rules.Eps = max(o.Rules.Eps, p.Rules.Eps)
	o.Rules.SoftCap = max(o.Rules.SoftCap, p.Rules.SoftCap)
	o.Rules.PLEScale = max(o.Rules.PLEScale, p.Rules.PLEScale)
	o.Folded = o.Folded || p.Folded
	return o
}

// Arithmetic is the ane mode that rounds where the graphs do, for a model whose weights come from the packages themselves.
func (s *Source) Arithmetic(threads int) arith.Arithmetic {
	a := arith.NewANE(s.Choices.Rules, threads)
	if s.Choices.Folded {
		return folded{a}
	}
	return a
}

// folded leaves alone the one weight that a scale belongs to: it has been multiplied in already.
type folded struct{ arith.Arithmetic }

// ScaledWeight implements arith.Arithmetic.
func (f folded) ScaledWeight(w quant.Matrix, _ float64) (quant.Matrix, float64) {
	return f.Weight(w), 1
}
