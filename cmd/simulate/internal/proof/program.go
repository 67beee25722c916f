package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/internal/format"
	"anelab/parity"
	"anelab/parity/recorded"
)

// ProgramSubject is recorded calls of one program, held against another program or against what is expected.
type ProgramSubject struct {
	Got       parity.MIL
	Want      *parity.MIL // another program; nil for expected results
	Inputs    *recorded.File
	Expect    *recorded.File // nil without; may be Inputs
	Device    *device.ReportModel
	Cases     []string // only these; nil for all
	Function  string   // of cases that name none of the program's; "" = the default
	Tolerance *parity.Tolerance
	KeepGoing bool
}

// ProgramResult is what [RunProgram] found.
type ProgramResult struct {
	Got, Want string
	Cases     []ProgramCase
	Outputs   []ProgramOutput // over all cases, in the order of the program
}

// ProgramCase is one call.
type ProgramCase struct {
	Name     string
	Function string
	Report   parity.ProgramReport
}

// ProgramOutput sums up one output or state over all cases.
type ProgramOutput struct {
	Name      string
	Cases     int
	Free      int               // of them, not judged
	Worst     parity.Difference // relative to its peak
	WorstIn   string
	Tolerance parity.Tolerance // in that case
	OK        bool
}

// OK reports whether something was compared and nothing parted.
func (r *ProgramResult) OK() bool { return r.First() == nil && r.Compared() > 0 }

// First is the first case that parts, nil without one.
func (r *ProgramResult) First() *ProgramCase {
	for i := range r.Cases {
		if r.Cases[i].Report.First != nil {
			return &r.Cases[i]
		}
	}
	return nil
}

// Compared counts tensors.
func (r *ProgramResult) Compared() int {
	n := 0
	for i := range r.Cases {
		n += r.Cases[i].Report.Compared
	}
	return n
}

// expectedRMS and the others are what two sound computations of a chunk in fp16 may differ by (spec coreml.md §4, fp16 semantics), for
// recordings without an index that states more.
const (
	expectedRMS  = 0.01
	expectedPeak = 0.03
	exactPeak    = 1e-5
)

// fallback is the tolerance where neither a flag nor an index states one.
func (s *ProgramSubject) fallback() parity.Tolerance {
	switch {
	case s.Want != nil:
		return parity.Tolerance{}
	case s.Got.Model.Precision == interp.Exact:
		return parity.Tolerance{PeakRel: exactPeak}
	}
	return parity.Tolerance{PeakRel: expectedPeak, MaxRelRMS: expectedRMS}
}

// RunProgram runs the cases in order. It stops behind the first one that parts, unless it is to keep going.
func RunProgram(ctx context.Context, s *ProgramSubject, progress func(step string)) (*ProgramResult, error) {
	r := &ProgramResult{Got: s.Got.Label, Want: "expected"}
	if s.Want != nil {
		r.Want = s.Want.Label
	}
	if s.Device != nil {
		r.Got = "Core ML as reported"
		if s.Expect == nil {
			r.Want = s.Got.Label
		}
	}
	p := &programProver{ProgramSubject: s, ctx: ctx, result: r}
	for _, c := range s.Inputs.Cases {
		if s.Cases != nil && !slices.Contains(s.Cases, c.Name) {
			continue
		}
		if progress != nil {
			progress("case " + c.Name)
		}
		if err := p.run(c); err != nil {
			return nil, err
		}
		if r.First() != nil && !s.KeepGoing {
			break
		}
	}
	if len(r.Cases) == 0 {
		return nil, p.noCases()
	}
	return r, nil
}

func (s *ProgramSubject) noCases() error {
	var names []string
	for _, c := range s.Inputs.Cases {
		names = append(names, c.Name)
	}
	return &format.Error{Path: s.Inputs.Path(), Field: "case", Got: fmt.Sprint(s.Cases), Want: "one that was recorded", Fix: format.DidYouMean(s.Cases[0], names)}
}

// programProver is one run under way.
type programProver struct {
	*ProgramSubject
	ctx    context.Context
	result *ProgramResult
	state  interp.State // left by the case before
}

func (p *programProver) run(c recorded.Case) error {
	function := p.functionOf(c)
	got := p.Got
	got.Function = function
	call, err := p.Inputs.Call(c)
	if err != nil {
		return err
	}
	if err := p.begin(c, got, &call); err != nil {
		return err
	}
	report, err := p.compare(c, got, call)
	if err != nil {
		return err
	}
	p.result.Cases = append(p.result.Cases, ProgramCase{Name: c.Name, Function: function, Report: report})
	for _, o := range report.Outputs {
		p.result.add(c.Name, o)
	}
	return nil
}

// functionOf is the case's own function if the program has it.
func (p *programProver) functionOf(c recorded.Case) string {
	if p.Got.Model.Program.Function(c.Function) != nil {
		return c.Function
	}
	return p.Function
}

// begin gives the call the state that it starts from.
func (p *programProver) begin(c recorded.Case, m parity.MIL, call *parity.ProgramCall) error {
	if call.State == nil && c.State == recorded.CarryState {
		call.State = p.state
	}
	if call.State == nil {
		var err error
		if call.State, err = m.Model.NewState(m.Function); err != nil {
			return err
		}
	}
	p.state = call.State
	return nil
}

// compare makes the comparison that was asked for. The state of the call is left as the reference leaves it.
func (p *programProver) compare(c recorded.Case, got parity.MIL, call parity.ProgramCall) (parity.ProgramReport, error) {
	settings := parity.ProgramSettings{Tolerance: p.fallback(), KeepGoing: p.KeepGoing}
	if p.Tolerance != nil {
		settings.Tolerance = *p.Tolerance
	}
	if p.Want != nil {
		want := *p.Want
		want.Function = got.Function
		report, err := parity.ComparePrograms(p.ctx, got, want, call, settings)
		if err != nil || len(call.State) == 0 {
			return report, err
		}
		_, err = want.Model.Run(p.ctx, want.Function, call.Inputs, interp.Call{State: call.State})
		return report, err
	}
	settings.KeepGoing = true // outputs are few, and all of them are shown
	expected, err := p.expected(c, got, call, &settings)
	if err != nil {
		return parity.ProgramReport{}, err
	}
	if p.Device != nil {
		results, err := p.reported(c)
		return parity.Judge(p.result.Got, results, expected, settings, nil), err
	}
	return parity.CompareOutputs(p.ctx, got, call, expected, settings)
}

// expected is what was recorded, or for a device's report without a recording what the interpreter computes.
func (p *programProver) expected(c recorded.Case, got parity.MIL, call parity.ProgramCall, settings *parity.ProgramSettings) (map[string]*interp.Tensor, error) {
	if p.Expect == nil {
		return got.Model.Run(p.ctx, got.Function, call.Inputs, interp.Call{State: call.State.Clone()})
	}
	e, err := p.Expect.Expected(c, settings.Tolerance)
	if err != nil {
		return nil, err
	}
	settings.Free = e.Free
	if p.Tolerance == nil {
		settings.Own = e.Tolerances
	}
	return e.Tensors, nil
}

// reported are the outputs that a device has reported for a case.
func (p *programProver) reported(c recorded.Case) (map[string]*interp.Tensor, error) {
	i := slices.IndexFunc(p.Device.Cases, func(r device.ReportCase) bool { return r.Name == c.Name })
	if i < 0 {
		return nil, &format.Error{Path: p.Device.Path, Field: "cases", Got: "no case " + c.Name + " in the device's report", Want: "the cases of " + p.Inputs.Path()}
	}
	r := &p.Device.Cases[i]
	if r.Error != "" {
		return nil, &format.Error{Path: p.Device.Path, Field: "case " + c.Name, Err: errors.New(r.Error)}
	}
	results := map[string]*interp.Tensor{}
	for k := range r.Outputs {
		t, err := r.Outputs[k].Tensor()
		if err != nil {
			return nil, err
		}
		if t != nil {
			results[r.Outputs[k].Name] = (*interp.Tensor)(t)
		}
	}
	return results, nil
}

// add takes one output of one case.
func (r *ProgramResult) add(name string, o parity.OutputReport) {
	i := slices.IndexFunc(r.Outputs, func(x ProgramOutput) bool { return x.Name == o.Name })
	if i < 0 {
		i = len(r.Outputs)
		r.Outputs = append(r.Outputs, ProgramOutput{Name: o.Name, OK: true})
	}
	x := &r.Outputs[i]
	x.Cases++
	x.OK = x.OK && o.OK
	if o.Free {
		x.Free++
	}
	worse := o.Difference.PeakRel() > x.Worst.PeakRel() || o.Difference.Mismatch != ""
	if x.WorstIn == "" || worse && (!o.Free || x.Free == x.Cases) {
		x.Worst, x.WorstIn, x.Tolerance = o.Difference, name, o.Tolerance
	}
}
