package run

import (
	"fmt"

	"anelab/attention"
	"anelab/chunking"
	"anelab/internal/format"
	"anelab/swa"
)

// Memory says who sees whom and how caches are kept, for every layer of a plan. Executor and emitter both ask it, so that a graph
// and its model mean the same rows.
type Memory struct {
	Policies []attention.Policy // by layer
	Banks    []chunking.Bank    // by layer
	Windowed [2]bool            // by kind: the ports without further names hold a window, newest row last, instead of every position
}

// MemoryOf resolves the policies of a plan.
func MemoryOf(p *chunking.Plan) (*Memory, error) {
	asked, err := p.Layout.Policies(p.Model)
	if err != nil {
		return nil, err
	}
	m := &Memory{Banks: p.Banks}
	for i, y := range p.Model.Layers {
		policy := y.Policy()
		if a, ok := asked[i]; ok {
			policy = a
		}
		if err := asRows(i, policy); err != nil {
			return nil, err
		}
		m.Policies = append(m.Policies, policy)
		if b := p.Banks[i]; b.Name == "" {
			m.Windowed[b.Kind] = b.Windowed()
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
