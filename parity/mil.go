package parity

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/quant"
)

// MIL is one function of a Core ML program, run by the interpreter.
type MIL struct {
	Label    string // name in reports: the package
	Model    *interp.Model
	Function string // "" for main
}

// ProgramCall is what two programs are called with.
type ProgramCall struct {
	Inputs map[string]*interp.Tensor
	State  interp.State // each side starts from a copy; nil for zeros
}

// ProgramSettings say how results are compared.
type ProgramSettings struct {
	Tolerance Tolerance
	Own       map[string]Tolerance // of outputs and states that are held to others
	Free      map[string]bool      // outputs that are not judged
	KeepGoing bool                 // compare everything instead of stopping at the first tensor that parts
}

func (s *ProgramSettings) tolerance(name string) Tolerance {
	if own, ok := s.Own[name]; ok {
		return own
	}
	return s.Tolerance
}

// judging is the tolerance for a tensor: integers are right or wrong.
func (s *ProgramSettings) judging(t *interp.Tensor, tolerance Tolerance) Tolerance {
	if t.Floats == nil {
		return Tolerance{}
	}
	return tolerance
}

// ProgramReport is what [ComparePrograms] or [CompareOutputs] found.
type ProgramReport struct {
	Got, Want string
	Compared  int // tensors
	Identical int // of them
	First     *ProgramParting
	Partings  int
	Worst     Difference // the tensor with the largest difference relative to its peak
	WorstName string
	OnlyGot   int // ops without a counterpart on the other side
	OnlyWant  int
	Outputs   []OutputReport // of CompareOutputs
}

// OutputReport is one output or state held against an expected one.
type OutputReport struct {
	Name       string
	Difference Difference
	Tolerance  Tolerance
	OK         bool
	Free       bool // looked at, not judged
}

// ProgramParting is the first tensor that two programs disagree on.
type ProgramParting struct {
	Name   string // as got calls it
	Other  string // as want calls it, where that is another name
	Op     string // type of the op that yields it; "output" or "state" where no op was looked at
	Layer  int    // counted within the program, −1 outside the layers
	Err    *Disagreement
	Detail string // values to look at
}

// String is the parting on one line.
func (p *ProgramParting) String() string {
	name := p.Name
	if p.Other != "" {
		name += " (" + p.Other + ")"
	}
	if p.Layer >= 0 {
		return fmt.Sprintf("%s of %s in layer %d: %v", name, p.Op, p.Layer, p.Err)
	}
	return fmt.Sprintf("%s of %s: %v", name, p.Op, p.Err)
}

// Err is nil when something was compared and nothing parted.
func (r *ProgramReport) Err() error {
	switch {
	case r.First != nil:
		return fmt.Errorf("%s parts from %s at %s", r.Got, r.Want, r.First)
	case r.Compared == 0:
		return fmt.Errorf("%s and %s have no tensor in common", r.Got, r.Want)
	}
	return nil
}

// String is the report on a few lines.
func (r *ProgramReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s: %d tensors compared, %d identical", r.Got, r.Want, r.Compared, r.Identical)
	if r.OnlyGot+r.OnlyWant > 0 {
		fmt.Fprintf(&b, ", %d and %d ops without a counterpart", r.OnlyGot, r.OnlyWant)
	}
	if r.WorstName != "" {
		fmt.Fprintf(&b, "\nworst %s: %s", r.WorstName, r.Worst)
	}
	if r.First != nil {
		fmt.Fprintf(&b, "\nfirst parts at %s\n%s", r.First, r.First.Detail)
	}
	return b.String()
}

// ComparePrograms runs two programs side by side on the same inputs and compares them op by op. Ops are matched by what they do
// and by their order, not by name: converters number their tensors anew with every change. It holds one tensor of each side at a
// time. The error is a program's own; disagreement is in the report.
func ComparePrograms(ctx context.Context, got, want MIL, c ProgramCall, s ProgramSettings) (ProgramReport, error) {
	r := ProgramReport{Got: got.Label, Want: want.Label}
	a, err := got.ops()
	if err != nil {
		return r, err
	}
	b, err := want.ops()
	if err != nil {
		return r, err
	}
	pairs := align(a, b)
	r.OnlyGot, r.OnlyWant = len(a)-len(pairs), len(b)-len(pairs)
	var ours, theirs []string
	for _, p := range pairs {
		for i := range a[p[0]].Outputs {
			ours, theirs = append(ours, a[p[0]].Outputs[i].Name), append(theirs, b[p[1]].Outputs[i].Name)
		}
	}
	nextGot, stopGot := iter.Pull2(got.taps(ctx, c, ours))
	defer stopGot()
	nextWant, stopWant := iter.Pull2(want.taps(ctx, c, theirs))
	defer stopWant()
	producers, layers := got.function().Body.Producers(), layersOf(got.function())
	for {
		x, errX, okX := nextGot()
		y, errY, okY := nextWant()
		if err := errors.Join(named(got, errX), named(want, errY)); err != nil || !okX || !okY {
			return r, err
		}
		at := ProgramParting{Name: x.name, Op: producers[x.name].Type, Layer: layers[producers[x.name]]}
		if y.name != x.name {
			at.Other = y.name
		}
		if r.add(at, compareTensors(x.tensor, y.tensor), s.judging(x.tensor, s.Tolerance)); r.First != nil && !s.KeepGoing {
			return r, nil
		}
	}
}

func named(m MIL, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", m.Label, err)
}

// CompareOutputs runs a program and holds its outputs, and those states that expected names, against expected ones. Where a tolerance
// is exact, expected numbers are rounded to the type of the result first. A state that is given is left as the call leaves it, when
// everything was compared.
func CompareOutputs(ctx context.Context, got MIL, c ProgramCall, expected map[string]*interp.Tensor, s ProgramSettings) (ProgramReport, error) {
	r := ProgramReport{Got: got.Label, Want: "expected"}
	state, err := got.start(c)
	if err != nil {
		return r, named(got, err)
	}
	outputs, err := got.Model.Run(ctx, got.name(), c.Inputs, interp.Call{State: state})
	if err != nil {
		return r, named(got, err)
	}
	results := maps.Clone(outputs)
	maps.Copy(results, state)
	where := places(got.function())
	r = Judge(got.Label, results, expected, s, where)
	if c.State != nil {
		maps.Copy(c.State, state)
	}
	return r, nil
}

// places names the outputs and states of a function.
func places(f *mil.Function) []ProgramParting {
	var all []ProgramParting
	producers, layers := f.Body.Producers(), layersOf(f)
	for _, name := range f.Body.Outputs {
		at := ProgramParting{Name: name, Op: "output", Layer: -1}
		if op := producers[name]; op != nil {
			at.Layer = layers[op]
		}
		all = append(all, at)
	}
	for _, v := range f.States() {
		all = append(all, ProgramParting{Name: v.Name, Op: "state", Layer: -1})
	}
	return all
}

// Judge holds results, outputs and states by name, against expected ones, in the order of where; that may be nil. An expected tensor
// that no result answers is counted as OnlyWant, and an unexpected result as OnlyGot.
func Judge(label string, results, expected map[string]*interp.Tensor, s ProgramSettings, where []ProgramParting) ProgramReport {
	r := ProgramReport{Got: label, Want: "expected"}
	if where == nil {
		for _, name := range slices.Sorted(maps.Keys(results)) {
			where = append(where, ProgramParting{Name: name, Op: "output", Layer: -1})
		}
	}
	for _, at := range where {
		got, want := results[at.Name], expected[at.Name]
		switch {
		case got == nil:
			continue
		case want == nil:
			r.OnlyGot++
			continue
		}
		if r.output(at, got, want, &s); r.First != nil && !s.KeepGoing {
			return r
		}
	}
	r.OnlyWant = len(expected) - r.Compared
	return r
}

// output holds one result against the expected one and notes it.
func (r *ProgramReport) output(at ProgramParting, got, want *interp.Tensor, s *ProgramSettings) {
	tolerance := s.judging(want, s.tolerance(at.Name))
	if tolerance.Exact() && want.Floats != nil && got.DType == mil.Float16 {
		want = interp.F16(want.Floats, want.Shape...)
	}
	d := compareTensors(got, want)
	o := OutputReport{Name: at.Name, Difference: d, Tolerance: tolerance, Free: s.Free[at.Name], OK: true}
	if !o.Free {
		o.OK = tolerance.Check(d) == nil
		r.add(at, d, tolerance)
	} else {
		r.Compared++
	}
	o.Difference.got, o.Difference.want = nil, nil
	r.Outputs = append(r.Outputs, o)
}

func (m MIL) name() string {
	if m.Function == "" {
		return mil.MainFunction
	}
	return m.Function
}

func (m MIL) function() *mil.Function { return m.Model.Program.Function(m.name()) }

// start is the state of a call.
func (m MIL) start(c ProgramCall) (interp.State, error) {
	if c.State == nil {
		return m.Model.NewState(m.name())
	}
	return c.State.Clone(), nil
}

// ops are the ops of the function that compute something.
func (m MIL) ops() ([]*mil.Op, error) {
	if err := m.Model.Prepare(m.name()); err != nil {
		return nil, err
	}
	var list []*mil.Op
	for _, op := range m.function().Body.Ops {
		if op.Type != "const" && !op.IsConstexpr() && len(op.Outputs) > 0 {
			list = append(list, op)
		}
	}
	return list, nil
}

// tapped is one result of a running program; the tensor is borrowed.
type tapped struct {
	name   string
	tensor *interp.Tensor
}

// taps runs the program and yields the results that are named, in the order in which they come about.
func (m MIL) taps(ctx context.Context, c ProgramCall, names []string) iter.Seq2[tapped, error] {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	return func(yield func(tapped, error) bool) {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		stopped := false
		state, err := m.start(c)
		if err != nil {
			yield(tapped{}, err)
			return
		}
		_, err = m.Model.Run(ctx, m.name(), c.Inputs, interp.Call{
			State: state,
			Only:  func(name string) interp.Wanted { return interp.Wanted(wanted[name] && !stopped) },
			Tap: func(name string, t *interp.Tensor) {
				if !yield(tapped{name, t}, nil) {
					stopped = true
					stop(errStopped)
				}
			},
		})
		if err != nil && !stopped {
			yield(tapped{}, err)
		}
	}
}

// compareTensors compares floats by their type's steps, integers exactly.
func compareTensors(got, want *interp.Tensor) Difference {
	if !slices.Equal(got.Shape, want.Shape) {
		return Difference{Mismatch: fmt.Sprintf("shape %v, want %v", got.Shape, want.Shape)}
	}
	if (got.Floats == nil) != (want.Floats == nil) {
		return Difference{Mismatch: fmt.Sprintf("%s, want %s", got.DType, want.DType)}
	}
	o := Options{Storage: quant.F32, RowLen: 1}
	if n := len(want.Shape); n > 0 {
		o.RowLen = max(want.Shape[n-1], 1)
	}
	if got.Floats == nil {
		return Compare(wideInts(got.Ints), wideInts(want.Ints), o)
	}
	if got.DType == mil.Float16 {
		o.Storage = quant.F16
	}
	return Compare(got.Floats, want.Floats, o)
}

// wideInts are integers as float32; token ids and positions are far below 2^24.
func wideInts(x []int32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// add files one comparison.
func (r *ProgramReport) add(at ProgramParting, d Difference, tolerance Tolerance) {
	r.Compared++
	if d.Identical() || d.Elements == 0 && d.Mismatch == "nothing to compare" {
		r.Identical++
		return
	}
	var disagreement *Disagreement
	if err := tolerance.Check(d); errors.As(err, &disagreement) {
		if r.Partings++; r.First == nil {
			at.Err, at.Detail = disagreement, disagreement.Detail()
			disagreement.Difference.got, disagreement.Difference.want = nil, nil // the values are the program's again
			r.First = &at
		}
	}
	if r.WorstName == "" || d.Mismatch != "" || d.PeakRel() > r.Worst.PeakRel() {
		d.got, d.want = nil, nil
		r.Worst, r.WorstName = d, at.Name
	}
}
