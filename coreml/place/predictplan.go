package place

import (
	"fmt"

	"anelab/chunking"
)

// PredictPlan says where the work of every chunk of a plan will run: the ops that a chunk has at least, in program order. What a
// converter puts between them rearranges tensors, and stays where its neighbours are.
func PredictPlan(p *chunking.Plan, o Options) []*Placement {
	limits := o.limits()
	var all []*Placement
	for _, c := range p.Chunks {
		at := &Placement{Function: c.String()}
		w := planWork{tokens: max(1, p.Layout.QueryTokens), hidden: p.Model.Config.HiddenSize, limits: limits}
		for _, op := range c.Ops {
			w.op(op)
		}
		if c.Head {
			w.tail(p.Model.Config.VocabSize)
		}
		at.Ops, at.Between = w.ops, between*(c.Hi-c.Lo)
		at.follow(w.steps, o.costs())
		at.judgeSize(c.Totals.WeightBytes, limits)
		all = append(all, at)
	}
	return all
}

// between is how many ops of a layer a plan does not list: reshapes, transposes, rotations, masks. The leanest graphs known have 82
// a layer in all, of which a plan lists nine to twelve.
const between = 70

// planWork collects the ops of a chunk.
type planWork struct {
	tokens, hidden int
	limits         *Limits
	ops            []OpPlacement
	steps          []Seconds
}

// op adds the graph's form of an op of the plan.
func (w *planWork) op(op chunking.Op) {
	name := string(op.Kind)
	if op.Layer >= 0 {
		name = fmt.Sprintf("layers_%d_%s", op.Layer, op.Kind)
	}
	const fp16, inAndOut = 2, 2
	switch op.Kind {
	case chunking.OpNorm:
		w.add(name, "layer_norm", nil, work{moving, float64(fp16 * inAndOut * w.tokens * w.hidden)})
	case chunking.OpAttention:
		w.add(name, "attention", nil, work{moving, float64(op.KVReadBytes)}, work{multiplying, 2 * float64(op.MACs)})
	default:
		var r *Refusal
		if int64(op.Cols) > w.limits.Dimension {
			r = &Refusal{RuleDimension, fmt.Sprintf("a contraction over %d, more than %d", op.Cols, w.limits.Dimension)}
		}
		size := convolvingS
		if 2*float64(op.MACs) >= smallConvolution {
			size = convolving
		}
		w.add(name, "conv", r, work{size, 2 * float64(op.MACs)})
	}
}

// tail is what every decoder does behind its head: soft-cap, argmax, and the logit of the token (limits.csv, argmax tail).
func (w *planWork) tail(vocabulary int) {
	const fp16 = 2
	logits := float64(fp16 * w.tokens * vocabulary)
	var wide *Refusal
	if int64(vocabulary) > w.limits.Dimension {
		wide = &Refusal{RuleDimension, fmt.Sprintf("logits [%d, %d], a dimension of more than %d", w.tokens, vocabulary, w.limits.Dimension)}
	}
	for _, op := range []struct {
		name, kind string
		refusal    *Refusal
		bytes      float64
	}{
		{"softcap_in", "mul", wide, 2 * logits}, {"softcap", "tanh", wide, 2 * logits}, {"softcap_out", "mul", wide, 2 * logits},
		{"logits", "squeeze", wide, 2 * logits},
		{"token", "reduce_argmax", &Refusal{RuleOutput, "indices of type int32"}, logits},
		{"token_index", "expand_dims", &Refusal{RuleType, "int32"}, 0},
		{"token_logit", "gather_along_axis", &Refusal{RuleGather, "indices of type int32 that are computed"}, logits},
		{"token_id", "squeeze", &Refusal{RuleType, "int32"}, 0},
	} {
		w.add(op.name, op.kind, op.refusal, work{moving, op.bytes})
	}
}

func (w *planWork) add(name, kind string, r *Refusal, parts ...work) {
	var s Seconds
	for _, part := range parts {
		for b, speed := range shipped.rates[part.family] {
			if speed > 0 {
				s[b] = max(s[b], part.amount/speed)
			}
		}
	}
	if r != nil {
		s[ANE] = refused
	}
	w.ops, w.steps = append(w.ops, OpPlacement{Name: name, Type: kind, Refusal: r}), append(w.steps, s)
}
