package interp

import (
	"context"

	"anelab/coreml/mil"
)

// Call is what a call has besides its inputs.
type Call struct {
	State State                          // of functions with states; a successful call leaves the new contents in it
	Tap   func(name string, t *Tensor)   // told of every result in program order; the tensor is borrowed
	Only  func(name string) (tap Wanted) // which results Tap is told of; nil for all
}

// Wanted says that a result is to be tapped.
type Wanted bool

// Run makes a program ready and runs one of its functions once, as o.Call says.
func Run(ctx context.Context, p *mil.Program, function string, inputs map[string]*Tensor, o Options) (map[string]*Tensor, error) {
	m, err := New(p, o)
	if err != nil {
		return nil, err
	}
	return m.Run(ctx, function, inputs, o.Call)
}

// Run runs a function. It never writes to the tensors it is given, and outputs share nothing with them. After an error the state
// is what it was before.
func (m *Model) Run(ctx context.Context, function string, inputs map[string]*Tensor, c Call) (map[string]*Tensor, error) {
	f, err := m.prepared(function)
	if err != nil {
		return nil, err
	}
	r := &running{Model: m, function: f, names: map[string]*value{}, states: map[string]*array{}, given: map[any]bool{}}
	if err := r.take(inputs); err != nil {
		return nil, err
	}
	if err := r.takeStates(c.State); err != nil {
		return nil, err
	}
	for _, s := range f.stepsFor(c) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.step(s); err != nil {
			return nil, err
		}
		r.tap(s.op, c)
		for _, name := range s.release {
			r.drop(name)
		}
	}
	for name, a := range r.states {
		c.State[name] = r.own(result(a))
	}
	outputs := map[string]*Tensor{}
	for _, name := range f.Body.Outputs {
		outputs[name] = r.own(r.find(name))
	}
	return outputs, nil
}

// stepsFor is every op by itself if results are tapped, otherwise fewer steps.
func (f *function) stepsFor(c Call) []step {
	if c.Tap != nil {
		return f.steps
	}
	return f.quick
}

// running is one call under way.
type running struct {
	*Model
	function *function
	names    map[string]*value
	states   map[string]*array
	given    map[any]bool // first elements of the tensors that the caller owns
}

// find is what a name stands for, nil if nothing has that name.
func (r *running) find(name string) *value {
	if v := r.names[name]; v != nil {
		return v
	}
	return r.function.constants[name]
}

// own is a result that the caller may keep: a copy if it is still the caller's input, or a constant.
func (r *running) own(v *value) *Tensor {
	a, err := v.dense()
	if err != nil {
		panic("interp: a result that cannot be read")
	}
	t := a.tensor()
	if v.weight != nil || v.literal != nil || r.given[a.base()] {
		return t.Clone()
	}
	return t
}

// base identifies the memory of an array.
func (a *array) base() any {
	switch {
	case len(a.floats) > 0:
		return &a.floats[0]
	case len(a.ints) > 0:
		return &a.ints[0]
	}
	return nil
}

// step runs one op and gives names to its results.
func (r *running) step(s step) error {
	c := &call{running: r, op: s.op}
	if s.open {
		if _, err := mil.Infer(s.op, r.function.Opset, r); err != nil {
			return c.located(err)
		}
	}
	s.impl(c)
	if c.err != nil {
		return c.located(c.err)
	}
	for i, out := range s.op.Outputs {
		if i >= len(c.results) {
			return c.located(&mil.Fault{Rule: mil.ErrStructure, Operand: out.Name, Got: "no such result"})
		}
		v := c.results[i]
		if !fits(s.op, out.Type, v) {
			return c.located(&mil.Fault{Rule: mil.ErrDeclared, Operand: out.Name, Got: v.typ().String(), Want: out.Type.String()})
		}
		v.hold()
		r.names[out.Name] = v
	}
	return nil
}

// fits holds a result against its declared type. coremltools 9 declares a scalar for select with two scalars, whatever cond is.
func fits(op *mil.Op, declared mil.Type, v *value) bool {
	if declared.DType != v.dtype {
		return false
	}
	return op.Type == "select" && len(declared.Shape) == 0 || mil.CompatibleShapes(declared.Shape, sizes(v.shape))
}

// tap tells the caller of the results of an op.
func (r *running) tap(op *mil.Op, c Call) {
	if c.Tap == nil {
		return
	}
	for _, out := range op.Outputs {
		if c.Only != nil && !c.Only(out.Name) {
			continue
		}
		if a, err := r.names[out.Name].dense(); err == nil {
			c.Tap(out.Name, a.tensor())
		}
	}
}

// TypeOf implements mil.Scope with the shapes of this call.
func (r *running) TypeOf(name string) (mil.Type, bool) {
	if v := r.find(name); v != nil {
		return v.typ(), true
	}
	if in := r.function.Input(name); in != nil {
		return in.Type, true
	}
	return mil.Type{}, false
}

// Constant implements mil.Scope: at run time every integer is known.
func (r *running) Constant(name string) *mil.Value {
	v := r.find(name)
	if v == nil || v.literal != nil {
		if v != nil {
			return v.literal
		}
		return nil
	}
	if v.array == nil || v.array.ints == nil || v.array.count() > mostShape {
		return nil
	}
	codes := make([]int64, 0, v.array.count())
	for _, x := range v.array.flatInts() {
		codes = append(codes, int64(x))
	}
	return &mil.Value{Type: v.typ(), Content: mil.Raw(mil.Pack(v.dtype, codes))}
}

// mostShape bounds the integer results that are looked at when shapes are inferred: begins, ends and shapes, not tokens.
const mostShape = 16

// Fixed implements mil.Scope.
func (r *running) Fixed(string) bool { return true }
