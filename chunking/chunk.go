package chunking

import (
	"slices"

	"anelab/gemma4"
)

// build makes a chunk from its layers, head and weights.
func (g *graphs) build(cut Cut) *Chunk {
	c := &Chunk{Lo: cut.Lo, Hi: cut.Hi, Head: cut.Head, Weights: cut.weights()}
	c.Inputs, c.Outputs = g.inputs(c), g.outputs(c)
	c.Ops = g.ops(c)
	c.Totals = g.totals(c)
	return c
}

// layers of the chunk.
func (g *graphs) layers(c *Chunk) []gemma4.Layer { return g.model.Layers[c.Lo:c.Hi] }

// owned lists the layers whose keys and values the chunk stores in a bank, in layer order: slot → layer.
func (g *graphs) owned(c *Chunk, b Bank) []int {
	var own []int
	for _, l := range g.layers(c) {
		if at := g.bank[l.Index]; at.Kind == b.Kind && at.Name == b.Name && l.OwnsKV() {
			own = append(own, l.Index)
		}
	}
	return own
}

// owns reports whether the chunk stores keys and values of its own.
func (g *graphs) owns(c *Chunk) bool {
	return g.ownsKind(c, gemma4.Sliding) || g.ownsKind(c, gemma4.Full)
}

// ownsKind reports whether the chunk stores keys and values of layers of the kind.
func (g *graphs) ownsKind(c *Chunk, kind gemma4.Kind) bool {
	return slices.ContainsFunc(g.layers(c), func(l gemma4.Layer) bool { return l.Kind == kind && l.OwnsKV() })
}

// imports reports whether a layer of the chunk reads the kind's donor from an earlier chunk.
func (g *graphs) imports(c *Chunk, kind gemma4.Kind) bool {
	donor := g.model.kinds[kind].donor
	if donor < 0 || donor >= c.Lo {
		return false
	}
	for _, l := range g.layers(c) {
		if l.Kind == kind && !l.OwnsKV() {
			return true
		}
	}
	return false
}

// exports reports whether the chunk owns the kind's donor and a layer of a later chunk reads it.
func (g *graphs) exports(c *Chunk, kind gemma4.Kind) bool {
	k := g.model.kinds[kind]
	return c.Lo <= k.donor && k.donor < c.Hi && k.lastReader >= c.Hi
}

func (g *graphs) totals(c *Chunk) Totals {
	t := Totals{Layers: c.Hi - c.Lo}
	for _, l := range g.layers(c) {
		*t.layerCount(l)++
	}
	for _, o := range c.Ops {
		t.addOp(o)
	}
	for _, p := range c.Inputs {
		t.addInput(p)
	}
	for _, p := range c.Outputs {
		t.addOutput(p)
	}
	return t
}

// layerCount picks the counter that a layer belongs to.
func (t *Totals) layerCount(l gemma4.Layer) *int {
	switch {
	case l.Kind == gemma4.Full && l.OwnsKV():
		return &t.FullOwn
	case l.Kind == gemma4.Full:
		return &t.FullShared
	case l.OwnsKV():
		return &t.SlidingOwn
	}
	return &t.SlidingShared
}

func (t *Totals) addOp(o Op) {
	t.WeightBytes += o.WeightBytes
	t.MACs += o.MACs
	t.KVReadBytes += o.KVReadBytes
	t.PLEModel = t.PLEModel || o.Kind == OpPLEModel
	if o.Kind != OpNorm {
		t.LinearParams += int64(o.Rows) * int64(o.Cols)
		t.LinearBytes += o.WeightBytes
	}
}

func (t *Totals) addInput(p Port) {
	n := p.Bytes()
	t.InputBytes += n
	switch p.Role {
	case RoleCache:
		t.CacheBytes += n
		t.CacheInBytes += n
	case RoleHandoff:
		t.HandoffInBytes += n
	}
}

func (t *Totals) addOutput(p Port) {
	n := p.Bytes()
	t.OutputBytes += n
	switch p.Role {
	case RoleCache:
		t.CacheBytes += n
	case RoleHandoff:
		t.HandoffOutBytes += n
	}
}
