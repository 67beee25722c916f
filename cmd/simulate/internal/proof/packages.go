package proof

import (
	"context"
	"fmt"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml"
	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/format"
	"anelab/parity"
)

// PackageSubject is converted packages that are put to the proof against the checkpoint they were made of.
type PackageSubject struct {
	Checkpoint *checkpoint.Checkpoint
	Programs   []*coreml.Model
	Tokens     int              // length of a made-up prompt; 0 = a default
	Tolerance  parity.Tolerance // of packages against the model with their weights; zero = equality
}

// RunPackages makes all comparisons of a chain of packages: its weights with the checkpoint's, the Go model with those weights in
// chunks with itself as a whole, and the graphs with the model, op by op where the forward pass has a name for the result. The model
// rounds where the graphs do ([converted.Choices]), so that graphs which are that model equal it. progress may be nil.
func RunPackages(ctx context.Context, s *PackageSubject, progress func(step string)) (*Result, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r := &Result{Mode: "ane"}
	for _, p := range s.Programs {
		for _, w := range converted.DeviceWarnings(p) {
			r.Warnings = append(r.Warnings, w.Error())
		}
	}
	for _, chain := range converted.Chains(s.Programs) {
		src, err := converted.New(s.Checkpoint.Config, s.Checkpoint, chain...)
		if err != nil {
			return nil, err
		}
		progress("weights against the checkpoint")
		w, err := compareWeights(ctx, src, s.Checkpoint)
		if err != nil {
			return nil, err
		}
		r.Weights = append(r.Weights, w)
		p, err := newPackageProver(ctx, s, src, r)
		if err != nil {
			return nil, err
		}
		p.progress = progress
		if err := p.run(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// packageProver is one chain under way.
type packageProver struct {
	*prover
	src       *converted.Source
	tolerance parity.Tolerance
	weights   *Weights
	programs  map[string]*interp.Model // by path: functions of a package share their weights
}

func newPackageProver(ctx context.Context, s *PackageSubject, src *converted.Source, r *Result) (*packageProver, error) {
	plan, err := planOf(src)
	if err != nil {
		return nil, err
	}
	policies, err := plan.Layout.Policies(plan.Model)
	if err != nil {
		return nil, err
	}
	model, err := gemma4.Load(src.Config, src, src.Arithmetic(0), gemma4.Options{Policies: policies})
	if err != nil {
		return nil, err
	}
	if r.Plan == nil {
		r.Plan = plan
	}
	for _, w := range model.Warnings {
		r.Warnings = append(r.Warnings, w.Error())
	}
	subject := &Subject{Checkpoint: s.Checkpoint, Mode: r.Mode, Tokens: s.Tokens}
	p := &prover{ctx: ctx, subject: subject, model: model, plan: plan, result: r}
	return &packageProver{prover: p, src: src, tolerance: s.Tolerance, weights: r.Weights[len(r.Weights)-1], programs: map[string]*interp.Model{}}, nil
}

// cut shortens a case to the positions that packages were built for.
func cut(c parity.Case, room int) parity.Case {
	if c.Context() <= room {
		return c
	}
	c.Prompt = c.Prompt[:min(len(c.Prompt), room)]
	c.Follow = c.Follow[:min(len(c.Follow), room-len(c.Prompt))]
	c.Name = fmt.Sprintf("T%d", len(c.Prompt))
	return c
}

// layoutKey is the entry of a package's metadata that our emitter writes the layout to.
const layoutKey = "anelab.layout"

// planOf is the layout that the packages are. Who sees whom is not read off the graphs: our own packages say it, others have the
// model's own attention.
func planOf(src *converted.Source) (*chunking.Plan, error) {
	m, err := chunking.NewModel(src.Config)
	if err != nil {
		return nil, err
	}
	var l chunking.Layout
	if text := src.Chunks[0].Note(layoutKey); text != "" {
		if l, err = chunking.Parse(text, m); err != nil {
			return nil, &format.Error{Path: src.Chunks[0].Path, Field: layoutKey, Err: err}
		}
	}
	l.Cuts, l.QueryTokens = nil, 0
	if n := int(coreml.Context(src.Chunks[0].Function)); l.Context == 0 {
		l.Context = n
	}
	for _, c := range src.Chunks {
		l.Cuts = append(l.Cuts, chunking.Cut{Lo: c.Lo, Hi: c.Hi, Head: c.HasHead()})
	}
	return l.Plan(m)
}

// run compares what the chain's functions compute: decode chunks first, if it has any.
func (p *packageProver) run() error {
	if coreml.Tokens(p.src.Chunks[0].Function) == 1 {
		if err := p.decode(); err != nil {
			return err
		}
	}
	return p.batches()
}

// decode compares token by token.
func (p *packageProver) decode() error {
	steps := p.subject.madeUp()
	if steps.Batch = 1; p.plan.Context > 0 {
		steps = cut(steps, p.plan.Context)
	}
	chunks := Comparison{Got: "chunks", Want: "whole", Exact: true}
	p.progress("chunks against whole, " + steps.Name)
	whole := parity.Reference{Model: p.model}
	if err := p.compare(&chunks, parity.Chunked{Model: p.model, Plan: p.plan}, whole, steps); err != nil {
		return err
	}
	p.file(chunks)
	graphs, err := p.graphs("")
	if err != nil {
		return err
	}
	packages := p.asked("packages", "whole")
	p.progress("packages against whole, " + steps.Name)
	if err := p.compare(&packages, graphs, whole, steps); err != nil {
		return err
	}
	p.file(packages)
	if err := p.onDevice(graphs, steps); err != nil {
		return err
	}
	if !p.weights.Compressed() {
		return nil
	}
	return p.cost(whole, steps)
}

// asked is a comparison with the tolerance that was asked for.
func (p *packageProver) asked(got, want string) Comparison {
	return Comparison{Got: got, Want: want, Exact: p.tolerance == parity.Tolerance{}, Target: Target{Tolerances: parity.Tolerances{Default: p.tolerance}}}
}

// deviceTolerance is what a device may differ by from fp16 with wide sums (spec coreml.md §4, fp16 semantics).
var deviceTolerance = parity.Tolerance{PeakRel: 0.05, MaxRelRMS: expectedRMS, MinCosine: 0.9999}

// onDevice compares Core ML's own results with the interpreter's, where there is Core ML.
func (p *packageProver) onDevice(graphs parity.Packages, steps parity.Case) error {
	if device.Available() != nil {
		return nil
	}
	p.progress("packages on Core ML, " + steps.Name)
	var paths []string
	for _, c := range p.src.Chunks {
		paths = append(paths, c.Path)
	}
	on, stop, err := parity.OpenOnDevice(graphs, paths, device.CPUAndANE)
	if err != nil {
		return err
	}
	defer stop()
	c := Comparison{Got: "Core ML", Want: "packages", Target: Target{Tolerances: parity.Tolerances{Default: deviceTolerance}}}
	if err := p.compare(&c, on, graphs, steps); err != nil {
		return err
	}
	p.file(c)
	return nil
}

// graphs are one function of the packages, run by the interpreter; "" is the decode function.
func (p *packageProver) graphs(function string) (parity.Packages, error) {
	b := parity.Packages{Label: "packages", Host: p.model}
	var err error
	if b.Windows, err = p.windows(); err != nil {
		return b, err
	}
	for _, c := range p.src.Chunks {
		if function != "" {
			if c, err = c.In(function); err != nil {
				return b, err
			}
		}
		m := p.programs[c.Path]
		if m == nil {
			if m, err = interp.New(c.Program, interp.Options{Precision: interp.ANE, Path: c.Path}); err != nil {
				return b, err
			}
			p.programs[c.Path] = m
		}
		b.Chunks = append(b.Chunks, graphOf(c, m))
	}
	return b, nil
}

// windows are the rows of the caches that keep windows, as wide as their masks.
func (p *packageProver) windows() (rows [2]int, err error) {
	memory, err := run.MemoryOf(p.plan)
	if err != nil {
		return rows, err
	}
	for _, c := range p.plan.Chunks {
		for _, port := range c.Inputs {
			for kind, windowed := range memory.Windowed {
				if windowed && port.Name == run.MaskNames[kind] {
					rows[kind] = max(rows[kind], port.Shape[3])
				}
			}
		}
	}
	return rows, nil
}

// graphOf is one package with the names that the forward pass has for its results.
func graphOf(c converted.Chunk, m *interp.Model) parity.PackageChunk {
	chunk := parity.PackageChunk{MIL: parity.MIL{Label: c.Name(), Model: m, Function: c.Function.Name}, Lo: c.Lo, Hi: c.Hi, Taps: map[string]parity.PackageTap{}}
	for name, t := range c.Taps() {
		tap := parity.PackageTap{Point: t.Point, Layer: t.Layer}
		if t.Op.Type == "conv" {
			tap.Order = parity.ChannelsFirst
		}
		chunk.Taps[name] = tap
	}
	return chunk
}

// cost measures how far compressed weights take the model from the checkpoint's, for information.
func (p *packageProver) cost(compressed parity.Backend, steps parity.Case) error {
	p.progress("what compression costs, " + steps.Name)
	dense, err := gemma4.Load(p.src.Config, p.subject.Checkpoint, arith.NewANE(p.src.Choices.Rules, 0), gemma4.Options{})
	if err != nil {
		return err
	}
	c := Comparison{Got: "whole", Want: "whole with the checkpoint's weights", Target: Target{Information: "what the compression of weights costs"}}
	if err := p.compare(&c, compressed, parity.Reference{Model: dense}, steps); err != nil {
		return err
	}
	p.file(c)
	return nil
}
