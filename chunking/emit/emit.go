package emit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Options say which functions the chunks have.
type Options struct {
	Prefill []int            // tokens of the prefill functions
	Verify  int              // tokens of the verify function; 0 = none
	Window  run.VerifyWindow // of the verify function; whole with states, whatever this says
	Caches  Caches
}

// Caches says where keys and values live between calls.
type Caches uint8

// With PortCaches they are inputs and outputs of every call, with StateCaches they are states of the model (MLState).
const (
	PortCaches Caches = iota
	StateCaches
)

// Chunk is one chunk as a package that is not written yet.
type Chunk struct {
	Name     string // of the file, without its ending
	Chunk    *chunking.Chunk
	Package  *mlpackage.Package
	Warnings []error // weights that are stored otherwise than the layout asks

	weights *weights
}

// Emit writes a program for every chunk of a plan of decode chunks. Weights are read when the packages are written, or when
// somebody asks for their bytes; until then src must stay open. ctx ends that, too.
func Emit(ctx context.Context, plan *chunking.Plan, src gemma4.Source, o Options) ([]*Chunk, error) {
	functions, err := functionsOf(plan, o)
	if err != nil {
		return nil, err
	}
	names := fileNames(plan, o.Caches)
	var chunks []*Chunk
	for i := range plan.Chunks {
		p := &part{plan: plan, index: i, weights: newWeights(ctx, src, plan.Chunks[i]), caches: o.Caches}
		pkg, err := p.assemble(functions)
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, &Chunk{Name: names[i], Chunk: plan.Chunks[i], Package: pkg, Warnings: p.weights.warnings, weights: p.weights})
	}
	return chunks, nil
}

// functionsOf resolves the options, decode first.
func functionsOf(plan *chunking.Plan, o Options) ([]*run.Function, error) {
	decode, err := run.DecodeOf(plan)
	if err != nil {
		return nil, err
	}
	if err := checkPlan(plan, decode.Memory, o); err != nil {
		return nil, err
	}
	all := []*run.Function{decode}
	for _, n := range o.Prefill {
		f, err := run.PrefillOf(plan, n)
		if err == nil && o.Caches == StateCaches {
			f, err = continuing(plan, f)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if o.Verify != 0 {
		window := o.Window
		if o.Caches == StateCaches { // a ring is not shifted
			window = run.WholeWindow
		}
		f, err := run.VerifyOf(plan, o.Verify, window)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.Name] {
			return nil, &format.Error{Field: "functions", Got: f.Name + " twice", Want: "each once"}
		}
		seen[f.Name] = true
	}
	return all, nil
}

// checkPlan refuses what no graph can say.
func checkPlan(plan *chunking.Plan, m *run.Memory, o Options) error {
	c := plan.Model.Config
	for _, y := range plan.Model.Layers {
		b := m.Banks[y.Index]
		if w := b.Keep.Last; y.Kind == gemma4.Sliding && b.Windowed() && plan.Context < w {
			return &format.Error{Field: "context", Got: fmt.Sprint(plan.Context), Want: fmt.Sprintf("%d or more, the window of layer %d", w, y.Index),
				Fix: "a window that never fills costs its rows in every call; choose a longer context"}
		}
		if o.Caches == StateCaches && (b.Name != "" || b.Windowed() != (y.Kind == gemma4.Sliding)) {
			return &format.Error{Field: "attn", Got: fmt.Sprintf("layer %d, a %s layer that keeps the %s rows, in a state", y.Index, y.Kind, b.Keep), Want: "sliding layers with windows, full ones that keep all",
				Fix: "ring_pos and current_pos are positions in those two; emit without states"}
		}
	}
	switch limit, most := c.FinalLogitSoftcapping, c.MaxPositionEmbeddings; {
	case most > 0 && plan.Context > most:
		return &format.Error{Field: "context", Got: fmt.Sprint(plan.Context), Want: fmt.Sprintf("at most %d, max_position_embeddings", most)}
	case f16Of(limit) != limit:
		return &format.Error{Path: "config.json", Field: "final_logit_softcapping", Got: fmt.Sprint(limit), Want: "a number that fp16 holds exactly"}
	}
	return nil
}

// part is one chunk under construction.
type part struct {
	plan    *chunking.Plan
	index   int
	weights *weights
	caches  Caches
}

// call is a function as one chunk has it.
type call struct {
	*run.Function
	sig    run.Signature
	caches Caches
	states []statePort
}

// assemble makes the package of a chunk.
func (p *part) assemble(functions []*run.Function) (*mlpackage.Package, error) {
	program := &mil.Program{SpecVersion: int(opset)}
	d := &mil.Description{Metadata: p.metadata()}
	for _, f := range functions {
		c := &call{Function: f, sig: f.Chunks[p.index], caches: p.caches}
		if p.caches == StateCaches {
			c.states = statePorts(p.plan.Model.Layers, functions[0].Chunks[p.index])
			c.sig = withStates(f, c.sig, c.states)
		}
		fn, err := p.function(c)
		if err != nil {
			return nil, err
		}
		program.Functions = append(program.Functions, fn)
		d.Functions = append(d.Functions, mil.FunctionDescription{Name: fn.Name, Interface: c.face()})
	}
	d.DefaultFunction = functions[0].Name
	if len(functions) == 1 {
		program.Functions[0].Name = mil.MainFunction
		d.Interface, d.Functions, d.DefaultFunction = d.Functions[0].Interface, nil, ""
	}
	slices.SortFunc(d.Functions, func(a, b mil.FunctionDescription) int { return strings.Compare(a.Name, b.Name) })
	program.Sort()
	return &mlpackage.Package{Program: program, Description: d}, nil
}

// function writes one function.
func (p *part) function(c *call) (fn *mil.Function, err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case fault:
			err = f.error
		default:
			panic(f)
		}
	}()
	config := &p.plan.Model.Config
	w := &writer{graph: newGraph(c.Name), part: p, fn: c, cache: keeperOf(c), masks: map[string]string{}, rows: map[int][2]string{},
		eps: config.RMSNormEps, c: config, chunk: p.plan.Chunks[p.index]}
	for _, port := range c.sig.Inputs {
		w.input(port.Name, portType(port))
	}
	for _, s := range c.states {
		w.input(stateNames[s.kind], mil.StateOf(mil.TensorOf(mil.Float16, s.shape...)))
	}
	w.body()
	return w.graph.fn, nil
}

// body is the chunk from its ports to its ports.
func (w *writer) body() {
	x := "hidden_states"
	combined := "per_layer_combined"
	if w.takes("per_layer_raw") {
		combined = w.combine(x, "per_layer_raw")
	}
	layers := w.part.plan.Model.Layers[w.chunk.Lo:w.chunk.Hi]
	if w.prefix = "per_layer_"; w.c.HiddenSizePerLayer > 0 && len(layers) > 0 {
		w.ple = w.toChannels(combined)
	}
	for i, port := range w.fn.sig.Inputs {
		if port.Role == chunking.RoleHandoff && !run.HoldsValues(port) {
			w.rows[port.Layers[0]] = [2]string{port.Name, w.fn.sig.Inputs[i+1].Name}
		}
	}
	for _, y := range layers {
		x = w.layer(x, y)
	}
	w.prefix = ""
	if w.chunk.Head {
		w.head(x)
	} else {
		w.output("hidden_states_out", x)
	}
	w.cache.outputs(w, w.fn.sig.Outputs)
	for _, port := range w.fn.sig.Outputs {
		switch port.Role {
		case chunking.RolePLE:
			w.output(port.Name, combined)
		case chunking.RoleHandoff:
			w.output(port.Name, w.newest(w.rows[port.Layers[0]][sideOf(port)], int64(port.Shape[2])))
		}
	}
	w.keepInputs()
}

// newest are the last rows of keys or values: a donor with a narrower window than other layers of its chunk hands on its own.
func (w *writer) newest(rows string, n int64) string {
	have := w.shape(rows)[2]
	return w.slice("newest", rows, 2, have-n, have)
}
