package place

import (
	"cmp"
	"fmt"
	"slices"

	"anelab/chunking"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/quant"
)

// Reading is a plan made from programs.
type Reading struct {
	Plan    *chunking.Plan
	Unknown []Unknown
	Notes   []string // what was assumed
}

// Unknown is work that a cost model fitted on decoder chunks has no term for.
type Unknown struct {
	Chunk   int
	Class   string  // op type, or what about it is unusual
	Ops     int     //
	Seconds float64 // what Apple's compiler expects of it, where it is placed: the size of what is not known, no prediction
}

// ReadPlan reads a plan from the programs of a chunked model, one function each, in the order in which they are called: weights
// with their encodings, products, attention, ports. Names of layers, where the weights have them, say which ops belong together;
// otherwise every attention begins a layer. Layers may be counted from the first of the model or from the first of the chunk.
//
// The plan's model is what the programs show of one. It prices as the plan of a layout does; it cannot be emitted.
func ReadPlan(functions []*mil.Function) (*Reading, error) {
	r := &Reading{Plan: &chunking.Plan{Model: &chunking.Model{}}}
	outputs := map[string]bool{} // of earlier chunks
	for i, f := range functions {
		c, err := readChunk(f, r.Plan.Model, outputs)
		if err != nil {
			return nil, err
		}
		if c.hidden > 0 && r.Plan.Model.Config.HiddenSize > 0 && c.hidden != r.Plan.Model.Config.HiddenSize {
			return nil, &format.Error{Field: f.Name, Got: fmt.Sprintf("chunk %d of width %d", i+1, c.hidden), Want: fmt.Sprintf("%d, as the chunks before", r.Plan.Model.Config.HiddenSize),
				Fix: "give the chunks of one model in the order in which they are called"}
		}
		r.Plan.Model.Config.HiddenSize = cmp.Or(r.Plan.Model.Config.HiddenSize, c.hidden)
		r.Plan.Layout.QueryTokens = max(r.Plan.Layout.QueryTokens, c.tokens)
		r.Plan.Context = max(r.Plan.Context, c.context)
		r.Plan.Chunks = append(r.Plan.Chunks, c.Chunk)
		for _, u := range c.unknown() {
			u.Chunk = i
			r.Unknown = append(r.Unknown, u)
		}
		r.Notes = append(r.Notes, c.notes...)
	}
	r.finish()
	return r, nil
}

// finish settles what only all chunks together show: the context, which layers look at less than it, and the cuts.
func (r *Reading) finish() {
	p := r.Plan
	if p.Layout.QueryTokens == 1 {
		p.Layout.QueryTokens = 0
	}
	if p.Context == 0 {
		p.Context = 1
		r.Notes = append(r.Notes, "no attention was found: context taken as 1")
	}
	if p.Context != chunking.DefaultContext {
		p.Layout.Context = p.Context
	}
	layers := p.Model.Layers
	for i := range layers {
		if w := layers[i].Window; w > 0 {
			layers[i].Kind = gemma4.Sliding
		}
	}
	for _, c := range p.Chunks {
		c.Totals = totalsOf(c, layers)
		cut := chunking.Cut{Lo: c.Lo, Hi: c.Hi, Head: c.Head}
		if c.Weights != quant.Int4G32 {
			cut.Weights = c.Weights
		}
		p.Layout.Cuts = append(p.Layout.Cuts, cut)
	}
	p.Model.Config.NumHiddenLayers = len(layers)
	r.known()
}

// totalsOf sums a chunk.
func totalsOf(c *chunking.Chunk, layers []gemma4.Layer) chunking.Totals {
	t := chunking.Totals{Layers: c.Hi - c.Lo}
	for _, l := range layers[c.Lo:c.Hi] {
		switch {
		case l.Kind == gemma4.Full && l.OwnsKV():
			t.FullOwn++
		case l.Kind == gemma4.Full:
			t.FullShared++
		case l.OwnsKV():
			t.SlidingOwn++
		default:
			t.SlidingShared++
		}
	}
	for _, o := range c.Ops {
		t.WeightBytes += o.WeightBytes
		t.MACs += o.MACs
		t.KVReadBytes += o.KVReadBytes
		t.PLEModel = t.PLEModel || o.Kind == chunking.OpPLEModel
		if o.Kind != chunking.OpNorm {
			t.LinearParams += int64(o.Rows) * int64(o.Cols)
			t.LinearBytes += o.WeightBytes
		}
	}
	for _, p := range c.Inputs {
		t.InputBytes += p.Bytes()
		switch p.Role {
		case chunking.RoleCache:
			t.CacheBytes, t.CacheInBytes = t.CacheBytes+p.Bytes(), t.CacheInBytes+p.Bytes()
		case chunking.RoleHandoff:
			t.HandoffInBytes += p.Bytes()
		}
	}
	for _, p := range c.Outputs {
		t.OutputBytes += p.Bytes()
		switch p.Role {
		case chunking.RoleCache:
			t.CacheBytes += p.Bytes()
		case chunking.RoleHandoff:
			t.HandoffOutBytes += p.Bytes()
		}
	}
	return t
}

// classes sums unknown work by class.
type classes map[string]*Unknown

func (all classes) add(class string, seconds float64) {
	u := all[class]
	if u == nil {
		u = &Unknown{Class: class}
		all[class] = u
	}
	u.Ops++
	u.Seconds += seconds
}

func (all classes) sorted() []Unknown {
	var list []Unknown
	for _, u := range all {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b Unknown) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Class, b.Class))
	})
	return list
}
