package interp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Options say how a program is run.
type Options struct {
	Precision Precision
	Threads   int    // 0 means all cores
	Path      string // of the package, for messages
	Call      Call   // for [Run]; a Model is given one with every call
}

// Model is a program that is ready to run. It is safe for concurrent use; the files that hold its constants must stay open.
type Model struct {
	Program   *mil.Program
	Precision Precision

	path     string
	numerics numerics
	free     pools

	mu        sync.Mutex
	functions map[string]*function
	weights   map[string]*weight // by where they lie, so that functions share them
}

// New checks a program and makes it ready. Functions are prepared when they are first called, or by [Model.Prepare].
func New(p *mil.Program, o Options) (*Model, error) {
	m := &Model{Program: p, Precision: o.Precision, path: o.Path, numerics: newNumerics(o.Precision, o.Threads),
		functions: map[string]*function{}, weights: map[string]*weight{}}
	if err := mil.Check(p); err != nil {
		return nil, located(o.Path, "", err)
	}
	return m, nil
}

// Prepare makes a function ready: it finds the implementation of every op and evaluates what is constant. The error names the
// first op that is not supported.
func (m *Model) Prepare(name string) error {
	_, err := m.prepared(name)
	return err
}

// function is a function that is ready to run.
type function struct {
	*mil.Function
	constants map[string]*value
	steps     []step // one for each op
	quick     []step // the same results with fewer steps; what is in between cannot be seen
}

// step is an op that runs in every call.
type step struct {
	op      *mil.Op
	impl    impl
	with    []*mil.Op // ops whose work this step does too
	release []string  // results that no later op uses
	open    open
}

// open says that shapes or integer operands are known only at run time, so that the op is checked in every call.
type open bool

func (m *Model) prepared(name string) (*function, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	fn := m.Program.Function(name)
	if fn == nil {
		return nil, m.noFunction(name)
	}
	f := &function{Function: fn, constants: map[string]*value{}}
	if err := m.fold(f); err != nil {
		return nil, err
	}
	f.quick = f.fused()
	f.release(f.steps)
	f.release(f.quick)
	m.functions[name] = f
	return f, nil
}

func (m *Model) noFunction(name string) error {
	var names []string
	for _, f := range m.Program.Functions {
		names = append(names, f.Name)
	}
	return &format.Error{Path: m.path, Field: "function", Got: strconv.Quote(name), Want: strings.Join(names, " or "), Err: ErrFunction,
		Fix: format.DidYouMean(name, names)}
}

// fold evaluates constants and lists the other ops.
func (m *Model) fold(f *function) error {
	r := &running{Model: m, function: f, names: f.constants}
	for _, op := range f.Body.Ops {
		if op.Type == "const" {
			v, err := constant(op.Attribute("val"))
			if err != nil {
				return (&call{running: r, op: op}).located(err)
			}
			m.share(op, v)
			f.constants[op.Outputs[0].Name] = v
			continue
		}
		impl := ops[op.Type]
		if impl == nil || len(op.Blocks) > 0 {
			return &format.Error{Path: m.path, Field: place(f.Name, op), Got: "op " + op.Type, Err: ErrUnsupported,
				Fix: "convert the model without it, or have Core ML run it"}
		}
		if !op.IsConstexpr() {
			f.steps = append(f.steps, step{op: op, impl: impl, open: f.isOpen(op)})
			continue
		}
		if err := r.step(step{op: op, impl: impl}); err != nil {
			return err
		}
		m.share(op, f.constants[op.Outputs[0].Name])
	}
	return nil
}

// share makes a constant use the weight that an earlier function has made of the same bytes.
func (m *Model) share(op *mil.Op, v *value) {
	key, ok := identity(op)
	if v.weight == nil || !ok {
		return
	}
	if w := m.weights[key]; w != nil {
		v.weight = w
		return
	}
	m.weights[key] = v.weight
}

// mostGiven bounds the constants given in place that are compared to find shared weights.
const mostGiven = 1 << 16

// identity is what a constant is made of: the op, and where its operands lie. ok is false if that is not known, or nothing lies in
// a file.
func identity(op *mil.Op) (key string, ok bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", op.Type, op.Outputs[0].Type)
	for name := range mil.Uses(op) {
		return name, false
	}
	for param, v := range op.Values() {
		if param == "name" {
			continue
		}
		fmt.Fprintf(&b, " %s=", param)
		if blob := v.Blob(); blob != nil {
			ok = true
			fmt.Fprintf(&b, "%s@%d", blob.File, blob.Offset)
			continue
		}
		raw, given := v.Content.(mil.Raw)
		if !given || len(raw) > mostGiven {
			return "", false
		}
		b.WriteString(strconv.Itoa(len(raw)) + ":" + string(raw))
	}
	return b.String(), ok
}

// atRunTime are integer operands that shape the result.
var atRunTime = map[string]bool{"begin": true, "end": true, "size": true, "shape": true, "reps": true, "pad": true, "k": true, "start": true,
	"step": true, "one_hot_vector_size": true, "lengths": true}

func (f *function) isOpen(op *mil.Op) open {
	for name, param := range mil.Uses(op) {
		if f.constants[name] == nil && atRunTime[param] {
			return true
		}
	}
	for _, out := range op.Outputs {
		if !out.Type.Static() {
			return true
		}
	}
	return false
}

// release finds the last use of every result.
func (f *function) release(steps []step) {
	used := map[string]bool{}
	for _, name := range f.Body.Outputs {
		used[name] = true
	}
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		for _, op := range append(slices.Clone(s.with), s.op) {
			for name := range mil.Uses(op) {
				if !used[name] && f.constants[name] == nil && !s.makes(name) {
					used[name] = true
					s.release = append(s.release, name)
				}
			}
		}
		for _, out := range s.op.Outputs {
			if !used[out.Name] {
				s.release = append(s.release, out.Name)
			}
		}
	}
}

// makes reports whether a name is a result that only lives inside the step.
func (s *step) makes(name string) bool {
	return slices.ContainsFunc(s.with, func(op *mil.Op) bool { return op.Outputs[0].Name == name })
}
