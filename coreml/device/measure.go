package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Session says what to measure.
type Session struct {
	Experiment string
	Device     string // name in device files; "" = the chip
	Model      string // name in device files
	Layout     string // "" if the packages are no chunks of a model; otherwise one part for each package
	Function   string // timed where a package has it; otherwise the default function is
	Units      Units
	Backing    Backing // of fp16 inputs and outputs
	Calls      int     // timed predictions of each package
	Subjects   []Subject
	Progress   func(what string) // may be nil
}

// Subject is one package, with cases whose outputs go into the report.
type Subject struct {
	Path  string
	Cases []Case
}

// Measure compiles and loads the packages, runs the cases, asks for the plans, and times predictions: package after package in every
// round, as decoding alternates between chunks. What fails is in the report; the error is about the session itself.
func Measure(ctx context.Context, s Session) (*Report, error) {
	m, err := system()
	if err != nil {
		return nil, err
	}
	return measure(ctx, machine{m}, s)
}

func measure(ctx context.Context, rt machine, s Session) (*Report, error) {
	if parts := strings.Count(s.Layout, "|") + 1; s.Layout != "" && parts != len(s.Subjects) {
		return nil, &format.Error{Path: "layout", Got: fmt.Sprintf("%d parts", parts), Want: fmt.Sprintf("one for each of %d packages", len(s.Subjects))}
	}
	r := &Report{FormatVersion: ReportVersion, Experiment: s.Experiment, Date: time.Now().Format(time.DateOnly), Device: s.Device, Model: s.Model,
		Units: s.Units.String(), CopyBack: "none", Layout: s.Layout, Chunks: []ReportChunk{}, StepMs: []float64{}, Models: make([]ReportModel, len(s.Subjects))}
	var benches []*bench
	defer func() {
		for _, b := range benches {
			b.close()
		}
	}()
	for i, subject := range s.Subjects {
		s.tell("%s: compile, load, %d cases, plan", subject.Path, len(subject.Cases))
		b, err := prepare(rt, &s, subject, &r.Models[i])
		if b != nil {
			benches = append(benches, b)
		}
		if err != nil {
			r.Models[i].Error = err.Error()
		}
	}
	if err := rounds(ctx, &s, benches, r); err != nil {
		return nil, err
	}
	r.conclude(benches)
	return r, rt.scope(func() error {
		h := rt.environment()
		r.SoC, r.OS, r.Thermal = h.Chip, h.OS, h.Thermal
		if r.Device == "" {
			r.Device = h.Chip
		}
		return nil
	})
}

func (s *Session) tell(text string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(text, args...))
	}
}

// bench is a loaded package with buffers for its timed calls.
type bench struct {
	report   *ReportModel
	model    *Model
	function string
	bound    Bound
}

// prepare does everything but the timing. The bench is to be closed even if there is an error.
func prepare(rt machine, s *Session, subject Subject, r *ReportModel) (*bench, error) {
	*r = ReportModel{Path: subject.Path, Ms: []float64{}, CopyMs: []float64{}, Cases: []ReportCase{}}
	m, err := open(rt, subject.Path, s.Units)
	if err != nil {
		return nil, err
	}
	b := &bench{report: r, model: m, function: timedFunction(m, s.Function)}
	r.Function, r.CompileMs, r.WeightBytes = b.function, 1e3*m.CompileSeconds, weightBytes(m)
	if _, err := m.function(b.function); err != nil {
		return b, err
	}
	r.LoadMs = 1e3 * m.LoadSeconds(b.function)
	r.Cases = runCases(m, subject.Cases)
	r.Placement = placement(m, b.function)
	return b, b.bind(s.Backing)
}

func timedFunction(m *Model, wanted string) string {
	known := m.Functions()
	switch {
	case len(known) == 0:
		return mil.MainFunction
	case slices.Contains(known, wanted):
		return wanted
	}
	return known[0]
}

// bind makes buffers for all ports, so that no call allocates.
func (b *bench) bind(backing Backing) error {
	inputs, outputs, states, err := b.model.Ports(b.function)
	if err != nil {
		return err
	}
	b.bound = Bound{Inputs: map[string]*Buffer{}, Outputs: map[string]*Buffer{}}
	if len(states) > 0 {
		if b.bound.State, err = b.model.NewState(b.function); err != nil {
			return err
		}
	}
	if b.bound.Inputs, err = b.buffers(inputs, backing); err != nil {
		return err
	}
	for name, t := range Filler(inputs) {
		if err := b.bound.Inputs[name].Write(t); err != nil {
			return err
		}
	}
	fixed := slices.DeleteFunc(slices.Clone(outputs), func(p Port) bool { return bool(p.Flexible) || len(p.Shape) == 0 || slices.Contains(p.Shape, 0) })
	b.bound.Outputs, err = b.buffers(fixed, backing)
	return err
}

func (b *bench) buffers(ports []Port, backing Backing) (map[string]*Buffer, error) {
	list := map[string]*Buffer{}
	for _, p := range ports {
		kind := backing
		if p.DType != mil.Float16 || len(p.Shape) == 0 {
			kind = Memory
		}
		buffer, err := b.model.NewBuffer(kind, p.DType, p.Shape...)
		if err != nil {
			return list, err
		}
		list[p.Name] = buffer
	}
	return list, nil
}

func (b *bench) close() {
	for _, buffer := range buffersOf(b.bound) {
		buffer.Close()
	}
	if b.bound.State != nil {
		b.bound.State.Close()
	}
	if err := b.model.Close(); err != nil && b.report.Error == "" {
		b.report.Error = err.Error()
	}
}

// rounds times the packages in turn. One that fails takes no further part.
func rounds(ctx context.Context, s *Session, benches []*bench, r *Report) error {
	for call := range s.Calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.tell("round %d of %d", call+1, s.Calls)
		var step float64
		for _, b := range benches {
			if b.report.Error != "" {
				continue
			}
			p, err := b.model.Run(b.function, b.bound)
			if err != nil {
				b.report.Error = err.Error()
				continue
			}
			b.report.Ms = append(b.report.Ms, 1e3*p.PredictSeconds)
			b.report.CopyMs = append(b.report.CopyMs, 1e3*p.CopySeconds)
			step += 1e3 * p.PredictSeconds
		}
		if s.Layout != "" {
			r.StepMs = append(r.StepMs, step)
		}
	}
	return nil
}

// conclude fills in what follows from the models. A step of which a part is missing is no step.
func (r *Report) conclude(benches []*bench) {
	for i, m := range r.Models {
		if r.Layout != "" && m.Error == "" {
			r.Chunks = append(r.Chunks, ReportChunk{Index: i + 1, Ms: m.Ms})
		}
		if p := m.Placement; p != nil && p.Error == "" {
			if r.Audit == nil {
				r.Audit = &ReportAudit{}
			}
			r.Audit.Ops += p.ANE + p.GPU + p.CPU
			r.Audit.Off += p.GPU + p.CPU
		}
	}
	if len(r.Chunks) < len(r.Models) {
		r.StepMs = []float64{}
	}
	r.describe(benches)
}

// placement asks for the plan of a function. Without one the rest of the report stands.
func placement(m *Model, name string) *ReportPlacement {
	plan, err := m.Plan(name)
	r := &ReportPlacement{ANE: plan.Count(ANE), GPU: plan.Count(GPU), CPU: plan.Count(CPU), Unplaced: plan.Count(Unplaced), Off: []ReportOffOp{}}
	if err != nil {
		r.Error = err.Error()
	}
	for _, p := range plan.Off(ANE) {
		r.Off = append(r.Off, ReportOffOp(p))
	}
	return r
}

// runCases runs the cases in order; those of one function share a state, which a case may carry on.
func runCases(m *Model, cases []Case) []ReportCase {
	states := map[string]*State{}
	defer func() {
		for _, s := range states {
			s.Close()
		}
	}()
	list := []ReportCase{}
	for _, c := range cases {
		r := ReportCase{Name: c.Name, Function: c.Function, Outputs: []ReportTensor{}}
		if err := r.run(m, c, states); err != nil {
			r.Error = err.Error()
		}
		list = append(list, r)
	}
	return list
}

func (r *ReportCase) run(m *Model, c Case, states map[string]*State) error {
	s, err := start(m, c, states)
	if err != nil {
		return err
	}
	p, err := m.Predict(c.Function, c.Inputs, s)
	if err != nil {
		return err
	}
	for name := range c.Want {
		if s != nil && slices.Contains(nameList(s.states), name) {
			if p.Outputs[name], err = s.Read(name); err != nil {
				return err
			}
		}
	}
	r.judge(p.Outputs, c.Want)
	return nil
}

// judge adds the outputs, each with how far it is from what is expected of it.
func (r *ReportCase) judge(outputs map[string]*Tensor, want map[string]Expected) {
	within := true
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		t := reportTensor(name, outputs[name])
		if e, ok := want[name]; ok {
			t.Error = e.judge(outputs[name])
			within = within && t.Error.Within
			r.Within = &within
		}
		r.Outputs = append(r.Outputs, t)
	}
}

// start is the state that a case begins with, nil if its function has none.
func start(m *Model, c Case, states map[string]*State) (*State, error) {
	_, _, ports, err := m.Ports(c.Function)
	if err != nil || len(ports) == 0 {
		return nil, err
	}
	s := states[c.Function]
	if s == nil || c.Start != Carried {
		if s != nil {
			s.Close()
		}
		if s, err = m.NewState(c.Function); err != nil {
			return nil, err
		}
		states[c.Function] = s
	}
	if c.Start == Given {
		for name, t := range c.State {
			if err := s.Write(name, t); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}
