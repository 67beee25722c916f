package chunking

import (
	"slices"

	"anelab/attention"
	"anelab/internal/format"
	"anelab/quant"
	"anelab/swa"
)

// Plan derives everything from the layout, for one model. To plan many layouts use one [Planner].
func (l Layout) Plan(m *Model) (*Plan, error) { return NewPlanner(m).Plan(l) }

// Planner makes plans and keeps the chunks it has built: layouts that share a chunk share the value.
// It is not safe for concurrent use; give each goroutine its own.
type Planner struct {
	model  *Model
	graphs []*graphs // one per combination of settings, the last used first
}

// NewPlanner returns a planner without chunks.
func NewPlanner(m *Model) *Planner { return &Planner{model: m} }

// Plan derives everything from the layout.
func (pl *Planner) Plan(l Layout) (*Plan, error) {
	p := &Plan{Chunks: make([]*Chunk, 0, len(l.Cuts))}
	if err := pl.PlanInto(p, l); err != nil {
		return nil, err
	}
	return p, nil
}

// PlanInto is [Planner.Plan] into a plan that is used again and again: once its chunks are built, planning a layout
// allocates nothing. The plan refers to the layout's slices.
func (pl *Planner) PlanInto(p *Plan, l Layout) error {
	if !l.inOrder(len(pl.model.Layers)) {
		return layoutError(l.Violations(pl.model)[0])
	}
	g, err := pl.settings(&l)
	if err != nil {
		return err
	}
	if pair, ok := borrowsAcross(g.borrowed, l.Cuts); ok {
		return layoutError(acrossViolation(pair))
	}
	p.Layout, p.Model, p.Context, p.Banks = l, pl.model, g.context, g.bank
	p.Chunks = p.Chunks[:0]
	for i := range l.Cuts {
		p.Chunks = append(p.Chunks, g.chunk(&l.Cuts[i]))
	}
	return nil
}

// inOrder is the whole rule for cuts, in the form that costs nothing: [Layout.Violations] says what is wrong.
func (l *Layout) inOrder(layers int) bool {
	next := 0
	for i := range l.Cuts {
		c := &l.Cuts[i]
		last := i == len(l.Cuts)-1
		if c.Lo != next || c.Hi > layers || c.Head != last || c.Hi < c.Lo || c.Hi == c.Lo && !c.Head {
			return false
		}
		next = c.Hi
	}
	return next == layers && len(l.Cuts) > 0
}

// settings finds or makes the graphs for the layout's settings.
func (pl *Planner) settings(l *Layout) (*graphs, error) {
	for i, g := range pl.graphs {
		if g.serves(l) {
			pl.graphs[0], pl.graphs[i] = g, pl.graphs[0]
			return g, nil
		}
	}
	g, err := newGraphs(pl.model, l)
	if err != nil {
		return nil, err
	}
	pl.graphs = append(pl.graphs, g)
	last := len(pl.graphs) - 1
	pl.graphs[0], pl.graphs[last] = pl.graphs[last], pl.graphs[0]
	return g, nil
}

// graphs are the chunks of one model under one set of settings. Under them a chunk is a function of its layers, its head
// and its weights alone.
type graphs struct {
	model   *Model
	context int // C
	tokens  int // T
	attn    []LayerAttn

	reach    []reach  // [L] what the queries of a layer look at
	bank     []Bank   // [L] behind a layer's keys
	rows     []int    // [L] of its bank, as ports declare them
	masked   bool     // some rows are written through a one-hot mask: those of every position, and sinks
	borrowed [][2]int // layers and those whose directions their rows take

	shelves []shelf
}

// shelf holds the chunks of one weight encoding: chunks[Lo][2·(Hi−Lo) + head], rows made when first asked for.
type shelf struct {
	weights quant.Encoding
	chunks  [][]*Chunk
}

func newGraphs(m *Model, l *Layout) (*graphs, error) {
	if v := settingViolations(*l, m); len(v) > 0 {
		return nil, layoutError(v[0])
	}
	policies, err := l.resolved(m)
	if err != nil {
		return nil, err
	}
	g := &graphs{model: m, context: orDefault(l.Context, DefaultContext), tokens: orDefault(l.QueryTokens, DefaultQueryTokens),
		attn: slices.Clone(l.Attn), reach: make([]reach, len(m.Layers)), rows: make([]int, len(m.Layers)), borrowed: borrowed(policies, m.Layers)}
	g.bank = banksOf(m.Layers, policies, g.context)
	for i, layer := range m.Layers {
		r := reachOf(layer, policies[i], g.context)
		r.form = attention.FormOf(policies[layer.KVSource])
		g.reach[i] = r
		keep := g.bank[i].Keep
		g.masked = g.masked || keep == swa.All || keep.Sink > 0
		g.rows[i] = stored(keep, g.context)
	}
	return g, nil
}

// serves reports whether the layout asks for these settings.
func (g *graphs) serves(l *Layout) bool {
	return orDefault(l.Context, DefaultContext) == g.context && orDefault(l.QueryTokens, DefaultQueryTokens) == g.tokens &&
		l.KVMode == ExplicitIO && slices.Equal(l.Attn, g.attn)
}

func (g *graphs) chunk(c *Cut) *Chunk {
	slot := 2 * (c.Hi - c.Lo)
	if c.Head {
		slot++
	}
	row := g.row(c.weights(), c.Lo)
	if row[slot] == nil {
		row[slot] = g.build(*c)
	}
	return row[slot]
}

// row returns the chunks that begin at layer lo.
func (g *graphs) row(weights quant.Encoding, lo int) []*Chunk {
	for i := range g.shelves {
		if s := &g.shelves[i]; s.weights == weights {
			if s.chunks[lo] == nil {
				s.chunks[lo] = make([]*Chunk, 2*(len(g.model.Layers)-lo+1))
			}
			return s.chunks[lo]
		}
	}
	g.shelves = append(g.shelves, shelf{weights: weights, chunks: make([][]*Chunk, len(g.model.Layers)+1)})
	return g.row(weights, lo)
}

// layoutError gives a violation the shape of every other fault in outside text.
func layoutError(v Violation) error {
	return &format.Error{Path: "layout", Field: v.where(), Got: v.Text, Fix: v.Fix}
}
