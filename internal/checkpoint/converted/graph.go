package converted

import (
	"anelab/coreml/mil"
)

// graph is the body of a function with its edges.
type graph struct {
	function  *mil.Function
	producers map[string]*mil.Op
	consumers map[string][]*mil.Op
	products  map[string]*mil.Op // convolutions and linears by the name of their weight
}

func newGraph(f *mil.Function) *graph {
	return &graph{function: f, producers: f.Body.Producers(), consumers: f.Body.Consumers(), products: map[string]*mil.Op{}}
}

// shaping ops keep every number what it is.
var shaping = map[string]bool{"transpose": true, "reshape": true, "squeeze": true, "expand_dims": true, "identity": true, "cast": true}

// norming ops are what a norm in layer_norm form consists of besides those (spec forward.md §5.1): the stream and its negative side
// by side, normed, cut in half.
var norming = map[string]bool{"concat": true, "layer_norm": true, "split": true, "slice_by_index": true}

// constant finds the op that stores an operand, through ops that only shape it; nil for what is computed.
func (g *graph) constant(b []mil.Binding) *mil.Op {
	for len(b) == 1 && b[0].Value == nil {
		op := g.producers[b[0].Name]
		switch {
		case op == nil:
			return nil
		case op.Type == "const" || op.IsConstexpr():
			return op
		case !shaping[op.Type]:
			return nil
		}
		b = op.Input("x")
	}
	return nil
}

// factor is the constant operand of a product or quotient, nil if both operands are computed.
func (g *graph) factor(op *mil.Op) *mil.Op {
	if c := g.constant(op.Input("y")); c != nil {
		return c
	}
	return g.constant(op.Input("x"))
}

// one is the value of a constant of one element.
func one(op *mil.Op) (float64, bool) {
	if op == nil || op.Type != "const" {
		return 0, false
	}
	v := op.Attribute("val")
	if v == nil {
		return 0, false
	}
	return v.Float()
}

// after looks at what becomes of a result: the first named gain it is multiplied with, and the first op that neither shapes nor
// norms nor scales it.
func (g *graph) after(op *mil.Op) (gain, end string) {
	queue, seen := []*mil.Op{op}, map[*mil.Op]bool{op: true}
	for len(queue) > 0 {
		op, queue = queue[0], queue[1:]
		for _, out := range op.Outputs {
			for _, next := range g.consumers[out.Name] {
				if seen[next] {
					continue
				}
				seen[next] = true
				name, passes := g.through(next)
				switch {
				case name != "":
					return name, ""
				case passes:
					queue = append(queue, next)
				case end == "":
					end = next.Type
				}
			}
		}
	}
	return "", end
}

// through says whether a search goes on behind an op, or which gain the op applies.
func (g *graph) through(op *mil.Op) (gain string, passes bool) {
	if shaping[op.Type] || norming[op.Type] {
		return "", true
	}
	if op.Type != "mul" && op.Type != "real_div" {
		return "", false
	}
	c := g.factor(op)
	if c == nil {
		return "", false
	}
	if name := ownName(c); name != "" {
		return name, false
	}
	_, scales := one(c)
	return "", scales
}

// before is the gain that was applied to an operand last, "" if it was combined with something else since.
func (g *graph) before(b []mil.Binding) string {
	for len(b) > 0 && b[0].Value == nil {
		op := g.producers[b[0].Name]
		if op == nil {
			return ""
		}
		gain, passes := g.through(op)
		if gain != "" || !passes {
			return gain
		}
		b = g.computed(op)
	}
	return ""
}

// computed is the operand of an op that is no constant.
func (g *graph) computed(op *mil.Op) []mil.Binding {
	if op.Type == "concat" {
		return op.Input("values")
	}
	if b := op.Input("x"); g.constant(b) == nil {
		return b
	}
	return op.Input("y")
}

// scale is the one constant that a result is multiplied with before anything else happens to it; op is the type of the product.
func (g *graph) scale(from *mil.Op) (value float64, op string) {
	for from != nil && len(from.Outputs) == 1 {
		next := g.consumers[from.Outputs[0].Name]
		if len(next) != 1 {
			return 1, ""
		}
		if from = next[0]; shaping[from.Type] {
			continue
		}
		if x, ok := one(g.factor(from)); ok && (from.Type == "mul" || from.Type == "real_div") {
			return x, from.Type
		}
		return 1, ""
	}
	return 1, ""
}
