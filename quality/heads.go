package quality

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"anelab/attention"
	"anelab/gemma4"
	"anelab/internal/arith"
)

// HeadFigures say what a query head of a full layer is worth for recall at distances outside the recent positions.
type HeadFigures struct {
	Layer, Head int
	Alone       float64 // recall if only this head streams
	Only        float64 // recall if every other head of every full layer streams
	Mass        float64 // mean attention probability on the planted value
}

// HeadReport is the search for retrieval heads: no training, only masks.
type HeadReport struct {
	Streaming attention.Streaming
	Sequences int
	AllFull   float64       // recall at a distance with every head full
	NoneFull  float64       // with every head streaming
	Heads     []HeadFigures // by layer, then head
	Kept      []Kept        // heads with the most mass full, one more each time
}

// Kept is recall with some heads full and the others streaming.
type Kept struct {
	Heads       int
	Layer, Head int // the one added last; −1 for none
	Far, PPL    float64
}

// HeadSearch measures the heads of the full layers of one checkpoint.
type HeadSearch struct {
	Runner    *Runner
	Base      Unit // checkpoint, set, mode and sequences
	Streaming attention.Streaming
	Keep      int // how many heads to keep full at most, in the order of mass
	Progress  func(done, total int)

	layers      []gemma4.Layer
	done, total int
}

// Run measures every head three ways and then keeps them one by one. Attention mass ranks heads; recall decides how many are
// needed: heads that share the work are not missed one at a time.
func (h *HeadSearch) Run(ctx context.Context) (*HeadReport, error) {
	layers, err := h.Runner.in.Config.Layers()
	if err != nil {
		return nil, err
	}
	for _, y := range layers {
		if y.Kind == gemma4.Full {
			h.layers = append(h.layers, y)
		}
	}
	report := &HeadReport{Streaming: h.Streaming, Sequences: h.Base.Count}
	for _, y := range h.layers {
		for head := range y.Heads {
			report.Heads = append(report.Heads, HeadFigures{Layer: y.Index, Head: head})
		}
	}
	h.Keep = min(h.Keep, len(report.Heads))
	h.total = 2 + 2*len(report.Heads) + h.Keep + 1
	if err := h.mass(ctx, report); err != nil {
		return nil, err
	}
	return report, h.measure(ctx, report)
}

// headSet is the heads that see everything.
type headSet map[[2]int]bool

// measure fills in the recalls.
func (h *HeadSearch) measure(ctx context.Context, r *HeadReport) error {
	all, none := headSet{}, headSet{}
	for _, x := range r.Heads {
		all[[2]int{x.Layer, x.Head}] = true
	}
	var err error
	ask := func(full headSet) Figures {
		var f Figures
		if err == nil {
			f, err = h.figures(ctx, full)
		}
		return f
	}
	r.AllFull, r.NoneFull = ask(all).Far, ask(none).Far
	for i := range r.Heads {
		x := &r.Heads[i]
		key := [2]int{x.Layer, x.Head}
		delete(all, key)
		x.Alone = ask(all).Far
		all[key] = true
		x.Only = ask(headSet{key: true}).Far
	}
	kept := headSet{}
	for n, x := range append([]HeadFigures{{Layer: -1, Head: -1}}, byMass(r.Heads)...)[:h.Keep+1] {
		if n > 0 {
			kept[[2]int{x.Layer, x.Head}] = true
		}
		f := ask(kept)
		r.Kept = append(r.Kept, Kept{Heads: n, Layer: x.Layer, Head: x.Head, Far: f.Far, PPL: f.PPL})
	}
	return err
}

// enough is the share of the full model's recall that a suggestion must keep.
const enough = 0.99

// Suggest are the policies of the fewest heads, taken by mass, that keep 99 % of the recall: layers without such a head stream whole.
// Without enough heads measured all stay full.
func (r *HeadReport) Suggest(layers []gemma4.Layer) map[int]attention.Policy {
	full := headSet{}
	for _, k := range r.Kept {
		if k.Layer >= 0 {
			full[[2]int{k.Layer, k.Head}] = true
		}
		if k.Far >= enough*r.AllFull {
			return settle(maskAll(layers, r.Streaming, full))
		}
	}
	return map[int]attention.Policy{}
}

// settle writes policies of one class as what they are.
func settle(all map[int]attention.Policy) map[int]attention.Policy {
	for l, p := range all {
		d := p.(attention.Duo)
		switch {
		case !strings.Contains(d.Gates, "1"):
			all[l] = d.Streaming
		case !strings.Contains(d.Gates, "0"):
			all[l] = attention.Full{}
		}
	}
	return all
}

// byMass orders heads by falling mass.
func byMass(heads []HeadFigures) []HeadFigures {
	order := slices.Clone(heads)
	slices.SortStableFunc(order, func(a, b HeadFigures) int {
		switch {
		case a.Mass > b.Mass:
			return -1
		case a.Mass < b.Mass:
			return 1
		}
		return 0
	})
	return order
}

// figures runs the model with some heads full and the others streaming.
func (h *HeadSearch) figures(ctx context.Context, full headSet) (Figures, error) {
	u := h.Base
	u.Tasks = []Task{Recall, PPL}
	u.SetAttn(maskAll(h.layers, h.Streaming, full))
	s, err := h.Runner.Run(ctx, u)
	h.done++
	if h.Progress != nil {
		h.Progress(h.done, h.total)
	}
	return s.Figures(), err
}

// maskAll gives every full layer classes by query head: those of the set see everything, the others stream.
func maskAll(layers []gemma4.Layer, streaming attention.Streaming, full headSet) map[int]attention.Policy {
	all := map[int]attention.Policy{}
	for _, y := range layers {
		if y.Kind != gemma4.Full {
			continue
		}
		gates := bytes.Repeat([]byte("0"), y.Heads)
		for head := range gates {
			if full[[2]int{y.Index, head}] {
				gates[head] = '1'
			}
		}
		all[y.Index] = attention.Duo{Streaming: streaming, Gates: string(gates), Per: attention.PerQueryHead}
	}
	return all
}

// mass is the attention on planted values outside the recent positions, by the model as it is.
func (h *HeadSearch) mass(ctx context.Context, r *HeadReport) error {
	in := h.Runner.in
	a, err := arith.New(h.Base.Mode, in.Threads)
	if err != nil {
		return err
	}
	m, err := gemma4.Load(in.Config, in.Source, a, gemma4.Options{})
	if err != nil {
		return err
	}
	n := 0
	for i := h.Base.First; i < h.Base.First+h.Base.Count; i++ {
		q := &in.Set.Sequences[i]
		s, err := m.NewState(len(q.Tokens))
		if err != nil {
			return err
		}
		s.SetBatch(len(q.Tokens))
		s.Listen(func(t gemma4.Tap) { h.addMass(r, q, t) })
		if _, err := s.Prefill(ctx, q.Tokens); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
		n += len(h.far(q))
	}
	for i := range r.Heads {
		r.Heads[i].Mass /= float64(n)
	}
	return nil
}

// far are the questions outside the recent positions.
func (h *HeadSearch) far(q *Sequence) []Question {
	var all []Question
	for _, x := range q.Questions {
		if x.Distance >= h.Streaming.Recent {
			all = append(all, x)
		}
	}
	return all
}

// addMass takes from a tap of probabilities [H, T, T] what falls on the values.
func (h *HeadSearch) addMass(r *HeadReport, q *Sequence, t gemma4.Tap) {
	if t.Point != gemma4.PointProbs {
		return
	}
	width := t.Shape[2]
	for i := range r.Heads {
		x := &r.Heads[i]
		if x.Layer != t.Layer {
			continue
		}
		for _, k := range h.far(q) {
			x.Mass += float64(t.Data[(x.Head*t.Shape[1]+k.At)*width+k.Value])
		}
	}
}
