package interp

import "anelab/coreml/mil"

// State is what lives between calls, by name. One State may serve several functions that declare the same states.
type State map[string]*Tensor

// NewState is the state of a function before its first call: zeros. It is empty for functions without states.
func (m *Model) NewState(function string) (State, error) {
	f, err := m.prepared(function)
	if err != nil {
		return nil, err
	}
	s := State{}
	for _, v := range f.States() {
		t, _ := v.Type.AsTensor()
		if !t.Static() {
			return nil, (&running{Model: m, function: f}).portFault(v.Name, ErrState, t.String(), "a state of fixed shape", "")
		}
		s[v.Name] = NewTensor(t.DType, shapeOf(t.Shape)...)
	}
	return s, nil
}

// Clone is a copy that goes its own way.
func (s State) Clone() State {
	c := State{}
	for name, t := range s {
		c[name] = t.Clone()
	}
	return c
}

// takeStates checks the states of a call.
func (r *running) takeStates(s State) error {
	for _, in := range r.function.Inputs {
		if in.Type.Kind != mil.State {
			continue
		}
		if s == nil {
			want, _ := in.Type.AsTensor()
			return r.portFault(in.Name, ErrState, "no state", want.String(), "make one with NewState and give it to every call")
		}
		if err := r.checkPort(in, s[in.Name], ErrState); err != nil {
			return err
		}
		a := ofTensor(s[in.Name])
		r.given[a.base()] = true
		r.states[in.Name] = a
	}
	return nil
}

// stateful holds the ops on states. States change in program order.
var stateful = family{
	"read_state":          readState,
	"write_state":         writeState,
	"coreml_update_state": updateState,
}

// stateName is the name of the state that an operand refers to.
func (c *call) stateName(param string) string {
	for _, b := range c.op.Input(param) {
		return b.Name
	}
	return ""
}

func readState(c *call) {
	a := c.states[c.stateName("input")]
	if a == nil {
		c.failValue("input", c.stateName("input"), "a state of the function")
		return
	}
	c.yield(a)
}

func writeState(c *call) { c.write(c.stateName("input"), c.array("data")) }

// write replaces the contents of a state.
func (c *call) write(name string, a *array) {
	result(a).hold()
	c.unhold(c.states[name])
	c.states[name] = a
}

// updateState is write_state and read_state in one, as programs have it in memory.
func updateState(c *call) {
	a := c.array("value")
	c.write(c.stateName("state"), a)
	c.yield(a)
}
