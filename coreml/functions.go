package coreml

import (
	"cmp"
	"slices"
	"strings"

	"anelab/coreml/mil"
)

// Decode is the function that takes one token, or else the fewest: the one that the model names as its default, if several do. nil if
// the model has no function.
func (m *Model) Decode() *mil.Function {
	list := slices.Clone(m.Functions)
	preferred := func(f *mil.Function) int {
		if m.Description != nil && f.Name == m.Description.DefaultFunction || f.Name == mil.MainFunction {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *mil.Function) int {
		return cmp.Or(cmp.Compare(Tokens(a), Tokens(b)), cmp.Compare(preferred(a), preferred(b)))
	})
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// FunctionNames are the names of all functions, in order.
func (m *Model) FunctionNames() []string {
	var names []string
	for _, f := range m.Functions {
		names = append(names, f.Name)
	}
	return names
}

// Tokens is the number of tokens that a function takes at once, 0 if it takes no hidden states.
func Tokens(f *mil.Function) int {
	in := f.Input("hidden_states")
	if in == nil || len(in.Type.Shape) != 3 {
		return 0
	}
	return int(in.Type.Shape[1])
}

// Writes reports whether calls of a function leave their rows behind for later calls: in states, or in caches that come out again.
func Writes(f *mil.Function) Kept {
	for _, op := range f.Body.Ops {
		if op.Type == "write_state" || op.Type == "coreml_update_state" {
			return InStates
		}
	}
	for _, name := range f.Body.Outputs {
		if cache, ok := strings.CutSuffix(name, "_out"); ok && f.Input(cache+"_in") != nil {
			return InPorts
		}
	}
	return Nowhere
}

// Kept says where the rows of a call remain.
type Kept uint8

// Where rows remain: nowhere, in states, in caches that go out through ports and in again.
const (
	Nowhere Kept = iota
	InStates
	InPorts
)
