package run

import (
	"fmt"

	"anelab/attention"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/swa"
)

// Memory says who sees whom and how caches are kept, for every layer of a plan. Executor and emitter both ask it, so that a graph
// and its model mean the same rows.
type Memory struct {
	Policies []attention.Policy // by layer
	Windowed [2]bool            // by kind: caches hold a window, newest row last, instead of every position
}

// MemoryOf resolves the policies of a plan. A chunk declares one mask for all layers of a kind, so that all caches of a kind must
// be kept in the same way.
func MemoryOf(p *chunking.Plan) (*Memory, error) {
	asked, err := p.Layout.Policies(p.Model)
	if err != nil {
		return nil, err
	}
	m := &Memory{}
	for i, y := range p.Model.Layers {
		policy := y.Policy()
		if a, ok := asked[i]; ok {
			policy = a
		}
		if err := asRows(i, policy); err != nil {
			return nil, err
		}
		m.Policies = append(m.Policies, policy)
	}
	seen := [2]bool{}
	for _, y := range p.Model.Layers {
		if !y.OwnsKV() {
			continue
		}
		if err := m.keep(y, m.retention(p.Model.Layers, y.Index), &seen[y.Kind]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// asRows refuses policies that need more of a cache than its rows.
func asRows(l int, p attention.Policy) error {
	where, fix := fmt.Sprintf("attention of layer %d", l), "run the whole model with it"
	if f := attention.FormOf(p); f != (swa.Form{}) {
		return &format.Error{Field: where, Got: p.String(), Want: "rows as they are", Fix: "caches of a chunk hold fp16 rows; " + fix}
	}
	if _, selects := attention.As[attention.Selector](p); selects {
		return &format.Error{Field: where, Got: p.String(), Want: "a policy that a mask can say", Fix: "no port carries an index of keys; " + fix}
	}
	return nil
}

// retention is what owner l keeps for all layers that read it.
func (m *Memory) retention(layers []gemma4.Layer, l int) swa.Retention {
	r := m.Policies[l].Keep()
	for i, y := range layers {
		if y.KVSource == l {
			r = r.Union(m.Policies[i].Keep())
		}
	}
	return r
}

// keep notes how an owner's cache is kept; seen says that another of its kind came before.
func (m *Memory) keep(y gemma4.Layer, r swa.Retention, seen *bool) error {
	if r != swa.All && r != swa.Last(r.Last) {
		return &format.Error{Field: "attn", Got: fmt.Sprintf("layer %d keeps the %s rows (%s)", y.Index, r, m.Policies[y.Index]),
			Want: "caches that keep every position or the newest ones", Fix: "chunks have no cache of another form; choose full, sliding:<n> or wfa:<n>"}
	}
	windowed := r != swa.All
	if *seen && windowed != m.Windowed[y.Kind] {
		return &format.Error{Field: "attn", Got: fmt.Sprintf("%s layers with windows and without", y.Kind), Want: "one kind of cache per kind of layer",
			Fix: "a chunk declares one mask for all its " + y.Kind.String() + " layers"}
	}
	*seen, m.Windowed[y.Kind] = true, windowed
	return nil
}
