package proof

import (
	"context"
	"fmt"
	"path/filepath"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/parity"
	"anelab/parity/golden"
)

// Result is everything that was compared for one subject.
type Result struct {
	Mode        string
	Plan        *chunking.Plan
	Imported    int // prompts that were prefilled by the whole model
	Warnings    []string
	Weights     []*Weights // of packages, one per chain
	Comparisons []Comparison
}

// OK reports whether every comparison that asks for something holds.
func (r *Result) OK() bool {
	for _, w := range r.Weights {
		if !w.OK() {
			return false
		}
	}
	for i := range r.Comparisons {
		if !r.Comparisons[i].OK() {
			return false
		}
	}
	return true
}

// Run makes all comparisons. progress may be nil.
func Run(ctx context.Context, s *Subject, progress func(step string)) (*Result, error) {
	if progress == nil {
		progress = func(string) {}
	}
	jobs := s.jobs()
	plan, err := s.plan(jobs)
	if err != nil {
		return nil, err
	}
	progress("loading weights")
	model, err := s.load(s.Mode)
	if err != nil {
		return nil, err
	}
	p := &prover{ctx: ctx, subject: s, model: model, plan: plan, progress: progress, result: &Result{Mode: s.Mode, Plan: plan}}
	for _, w := range model.Warnings {
		p.result.Warnings = append(p.result.Warnings, w.Error())
	}
	if err := p.chunks(jobs); err != nil {
		return nil, err
	}
	for _, f := range s.Goldens {
		if err := p.golden(f, jobs); err != nil {
			return nil, err
		}
	}
	if s.Mode == "ane" {
		err = p.fromFloat32(jobs)
	}
	return p.result, err
}

// prover is one run under way.
type prover struct {
	ctx      context.Context
	subject  *Subject
	model    *gemma4.Model
	plan     *chunking.Plan
	progress func(string)
	result   *Result
}

// chunks compares the chunks with the whole model, bit for bit.
func (p *prover) chunks(jobs []job) error {
	c := Comparison{Got: "chunks", Want: "whole", Exact: true}
	for _, j := range jobs {
		if j.imported {
			p.result.Imported++
		}
		p.progress("chunks against whole, " + j.Name)
		if err := p.compare(&c, parity.Chunked{Model: p.model, Plan: p.plan}, parity.Reference{Model: p.model}, j.Case); err != nil {
			return err
		}
	}
	p.file(c)
	return nil
}

func (p *prover) compare(c *Comparison, got, want parity.Backend, cs parity.Case) error {
	settings := parity.Settings{Tolerances: c.Target.Tolerances, Storage: storageOf(p.subject.Mode), KeepGoing: true}
	r, err := parity.Run(p.ctx, got, want, cs, settings)
	if err != nil {
		return err
	}
	c.add(cs.Name, &r, p.plan)
	return nil
}

func (p *prover) file(c Comparison) {
	c.finish()
	p.result.Comparisons = append(p.result.Comparisons, c)
}

// golden compares the whole model with a recording. The prompt goes in at once, as it did there.
func (p *prover) golden(f *golden.File, jobs []job) error {
	c := Comparison{Got: "whole", Want: filepath.Base(f.Path()), Target: targetOf(f, p.subject.Mode)}
	for _, j := range jobs {
		if j.file != f {
			continue
		}
		p.progress("whole against " + c.Want + ", " + j.Name)
		o := &observer{Backend: parity.Reference{Model: p.model}, prompt: len(j.Prompt)}
		cs := j.golden.ParityCase()
		if err := p.compare(&c, o, golden.Backend{Case: j.golden}, cs); err != nil {
			return err
		}
		if len(j.golden.Tokens) > 0 {
			c.Tokens = compareTokens(o.Tokens, j.golden.Tokens)
		}
		c.Loudness = compareLoudness(o, j.golden)
	}
	p.file(c)
	return nil
}

func compareTokens(got, want []int) *Tokens {
	t := &Tokens{Count: len(want)}
	for i, id := range want {
		switch {
		case i < len(got) && got[i] == id:
			t.Equal++
		case t.First == "" && i < len(got):
			t.First = fmt.Sprintf("token %d is %d, want %d", i, got[i], id)
		case t.First == "":
			t.First = fmt.Sprintf("only %d tokens", len(got))
		}
	}
	return t
}

// loudnessLimit is relative: the reference's own error is 4e-7.
const loudnessLimit = 1e-4

// compareLoudness looks at all tokens of a prompt where a golden holds the values of only two.
func compareLoudness(o *observer, c *golden.Case) *Loudness {
	want, shape, ok := c.Tensor("hidden_rms")
	if !ok || o.calls != 1 || len(o.RMS) != len(want) {
		return nil
	}
	d := parity.Compare(o.RMS, want, parity.Options{RowLen: shape[1]})
	l := &Loudness{Layers: shape[0], Tokens: shape[1], OK: parity.Tolerance{Rel: loudnessLimit}.Check(d) == nil}
	for i, w := range want {
		if w != 0 {
			l.MaxRel = max(l.MaxRel, float64(max(o.RMS[i]-w, w-o.RMS[i]))/float64(w))
		}
	}
	return l
}

// fromFloat32 measures how far the mode is from float32, for information.
func (p *prover) fromFloat32(jobs []job) error {
	p.progress("loading weights in f32")
	exact, err := p.subject.load("f32")
	if err != nil {
		return err
	}
	c := Comparison{Got: "whole", Want: "whole in f32", Target: Target{Information: "what fp16 costs on these weights"}}
	for _, j := range jobs {
		p.progress("ane against f32, " + j.Name)
		if err := p.compare(&c, parity.Reference{Model: p.model}, parity.Reference{Model: exact}, j.inOneCall()); err != nil {
			return err
		}
	}
	p.file(c)
	return nil
}

// inOneCall is the case with its prompt in one call.
func (j *job) inOneCall() parity.Case {
	c := j.Case
	c.Batch = 0
	return c
}
