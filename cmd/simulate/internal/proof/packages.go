package proof

import (
	"context"
	"fmt"

	"anelab/attention"
	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml"
	"anelab/coreml/bundle"
	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/format"
	"anelab/parity"
)

// PackageSubject is converted packages that are put to the proof against the checkpoint they were made of, or, with the tables of
// their bundle, by themselves.
type PackageSubject struct {
	Config     gemma4.Config
	Checkpoint *checkpoint.Checkpoint // nil if it is not at hand: weights are not compared
	Tables     *bundle.Tables         // of a bundle: rows of both sides; nil takes the checkpoint's
	Programs   []*coreml.Model
	IDs        []int            // the prompt; nil for one that is made up
	Tokens     int              // length of a made-up prompt; 0 = a default
	Tolerance  parity.Tolerance // of packages against the model with their weights; zero = equality
}

// tables are what tokens are looked up in.
func (s *PackageSubject) tables() gemma4.Source {
	if s.Tables != nil {
		return s.Tables
	}
	return s.Checkpoint
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
		src, err := converted.New(s.Config, s.tables(), chain...)
		if err != nil {
			return nil, err
		}
		p := &packageProver{prover: &prover{ctx: ctx, subject: &Subject{Mode: r.Mode}, progress: progress, result: r}, PackageSubject: s, src: src, programs: map[string]*interp.Model{}}
		if err := p.run(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// packageProver is one chain under way.
type packageProver struct {
	*prover
	*PackageSubject
	src      *converted.Source
	weights  *Weights                 // nil without a checkpoint
	programs map[string]*interp.Model // by path: functions of a package share their weights
}

// run compares the weights, then what the chain's functions compute: decode chunks first, if it has any.
func (p *packageProver) run() error {
	if err := p.compareWeights(); err != nil {
		return err
	}
	if err := p.load(); err != nil {
		return err
	}
	if p.decodes() {
		if err := p.decode(); err != nil {
			return err
		}
	}
	return p.batches()
}

// decodes reports whether the chain has a function that takes one token.
func (p *packageProver) decodes() bool { return coreml.Tokens(p.src.Chunks[0].Function) == 1 }

func (p *packageProver) compareWeights() (err error) {
	if p.Checkpoint == nil {
		return nil
	}
	p.progress("weights against the checkpoint")
	if p.weights, err = compareWeights(p.ctx, p.src, p.Checkpoint); err == nil {
		p.result.Weights = append(p.result.Weights, p.weights)
	}
	return err
}

// load makes the model of the packages' weights, cut as they are.
func (p *packageProver) load() (err error) {
	if p.plan, err = planOf(p.src); err != nil {
		return err
	}
	policies, err := p.plan.Layout.Policies(p.plan.Model)
	if err != nil {
		return err
	}
	if p.model, err = p.modelWith(policies); err != nil {
		return err
	}
	if p.result.Plan == nil {
		p.result.Plan = p.plan
	}
	for _, w := range p.model.Warnings {
		p.result.Warnings = append(p.result.Warnings, w.Error())
	}
	return nil
}

// modelWith is the Go model with the packages' weights and the host's rows.
func (p *packageProver) modelWith(policies map[int]attention.Policy) (*gemma4.Model, error) {
	o := gemma4.Options{Policies: policies}
	if p.Tables != nil {
		o.Rows = p.Tables
	}
	return gemma4.Load(p.src.Config, p.src, p.src.Arithmetic(0), o)
}

// pastWindow is how far a made-up prompt goes on behind the window of a bundle's model.
const pastWindow = 8

// steps are the case that is decoded token by token: as much of the prompt as the packages have positions for.
func (p *packageProver) steps() parity.Case {
	c := parity.Case{Prompt: p.IDs, Batch: 1}
	if c.Prompt == nil {
		n := p.Tokens
		if n == 0 && p.Tables != nil {
			n = max(madeUpTokens, p.src.Config.SlidingWindow+pastWindow)
		}
		c = madeUp(n, p.src.Config.VocabSize)
		c.Batch = 1
	}
	if c.Name = fmt.Sprintf("T%d", len(c.Prompt)); p.plan.Context > 0 {
		c = cut(c, p.plan.Context)
	}
	return c
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

// decode compares token by token.
func (p *packageProver) decode() error {
	steps := p.steps()
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
	if p.weights == nil || !p.weights.Compressed() {
		return nil
	}
	return p.cost(whole, steps)
}

// asked is a comparison with the tolerance that was asked for.
func (p *packageProver) asked(got, want string) Comparison {
	return Comparison{Got: got, Want: want, Exact: p.Tolerance == parity.Tolerance{}, Target: Target{Tolerances: parity.Tolerances{Default: p.Tolerance}}}
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
	b := parity.Packages{Label: "packages", Model: p.model}
	if p.Tables != nil {
		b.Tables = p.Tables
	}
	windows, err := p.windows()
	if err != nil {
		return b, err
	}
	b.Windows = &windows
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
	dense, err := gemma4.Load(p.src.Config, p.Checkpoint, arith.NewANE(p.src.Choices.Rules, 0), gemma4.Options{})
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
