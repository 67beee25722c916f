package proof

import (
	"fmt"

	"anelab/attention"
	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/parity"
)

// batches compares the functions that take several tokens at once.
func (p *packageProver) batches() error {
	for _, f := range p.src.Chunks[0].Functions {
		n := coreml.Tokens(f)
		if n < 2 {
			continue
		}
		p.progress(f.Name + " against whole")
		if err := p.several(f, n); err != nil {
			return err
		}
	}
	return nil
}

// several compares a function of n tokens in the way of its kind.
func (p *packageProver) several(f *mil.Function, n int) error {
	switch {
	case f.Input("causal_mask") != nil:
		return p.prefill(f.Name, n)
	case !p.decodes():
		p.result.Warnings = append(p.result.Warnings, f.Name+" goes on where other calls have stopped, and these packages have no function that takes one token: it was not run")
		return nil
	case coreml.Writes(f) == coreml.InStates:
		return p.block(f, n)
	}
	return p.verify(f, n)
}

// batchCase is tokens in calls of so many.
func (p *packageProver) batchCase(tokens, batch int) parity.Case {
	c := madeUp(tokens, p.src.Config.VocabSize)
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
	model, err := p.modelWith(policies)
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
	window := p.src.Config.SlidingWindow
	starts := []int{max(window-k, 0) / k * k}
	if wholeWindow(f, window, k) {
		starts = append(starts, (window+k-1)/k*k)
	}
	return p.behindSteps(f, k, starts, 0)
}

// followers are the steps behind a block that are looked at.
const followers = 2

// block compares a block of a prompt whose rows go into states, and the steps behind it, which read them: at the start, up to the end
// of the ring, and behind it if the function keeps whole windows. In upstream's form every row sees all of a full ring, those behind it
// included (spec forward.md §4.11): what it makes of that is no answer of the model.
func (p *packageProver) block(f *mil.Function, k int) error {
	window := p.src.Config.SlidingWindow
	var starts []int
	whole := wholeWindow(f, window, k)
	for start := 0; start+k <= p.plan.Context; start += k {
		first, last := start == 0, start+k <= window && start+2*k > window
		fits := start%window+k <= window
		if fits && (first || last || whole && start >= window) {
			starts = append(starts, start)
		}
		if start >= window && fits {
			break
		}
	}
	if len(starts) == 0 {
		p.result.Warnings = append(p.result.Warnings, fmt.Sprintf("%s writes %d rows into a ring of %d: it was not run", f.Name, k, window))
		return nil
	}
	if !whole {
		p.result.Warnings = append(p.result.Warnings, fmt.Sprintf("%s was compared up to position %d: behind it its rows see those that follow them, which decode steps do not", f.Name, window))
	}
	return p.behindSteps(f, k, starts, followers)
}

// behindSteps compares calls of k tokens behind so many decode steps, and those that follow.
func (p *packageProver) behindSteps(f *mil.Function, k int, starts []int, follow int) error {
	several, err := p.graphs(f.Name)
	if err != nil {
		return err
	}
	batch := parity.PackageBatch{Packages: several, Rows: k, Decode: p.src.Chunks[0].Function.Name}
	c := p.asked(f.Name, "whole")
	for _, start := range starts {
		if start+k > p.plan.Context {
			continue
		}
		all := p.batchCase(start+k+min(follow, p.plan.Context-start-k), k)
		all.Prompt, all.Follow = all.Prompt[:start+k], all.Prompt[start+k:]
		all.Name = fmt.Sprintf("T%d", start+k)
		if err := p.compare(&c, batch, parity.Reference{Model: p.model}, all); err != nil {
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
