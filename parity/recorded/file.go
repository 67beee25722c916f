package recorded

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anelab/coreml/interp"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/format"
	"anelab/parity"
)

// File is the recorded calls of one program.
type File struct {
	Cases []Case

	path  string
	set   *safetensors.Set
	about *entry // nil without an index
}

// Open opens a file of tensors and the index beside it, if there is one with an entry of the file's name.
func Open(path string) (*File, error) {
	set, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, set: set}
	base := filepath.Base(path)
	if f.about, err = readIndex(filepath.Dir(path), strings.TrimSuffix(base, filepath.Ext(base))); err == nil {
		err = f.listCases()
	}
	if err != nil {
		set.Close()
		return nil, err
	}
	return f, nil
}

// Path names the file.
func (f *File) Path() string { return f.path }

// Close releases the file.
func (f *File) Close() error { return f.set.Close() }

// kinds are the parts of a tensor's name between case and port.
const (
	inPart       = "in"
	outPart      = "out"
	stateInPart  = "state_in"
	stateOutPart = "state_out"
)

// listCases takes the cases of the index that the file holds, else those that the names of tensors show.
func (f *File) listCases() error {
	found := f.namedCases()
	if f.about == nil || len(f.about.Cases) == 0 {
		f.Cases = found
		return nil
	}
	for _, c := range f.about.Cases {
		if slices.ContainsFunc(found, func(x Case) bool { return x.Name == c.Name }) {
			f.Cases = append(f.Cases, c)
		}
	}
	if len(f.Cases) == 0 {
		return &format.Error{Path: f.path, Got: "no tensor of a case in the index", Want: f.about.Cases[0].Name + "/in/NAME"}
	}
	return nil
}

func (f *File) namedCases() []Case {
	byName := map[string]*Case{}
	var names []string
	for _, tensor := range f.set.Names() {
		name, kind, ok := caseOf(tensor)
		if !ok {
			continue
		}
		c := byName[name]
		if c == nil {
			c = &Case{Name: name, State: CarryState}
			byName[name] = c
			names = append(names, name)
		}
		if kind == stateInPart {
			c.State = GivenState
		}
	}
	if len(names) == 0 {
		return []Case{{State: ZeroState}}
	}
	slices.SortFunc(names, byNumber)
	var all []Case
	for i, name := range names {
		if c := *byName[name]; i == 0 && c.State == CarryState {
			all = append(all, Case{Name: name, State: ZeroState})
		} else {
			all = append(all, c)
		}
	}
	return all
}

// caseOf takes "s3/in/hidden_states" apart; ok is false for a flat name.
func caseOf(tensor string) (name, kind string, ok bool) {
	parts := strings.Split(tensor, "/")
	for i := 1; i+1 < len(parts); i++ {
		if slices.Contains([]string{inPart, outPart, stateInPart, stateOutPart}, parts[i]) {
			return strings.Join(parts[:i], "/"), parts[i], true
		}
	}
	return "", "", false
}

// byNumber compares names, numbers at their ends by value: s9 before s10.
func byNumber(a, b string) int {
	stem := func(s string) string { return strings.TrimRight(s, "0123456789") }
	if x, y := stem(a), stem(b); x != y || len(a) == len(b) {
		return strings.Compare(a, b)
	}
	return len(a) - len(b)
}

// tensors are those of one kind of a case, by port.
func (f *File) tensors(c Case, kind string) (map[string]*interp.Tensor, error) {
	found := map[string]*interp.Tensor{}
	for _, name := range f.set.Names() {
		port := name
		if c.Name != "" {
			var ok bool
			if port, ok = strings.CutPrefix(name, c.Name+"/"+kind+"/"); !ok {
				continue
			}
		} else if rest, ok := strings.CutPrefix(name, kind+"/"); ok {
			port = rest
		} else if kind == stateInPart || kind == stateOutPart || strings.Contains(name, "/") {
			continue
		}
		q, err := f.set.Tensor(name)
		if err != nil {
			return nil, err
		}
		if found[port], err = interp.FromStored(q); err != nil {
			return nil, &format.Error{Path: f.path, Field: name, Err: err}
		}
	}
	return found, nil
}

// Call is what a case goes in with. State is nil unless the file gives one.
func (f *File) Call(c Case) (parity.ProgramCall, error) {
	call := parity.ProgramCall{}
	var err error
	if call.Inputs, err = f.tensors(c, inPart); err != nil {
		return call, err
	}
	if c.State != GivenState {
		return call, nil
	}
	states, err := f.tensors(c, stateInPart)
	call.State = states
	if err == nil && len(states) == 0 {
		err = &format.Error{Path: f.path, Field: c.Name, Got: "no state", Want: c.Name + "/state_in/NAME, as the index says"}
	}
	return call, err
}

// Expected is what a case must yield.
type Expected struct {
	Tensors    map[string]*interp.Tensor   // outputs and states
	Tolerances map[string]parity.Tolerance // of each
	Free       map[string]bool             // integers that may be others: near ties
}

// Expected reads the outputs and states of a case. fallback holds where no index states a tolerance; a zero fallback asks for the
// recorded numbers rounded to the type of the output. Integers must be met exactly.
func (f *File) Expected(c Case, fallback parity.Tolerance) (Expected, error) {
	e := Expected{Tensors: map[string]*interp.Tensor{}, Tolerances: map[string]parity.Tolerance{}, Free: map[string]bool{}}
	for _, kind := range []string{outPart, stateOutPart} {
		tensors, err := f.tensors(c, kind)
		if err != nil {
			return e, err
		}
		for name, t := range tensors {
			e.Tensors[name] = t
			e.Tolerances[name], e.Free[name] = f.limit(c, kind, name, t, fallback)
		}
	}
	if len(e.Tensors) == 0 {
		return e, &format.Error{Path: f.path, Field: c.Name, Got: "no expected output", Want: fmt.Sprintf("%s/out/NAME", c.Name)}
	}
	return e, nil
}

// limit is the tolerance of one tensor. States of an entry without a tolerance for them are exact: such programs only move data.
func (f *File) limit(c Case, kind, name string, t *interp.Tensor, fallback parity.Tolerance) (parity.Tolerance, bool) {
	isFree := f.about != nil && slices.Contains(f.about.FreeTokens, c.Name) && strings.HasPrefix(name, "token")
	switch {
	case t.Ints != nil:
		return parity.Tolerance{}, isFree
	case f.about == nil:
		return fallback, false
	}
	key := name
	if kind == stateOutPart {
		key = allStates
	}
	tolerance, stated := f.about.tolerance(key)
	if !stated && kind == outPart {
		tolerance = fallback
	}
	if isFree {
		tolerance.MaxRelRMS = 0 // the logit of another token, of nearly the same value
	}
	return tolerance, false
}
