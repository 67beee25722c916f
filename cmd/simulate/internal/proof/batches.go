package proof

import (
	"fmt"

	"anelab/attention"
	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/parity"
)

// batches compares the functions that take several tokens at once. Those with states depend on what calls before have left there, and
// are not run.
func (p *packageProver) batches() error {
	for _, f := range p.src.Chunks[0].Program.Functions {
		n := coreml.Tokens(f)
		if n < 2 {
			continue
		}
		if len(f.States()) > 0 || f.Input("ring_pos") != nil {
			p.result.Warnings = append(p.result.Warnings, f.Name+" takes several tokens and keeps states: it was not run")
			continue
		}
		p.progress(f.Name + " against whole")
		var err error
		if f.Input("causal_mask") != nil {
			err = p.prefill(f.Name, n)
		} else {
			err = p.verify(f, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batchCase is tokens in calls of so many.
func (p *packageProver) batchCase(tokens, batch int) parity.Case {
	s := *p.subject
	s.Tokens = tokens
	c := s.madeUp()
	c.Follow, c.Batch = nil, batch
	return c
}

// prefill compares a prompt in one call. A prompt beyond the window shows whether the graph knows the window; upstream's does not (spec
// forward.md §4.9, D), and is then held against the model without windows.
func (p *packageProver) prefill(function string, rows int) error {
	graphs, err := p.graphs(function)
	if err != nil {
		return err
	}
	batch, window := parity.PackageBatch{Packages: graphs, Rows: rows}, p.src.Config.SlidingWindow
	whole := parity.Reference{Model: p.model}
	c := p.asked(function, "whole")
	if err := p.compare(&c, batch, whole, p.batchCase(min(rows, window), 0)); err != nil {
		return err
	}
	if rows <= window {
		p.file(c)
		return nil
	}
	beyond := p.asked(function, "whole")
	if err := p.compare(&beyond, batch, whole, p.batchCase(rows, 0)); err != nil {
		return err
	}
	if beyond.OK() || !c.OK() {
		p.file(beyond)
		return nil
	}
	p.file(c)
	return p.withoutWindows(function, batch, rows)
}

// withoutWindows compares with a model whose sliding layers see everything.
func (p *packageProver) withoutWindows(function string, batch parity.PackageBatch, rows int) error {
	policies, err := p.plan.Layout.Policies(p.plan.Model)
	if err != nil {
		return err
	}
	for i, y := range p.model.Layers {
		if y.Kind == gemma4.Sliding {
			policies[i] = attention.Full{}
		}
	}
	model, err := gemma4.Load(p.src.Config, p.src, p.src.Arithmetic(0), gemma4.Options{Policies: policies})
	if err != nil {
		return err
	}
	c := p.asked(function, "whole without windows")
	if err := p.compare(&c, batch, parity.Reference{Model: model}, p.batchCase(rows, 0)); err != nil {
		return err
	}
	p.file(c)
	p.result.Warnings = append(p.result.Warnings, fmt.Sprintf("%s knows no window: of a prompt of more than %d tokens it makes something else than decode chunks do", function, p.src.Config.SlidingWindow))
	return nil
}

// verify compares drafts behind decode steps: where the window is not full yet, and, if the function keeps whole windows, where it is.
// Where rows are shifted in, the first ones lose positions that decode would see (spec forward.md §4.10), so there is nothing to equal.
func (p *packageProver) verify(f *mil.Function, k int) error {
	before, err := p.graphs("")
	if err != nil {
		return err
	}
	drafts, err := p.graphs(f.Name)
	if err != nil {
		return err
	}
	for i := range before.Chunks {
		before.Chunks[i].Taps = nil
	}
	batch, window := parity.PackageBatch{Packages: drafts, Rows: k, Before: before}, p.src.Config.SlidingWindow
	c := p.asked(f.Name, "whole")
	starts := []int{max(window-k, 0) / k * k}
	if full := (window + k - 1) / k * k; wholeWindow(f, window, k) && full+k <= p.plan.Context {
		starts = append(starts, full)
	}
	for _, start := range starts {
		if start+k > p.plan.Context {
			continue
		}
		if err := p.compare(&c, batch, parity.Reference{Model: p.model}, p.batchCase(start+k, k)); err != nil {
			return err
		}
	}
	p.file(c)
	return nil
}

// wholeWindow reports whether a verify function has room for its rows besides the window's.
func wholeWindow(f *mil.Function, window, k int) bool {
	in := f.Input("causal_mask_sliding")
	return in == nil || in.Type.Shape[len(in.Type.Shape)-1] == int64(window+k)
}
