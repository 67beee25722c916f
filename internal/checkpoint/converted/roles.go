package converted

import (
	"slices"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// found is where the weights of one function are.
type found struct {
	at     map[string]*mil.Op // by name; nil for a layer scalar of one, which converters drop
	labels []string           // of the layers, in the order in which the function computes them
}

// find recognises the weights of a function.
func (g *graph) find(path string) (found, error) {
	w := found{at: map[string]*mil.Op{}}
	for _, op := range g.function.Body.Ops {
		name, leaf := "", (*mil.Op)(nil)
		switch op.Type {
		case "conv", "linear":
			if leaf = g.constant(op.Input("weight")); leaf != nil {
				if name = g.linear(op, leaf); name != "" {
					g.products[name] = op
				}
			}
		case "mul":
			if leaf = g.factor(op); leaf != nil {
				name = ownName(leaf)
			}
		}
		if name == "" {
			continue
		}
		if had, twice := w.at[name]; twice && !same(had, leaf) {
			return w, &format.Error{Path: path, Field: g.function.Name + "/" + op.Name() + " (" + op.Type + ")", Got: "a second " + name + ": " + leaf.Name(),
				Want: "one, " + had.Name(), Fix: "this converter's graphs are of another form"}
		}
		w.note(name, leaf)
	}
	return w, g.scalars(w, path)
}

// note files a weight. The first that is seen of a layer is the gain before its attention.
func (w *found) note(name string, leaf *mil.Op) {
	w.at[name] = leaf
	if label, _ := split(name); label != "" && !slices.Contains(w.labels, label) {
		w.labels = append(w.labels, label)
	}
}

// same reports whether two constants are one: some converters write a gain once for each use.
func same(a, b *mil.Op) bool {
	if a == b {
		return true
	}
	x, y := a.Attribute("val"), b.Attribute("val")
	if x == nil || y == nil {
		return false
	}
	p, errP := x.Bytes()
	q, errQ := y.Bytes()
	return errP == nil && errQ == nil && x.Type.Equal(y.Type) && string(p) == string(q)
}

// linear names the weight of a product by its own name, else by where it stands.
func (g *graph) linear(op, leaf *mil.Op) string {
	if name := ownName(leaf); name != "" {
		return name
	}
	return g.role(op)
}

// role names the weight of a product by the gains and ops around it.
func (g *graph) role(op *mil.Op) string {
	behind, end := g.after(op)
	layer, part := split(behind)
	switch part {
	case "self_attn.q_norm.weight":
		return inLayer(layer, "self_attn.q_proj.weight")
	case "self_attn.k_norm.weight":
		return inLayer(layer, "self_attn.k_proj.weight")
	case "post_attention_layernorm.weight":
		return inLayer(layer, "self_attn.o_proj.weight")
	case "post_feedforward_layernorm.weight":
		return inLayer(layer, "mlp.down_proj.weight")
	case "post_per_layer_input_norm.weight":
		return inLayer(layer, "per_layer_projection.weight")
	case "per_layer_projection_norm.weight":
		return modelProjection
	}
	layer, part = split(g.before(op.Input("x")))
	switch {
	case end == "tanh" || end == "reduce_argmax":
		return headName
	case part == "input_layernorm.weight":
		return inLayer(layer, "self_attn.v_proj.weight")
	case part == "pre_feedforward_layernorm.weight" && end == "gelu":
		return inLayer(layer, "mlp.gate_proj.weight")
	case part == "pre_feedforward_layernorm.weight":
		return inLayer(layer, "mlp.up_proj.weight")
	case end == "gelu":
		return g.inputGate(op)
	}
	return ""
}

func inLayer(layer, part string) string { return "layers." + layer + "." + part }

// inputGate is the per-layer input gate that op multiplies with: its layer is that of the projection which follows.
func (g *graph) inputGate(op *mil.Op) string {
	for steps := 0; steps < 16 && op != nil; steps++ {
		var next *mil.Op
		for _, out := range op.Outputs {
			for _, c := range g.consumers[out.Name] {
				next = c
			}
		}
		if op = next; op == nil || op.Type != "conv" && op.Type != "linear" {
			continue
		}
		if layer, part := split(g.role(op)); part == "per_layer_projection.weight" {
			return inLayer(layer, "per_layer_input_gate.weight")
		}
		return ""
	}
	return ""
}

// lastGain is the gain behind which the stream of a layer is scaled: the norm of its last branch.
func (w found) lastGain(layer string) string {
	if name := inLayer(layer, "post_per_layer_input_norm.weight"); w.at[name] != nil {
		return name
	}
	return inLayer(layer, "post_feedforward_layernorm.weight")
}

// scalars finds the factor of every layer's output: the constant of one element that the last sum of the layer is multiplied with.
func (g *graph) scalars(w found, path string) error {
	for _, layer := range w.labels {
		name := inLayer(layer, scalarName)
		if w.at[name] != nil {
			continue
		}
		sum := g.lastSum(w.lastGain(layer))
		if sum == nil {
			return &format.Error{Path: path, Field: g.function.Name, Got: "no sum behind " + w.lastGain(layer), Want: "a residual stream",
				Fix: "this converter's graphs are of another form"}
		}
		w.at[name] = g.scalarOf(sum)
	}
	return nil
}

// lastSum is the sum that a named gain's result goes into.
func (g *graph) lastSum(gain string) *mil.Op {
	for _, op := range g.function.Body.Ops {
		if op.Type == "add" && (g.before(op.Input("x")) == gain || g.before(op.Input("y")) == gain) {
			return op
		}
	}
	return nil
}

// scalarOf is the factor of a sum, nil if there is none: a product of the sum alone, which is not the negative side of a norm.
func (g *graph) scalarOf(sum *mil.Op) *mil.Op {
	from := sum
	for {
		next := g.consumers[from.Outputs[0].Name]
		for _, op := range next {
			if op.Type != "mul" {
				continue
			}
			if c := g.factor(op); c != nil && !g.mirrors(op, from) {
				if _, ok := one(c); ok {
					return c
				}
			}
		}
		if len(next) != 1 || !shaping[next[0].Type] {
			return nil
		}
		from = next[0]
	}
}

// mirrors reports whether a product is put beside what it is a product of.
func (g *graph) mirrors(product, of *mil.Op) bool {
	for _, op := range g.consumers[product.Outputs[0].Name] {
		if op.Type != "concat" {
			continue
		}
		for _, b := range op.Input("values") {
			if b.Name == of.Outputs[0].Name {
				return true
			}
		}
	}
	return false
}
