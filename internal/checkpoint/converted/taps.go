package converted

import (
	"slices"

	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Tap is a result that the forward pass has a name for.
type Tap struct {
	Point gemma4.Point
	Layer int // −1 outside the layers
	Op    *mil.Op
}

// Taps are the results of a chunk that the forward pass has a name for, by the name in the program: the branches of every layer before
// their norms, the stream behind every layer, and what the head makes of the last one.
func (c Chunk) Taps() map[string]Tap {
	g, w := c.graph, c.found
	taps := map[string]Tap{}
	add := func(p gemma4.Point, layer int, op *mil.Op) {
		if op != nil && len(op.Outputs) > 0 {
			taps[op.Outputs[0].Name] = Tap{p, layer, op}
		}
	}
	for i, label := range w.labels {
		at := c.Lo + i
		add(gemma4.PointAttnOut, at, g.products[inLayer(label, "self_attn.o_proj.weight")])
		add(gemma4.PointFFNOut, at, g.products[inLayer(label, "mlp.down_proj.weight")])
		add(gemma4.PointPLEOut, at, g.products[inLayer(label, "per_layer_projection.weight")])
		add(gemma4.PointHidden, at, g.outputOf(w, label))
	}
	if slices.Contains(g.function.Body.Outputs, "per_layer_combined_out") {
		add(gemma4.PointPLE, -1, g.origin("per_layer_combined_out"))
	}
	if head := g.products[headName]; head != nil {
		add(gemma4.PointFinalNorm, -1, g.gained(w.at[finalNorm]))
		add(gemma4.PointLogitsPre, -1, head)
		if argmax := g.first("reduce_argmax"); argmax != nil {
			add(gemma4.PointLogits, -1, g.producers[argmax.Input("x")[0].Name])
		}
	}
	return taps
}

// In is the chunk seen through another of its functions.
func (c Chunk) In(function string) (Chunk, error) {
	f := c.Program.Function(function)
	if f == nil {
		return c, &format.Error{Path: c.Path, Field: "functions", Got: "no " + function, Want: "the same functions in every chunk"}
	}
	g := newGraph(f)
	w, err := g.find(c.Path)
	c.Function, c.graph, c.found = f, g, w
	return c, err
}

// outputOf is the op behind which the stream of a layer is complete: the product with the layer's scalar, or the sum where there is
// none.
func (g *graph) outputOf(w found, label string) *mil.Op {
	if op := g.gained(w.at[inLayer(label, scalarName)]); op != nil {
		return op
	}
	return g.lastSum(w.lastGain(label))
}

// gained is the product with a constant, nil without one.
func (g *graph) gained(constant *mil.Op) *mil.Op {
	if constant == nil {
		return nil
	}
	for _, op := range g.function.Body.Ops {
		if op.Type == "mul" && g.factor(op) == constant {
			return op
		}
	}
	return nil
}

// origin is the op that computes a result, behind those that only give it another name.
func (g *graph) origin(name string) *mil.Op {
	op := g.producers[name]
	for op != nil && op.Type == "identity" {
		op = g.producers[op.Input("x")[0].Name]
	}
	return op
}

func (g *graph) first(kind string) *mil.Op {
	for _, op := range g.function.Body.Ops {
		if op.Type == kind {
			return op
		}
	}
	return nil
}

// Stored says how a package holds a weight.
type Stored struct {
	Package string // path
	Op      string // const, or the constexpr op that decodes it
	Name    string // in the program
}

// Compressed reports whether the weight had to be changed to be stored.
func (s Stored) Compressed() bool { return s.Op != "const" }

// Stored says how a weight is held; ok is false for tables, and for layer scalars that were dropped.
func (s *Source) Stored(name string) (at Stored, ok bool) {
	w, ok := s.weights[name]
	if !ok {
		return Stored{}, false
	}
	return Stored{w.p.Path, w.op.Type, w.op.Name()}, true
}

// Weights lists the weights that the packages hold, sorted: [Source.Names] without tables, with the head.
func (s *Source) Weights() []string {
	var names []string
	for name := range s.weights {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Names of weights that are not stored as the checkpoint has them: the LM head, which is tied to the embeddings there, and the projection
// that a scale may have been folded into.
const (
	Head            = headName
	ModelProjection = modelProjection
)

// HasHead reports whether the chunk ends in the LM head.
func (c Chunk) HasHead() bool { return c.found.at[headName] != nil }

// Chains groups programs by the tokens that they take at the least: decode chunks apart from prefill chunks in files of their own.
func Chains(programs []*coreml.Model) [][]*coreml.Model {
	byTokens := map[int][]*coreml.Model{}
	var order []int
	for _, p := range programs {
		n := 0
		if f := p.Decode(); f != nil {
			n = coreml.Tokens(f)
		}
		if byTokens[n] == nil {
			order = append(order, n)
		}
		byTokens[n] = append(byTokens[n], p)
	}
	slices.Sort(order)
	var chains [][]*coreml.Model
	for _, n := range order {
		chains = append(chains, byTokens[n])
	}
	return chains
}
