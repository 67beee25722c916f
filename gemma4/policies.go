package gemma4

import (
	"fmt"
	"math"

	"anelab/attention"
	"anelab/internal/format"
	"anelab/swa"
)

// resolvePolicies gives every layer its policy and refuses what the model cannot do.
func (m *Model) resolvePolicies(override map[int]attention.Policy) error {
	for i := range override {
		if i < 0 || i >= len(m.Layers) {
			return &format.Error{Field: "attn", Got: fmt.Sprintf("a policy for layer %d", i), Want: fmt.Sprintf("0 to %d", len(m.Layers)-1)}
		}
	}
	for i, y := range m.Layers {
		p := y.Policy()
		if o, ok := override[i]; ok {
			p = o
		}
		if err := attention.Fit(p, y.Heads, y.KVHeads); err != nil {
			return atLayer(i, err)
		}
		m.policies = append(m.policies, p)
		m.runs = append(m.runs, attention.Runs(p, y.Heads, y.KVHeads))
		if y.OwnsKV() {
			m.owner = i
		}
	}
	if err := CheckPolicies(m.Layers, m.policies); err != nil {
		return err
	}
	for _, y := range m.Layers {
		_, selects := attention.As[attention.Selector](m.policies[y.Index])
		_, blockwise := attention.As[attention.Blockwise](m.policies[y.Index])
		m.simple = append(m.simple, !selects && !blockwise && m.form(y.KVSource) == swa.Form{})
	}
	return nil
}

// atLayer names the layer in an error about its policy.
func atLayer(layer int, err error) error {
	return fmt.Errorf("layer %d: %w", layer, err)
}

// CheckPolicies refuses combinations of layers: a form that the owner of the rows does not have, directions of rows that are not
// there or not comparable, and indices of different blocks over the same rows.
func CheckPolicies(layers []Layer, policies []attention.Policy) error {
	blocks := map[int]int{} // by owner
	for i, y := range layers {
		form, owner := attention.FormOf(policies[i]), attention.FormOf(policies[y.KVSource])
		if form != (swa.Form{}) && form != owner {
			return &format.Error{Field: "attn", Got: fmt.Sprintf("%s for layer %d, which reads the rows of layer %d", policies[i], i, y.KVSource),
				Want: "the form where the rows are stored", Fix: fmt.Sprintf("give the form to layer %d; whoever reads it reads what the form left", y.KVSource)}
		}
		if err := checkLike(layers, y, form.Like-1); err != nil {
			return err
		}
		if form.Rank > y.HeadDim {
			return &format.Error{Field: "attn", Got: fmt.Sprintf("palu:%d for layer %d", form.Rank, i), Want: fmt.Sprintf("at most the head's %d numbers", y.HeadDim)}
		}
		s, selects := attention.As[attention.Selector](policies[i])
		if !selects {
			continue
		}
		if b, ok := blocks[y.KVSource]; ok && b != s.IndexRows() || owner != (swa.Form{}) {
			return &format.Error{Field: "attn", Got: fmt.Sprintf("%s for layer %d beside another form or index of the rows of layer %d", s, i, y.KVSource),
				Want: "one size of blocks over exact rows"}
		}
		blocks[y.KVSource] = s.IndexRows()
	}
	return nil
}

// checkLike refuses directions of a layer that is later, of another shape, or without rows of its own; −1 is none.
func checkLike(layers []Layer, y Layer, like int) error {
	if like < 0 || !y.OwnsKV() {
		return nil
	}
	if like < y.Index && layers[like].OwnsKV() && layers[like].Kind == y.Kind {
		return nil
	}
	fix := "no layer before it can serve"
	for _, o := range layers[:y.Index] {
		if o.OwnsKV() && o.Kind == y.Kind {
			fix = fmt.Sprintf("like:%d would do", o.Index)
		}
	}
	return &format.Error{Field: "attn", Got: fmt.Sprintf("like:%d for layer %d", like, y.Index),
		Want: fmt.Sprintf("an earlier %s layer that stores its own rows", y.Kind), Fix: fix}
}

// form is how the owner of layer l's rows stores them.
func (m *Model) form(l int) swa.Form { return attention.FormOf(m.policies[l]) }

// Retention is what owner l must keep: the union of what all layers that read it need.
func (m *Model) Retention(l int) swa.Retention {
	r := m.policies[l].Keep()
	for i, y := range m.Layers {
		if y.KVSource == l {
			r = r.Union(m.policies[i].Keep())
		}
	}
	return r
}

// newStores gives every owner its store, with an index where a reader chooses blocks.
func (m *Model) newStores(context int) []swa.Store {
	stores := make([]swa.Store, len(m.Layers))
	for i, y := range m.Layers {
		if y.OwnsKV() {
			stores[i] = swa.New(m.Retention(i), m.shape(y), context)
		}
	}
	for i, y := range m.Layers {
		s, selects := attention.As[attention.Selector](m.policies[i])
		if _, already := stores[y.KVSource].(*swa.Indexed); selects && !already {
			stores[y.KVSource] = swa.NewIndexed(stores[y.KVSource], m.shape(y), s.IndexRows(), context)
		}
	}
	return stores
}

func (m *Model) shape(y Layer) swa.Shape {
	return swa.Shape{KVHeads: y.KVHeads, HeadDim: y.HeadDim, Elem: m.kv, Form: m.form(y.KVSource)}
}

// KVBytes are the bytes that a state of that context keeps. Exact rows beside groups and indices of blocks are not counted.
func (m *Model) KVBytes(context int) int64 {
	var n float64
	for i, y := range m.Layers {
		if y.OwnsKV() {
			n += float64(m.Retention(i).Rows(context)*y.KVHeads) * m.form(i).HeadBytes(y.HeadDim, m.kv.Bytes())
		}
	}
	return int64(n)
}

// borrowDirections replaces the call's key and value rows by rows of their own length in the direction of another layer's rows:
// what remains where two layers share one direction and store a length each (after MiniCache).
func (m *Model) borrowDirections(p *Pass, y Layer, other swa.Store) {
	for _, x := range []struct {
		rows []float32 // [T, K, d]
		view swa.View
	}{{p.ws.k, other.Keys()}, {p.ws.v, other.Values()}} {
		direction := make([]float32, y.HeadDim)
		for i := range p.T * y.KVHeads {
			row := x.rows[i*y.HeadDim : (i+1)*y.HeadDim]
			pos := p.First + i/y.KVHeads
			x.view.Head(i%y.KVHeads).At(pos).Load(direction, pos, 1)
			rescale(row, direction)
			m.a.Store(row)
		}
	}
}

// rescale gives row the direction of another, at its own length.
func rescale(row, direction []float32) {
	own, other := squares(row), squares(direction)
	if other == 0 {
		return
	}
	f := math.Sqrt(own / other)
	for c, v := range direction {
		row[c] = float32(float64(v) * f)
	}
}

func squares(x []float32) float64 {
	var s float64
	for _, v := range x {
		s += float64(float64(v) * float64(v)) // the same bits where products fuse into sums
	}
	return s
}
