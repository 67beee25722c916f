package mil

import (
	"fmt"
	"iter"
)

// Uses yields the names that an op refers to, with the parameter, including those that its blocks take from outside.
func Uses(op *Op) iter.Seq2[string, string] {
	return func(yield func(name, param string) bool) {
		for _, arg := range op.Inputs {
			for _, b := range arg.Bindings {
				if b.Value == nil && !yield(b.Name, arg.Name) {
					return
				}
			}
		}
		for _, inner := range op.Blocks {
			for _, name := range inner.free() {
				if !yield(name, "") {
					return
				}
			}
		}
	}
}

// free are the names that a block uses and does not define.
func (b *Block) free() []string {
	defined := map[string]bool{}
	for _, in := range b.Inputs {
		defined[in.Name] = true
	}
	var names []string
	note := func(name string) {
		if !defined[name] {
			names = append(names, name)
		}
	}
	for _, op := range b.Ops {
		for name := range Uses(op) {
			note(name)
		}
		for _, out := range op.Outputs {
			defined[out.Name] = true
		}
	}
	for _, name := range b.Outputs {
		note(name)
	}
	return names
}

// All yields every op of a block in execution order, a block's ops after the op that holds it.
func (b *Block) All() iter.Seq[*Op] {
	return func(yield func(*Op) bool) { b.visit(yield) }
}

func (b *Block) visit(yield func(*Op) bool) bool {
	for _, op := range b.Ops {
		if !yield(op) {
			return false
		}
		for _, inner := range op.Blocks {
			if !inner.visit(yield) {
				return false
			}
		}
	}
	return true
}

// Values yields every constant of an op with the parameter or attribute that it is for, not those of nested blocks.
func (o *Op) Values() iter.Seq2[string, *Value] {
	return func(yield func(string, *Value) bool) {
		for _, arg := range o.Inputs {
			for _, b := range arg.Bindings {
				if b.Value != nil && !yield(arg.Name, b.Value) {
					return
				}
			}
		}
		for _, a := range o.Attributes {
			if !yield(a.Name, a.Value) {
				return
			}
		}
	}
}

// Producers maps the names that a block defines to the ops that define them.
func (b *Block) Producers() map[string]*Op {
	m := map[string]*Op{}
	for _, op := range b.Ops {
		for _, out := range op.Outputs {
			m[out.Name] = op
		}
	}
	return m
}

// Consumers maps names to the ops that use them, in execution order.
func (b *Block) Consumers() map[string][]*Op {
	m := map[string][]*Op{}
	for _, op := range b.Ops {
		for name := range Uses(op) {
			if list := m[name]; len(list) == 0 || list[len(list)-1] != op {
				m[name] = append(list, op)
			}
		}
	}
	return m
}

// Results are the outputs of a function with their types. The error is a *[Fault].
func (f *Function) Results() ([]Variable, error) {
	types := map[string]Type{}
	for _, in := range f.Inputs {
		types[in.Name] = in.Type
	}
	for _, op := range f.Body.Ops {
		for _, out := range op.Outputs {
			types[out.Name] = out.Type
		}
	}
	var results []Variable
	for _, name := range f.Body.Outputs {
		t, ok := types[name]
		if !ok {
			return nil, &Fault{Rule: ErrOutput, Function: f.Name, Operand: name, Got: quoted(name)}
		}
		results = append(results, Variable{name, t})
	}
	return results, nil
}

// Order puts the ops of a block in topological order, keeping the given order where it is free to. Ops on one state keep theirs.
// The error is a *[Fault].
func (b *Block) Order() error {
	definedBy, state := map[string]int{}, map[string]int{}
	for i, op := range b.Ops {
		for _, out := range op.Outputs {
			definedBy[out.Name] = i
		}
	}
	after := make([][]int, len(b.Ops)) // ops that must come first
	for i, op := range b.Ops {
		for name, param := range Uses(op) {
			if j, ok := definedBy[name]; ok {
				after[i] = append(after[i], j)
			}
			if param == "input" && (op.Type == "read_state" || op.Type == "write_state") {
				if j, ok := state[name]; ok {
					after[i] = append(after[i], j)
				}
				state[name] = i
			}
		}
	}
	return b.place(after)
}

// place moves each op behind those it must follow.
func (b *Block) place(after [][]int) error {
	const (
		pending = iota
		open
		done
	)
	mark, ordered := make([]int, len(b.Ops)), []*Op{}
	for root := range b.Ops {
		stack := []int{root}
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			if mark[i] == pending {
				mark[i] = open
				for _, j := range after[i] {
					if mark[j] == open {
						return &Fault{Rule: ErrCycle, Op: b.Ops[i].Type, Name: b.Ops[i].Name(), Got: fmt.Sprintf("through %q", b.Ops[j].Name())}
					}
					if mark[j] == pending {
						stack = append(stack, j)
					}
				}
				continue
			}
			if mark[i] == open {
				mark[i] = done
				ordered = append(ordered, b.Ops[i])
			}
			stack = stack[:len(stack)-1]
		}
	}
	b.Ops = ordered
	return nil
}
