package device

import (
	"slices"
	"sync"

	"anelab/internal/format"
)

// State is what lives between the calls of a function, held by Core ML. It serves every function that declares the same states. One
// prediction, Read or Write uses it at a time; others wait.
type State struct {
	faces
	machine machine
	mu      sync.Mutex
	handle  id // an MLState; 0 after Close
}

// NewState makes a state of zeros for a function. It needs macOS 15.
func (m *Model) NewState(name string) (*State, error) {
	f, err := m.function(name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &State{faces: f.faces, machine: m.machine}
	return s, m.machine.scope(func() error {
		switch {
		case f.model == 0:
			return &format.Error{Path: m.Path, Field: name, Err: ErrClosed}
		case !m.machine.responds(f.model, "newState"):
			return &format.Error{Path: m.Path, Field: name, Want: "macOS 15 for models with states", Err: ErrSystem}
		}
		s.handle = m.machine.send(f.model, "newState") // ours: its name begins with new
		if s.handle == 0 {
			return &format.Error{Path: m.Path, Field: name, Got: "no state", Err: ErrState}
		}
		return nil
	})
}

// checkState holds a state against the states of the function; the state is locked.
func (f *function) checkState(s *State) error {
	switch {
	case s == nil && len(f.states) == 0:
		return nil
	case s == nil:
		return f.fault(f.states[0].Name, ErrState, "no state", f.states[0].String(), "make one with NewState and give it to every call")
	case s.handle == 0:
		return f.fault("state", ErrClosed, "", "", "")
	case !slices.EqualFunc(s.states, f.states, func(a, b Port) bool { return a.Name == b.Name && b.takes(a.DType, a.Shape) == nil }):
		return f.fault("state", ErrState, "the state of "+s.function+": "+names(s.states), names(f.states), "make one with NewState of this function")
	}
	return nil
}

// States lists what the state holds.
func (s *State) States() []Port { return slices.Clone(s.states) }

// Read copies one state.
func (s *State) Read(name string) (t *Tensor, err error) {
	err = s.with(name, func(array id) (err error) {
		t, err = s.machine.read(array)
		return err
	})
	return t, err
}

// Write replaces one state.
func (s *State) Write(name string, t *Tensor) error {
	if err := s.check(s.states, map[string]typed{name: {t.DType, t.Shape}}); err != nil {
		return err
	}
	if !t.sound() {
		return s.fault(name, ErrData, "", "as many elements as the shape has", "")
	}
	return s.with(name, func(array id) error { return s.machine.write(array, t) })
}

// with lends f the array of a state, which is valid inside the block only. The name is checked first, because Core ML throws at
// names that it does not know.
func (s *State) with(name string, f func(array id) error) error {
	if !slices.Contains(nameList(s.states), name) {
		return s.fault(name, ErrUnknownPort, "", names(s.states), format.DidYouMean(name, nameList(s.states)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == 0 {
		return s.fault(name, ErrClosed, "", "", "")
	}
	err := s.machine.scope(func() (err error) {
		block := s.machine.block(1, func(args []uintptr) { err = f(id(args[0])) })
		defer s.machine.release(block)
		s.machine.send(s.handle, "getMultiArrayForStateNamed:handler:", s.machine.text(name), block)
		return err
	})
	if err != nil {
		return s.fault(name, ErrState, err.Error(), "", "")
	}
	return nil
}

// Close gives the state back once no prediction uses it.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.release(s.handle)
	s.handle = 0
	return nil
}
