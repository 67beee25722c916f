package parity

import (
	"context"
	"fmt"
	"iter"
	"maps"

	"anelab/gemma4"
	"anelab/internal/format"
)

// PackageBatch is a chain called with several tokens at once: a prefill, which starts a sequence, or a verify call behind decode steps.
// Its one traced call is the last call of a case.
type PackageBatch struct {
	Packages          // with the function that takes several tokens
	Rows     int      // tokens of that function
	Before   Packages // decode chunks that fill the caches first; no chunks for a prefill
}

// Run implements [Backend].
func (p PackageBatch) Run(ctx context.Context, c Case) iter.Seq2[Tap, error] {
	return Traced(ctx, func(ctx context.Context, trace gemma4.Tracer) error {
		lo, hi := 0, 0
		for a, b := range c.Calls() {
			lo, hi = a, b
		}
		if err := p.check(c, lo, hi); err != nil {
			return err
		}
		before, err := p.fill(ctx, c, lo)
		if err != nil {
			return err
		}
		defer before.close()
		h, err := p.newHost(p.Rows)
		if err != nil {
			return err
		}
		defer h.close()
		h.pos = lo
		for i := range before.caches {
			maps.Copy(h.caches[i], before.caches[i])
		}
		return h.step(ctx, c.Tokens(lo, hi), trace)
	})
}

func (p PackageBatch) check(c Case, lo, hi int) error {
	got := fmt.Sprintf("%d tokens behind %d", hi-lo, lo)
	switch {
	case hi-lo > p.Rows || hi == lo:
		return &format.Error{Path: p.Label, Field: "case " + c.Name, Got: got, Want: fmt.Sprintf("a last call of at most %d", p.Rows)}
	case len(p.Before.Chunks) == 0 && lo > 0:
		return &format.Error{Path: p.Label, Field: "case " + c.Name, Got: got, Want: "one call", Fix: "a prefill starts a sequence"}
	}
	return nil
}

// fill runs the decode chunks over the first n tokens; what they remember is in the caches of the host.
func (p PackageBatch) fill(ctx context.Context, c Case, n int) (*packageHost, error) {
	h, err := p.Before.newHost(1)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := h.step(ctx, c.Tokens(i, i+1), func(Tap) {}); err != nil {
			h.close()
			return nil, err
		}
	}
	return h, nil
}
