package parity

import (
	"context"
	"fmt"
	"iter"

	"anelab/gemma4"
	"anelab/internal/format"
)

// PackageBatch is a chain called with several tokens at once: a prefill without caches, which starts a sequence, or a call behind decode
// steps, of drafts on trial or of a block of a prompt whose rows go into states. The call with several tokens is the last one of a
// prompt. It is traced, and so are the steps that follow, if any do: they read the rows that the call has left.
type PackageBatch struct {
	Packages        // with the function that takes several tokens
	Rows     int    // tokens of that function
	Decode   string // the function of decode steps; "" if the chunks have none
}

// Run implements [Backend].
func (p PackageBatch) Run(ctx context.Context, c Case) iter.Seq2[Tap, error] {
	return Traced(ctx, func(ctx context.Context, trace gemma4.Tracer) error {
		prompt, lo, hi := Case{Prompt: c.Prompt, Batch: c.Batch}, 0, 0
		for a, b := range prompt.Calls() {
			lo, hi = a, b
		}
		if err := p.check(c, lo, hi); err != nil {
			return err
		}
		s, err := p.start(p.Decode, trace)
		if err != nil {
			return err
		}
		defer s.chain.Close()
		if err := s.silently(ctx, c.Tokens(0, lo)); err != nil {
			return err
		}
		if err := s.call(ctx, p.Chunks[0].name(), c.Tokens(lo, hi)); err != nil {
			return err
		}
		return s.follow(ctx, hi-lo, c.Follow)
	})
}

// follow goes on behind n tokens that a call has written, token by token. What leaves a chunk is looked at: taps are those of the
// other function.
func (s *sequence) follow(ctx context.Context, n int, tokens []int) error {
	s.chain.Advance(n)
	s.Chunks = append([]PackageChunk(nil), s.Chunks...)
	for i := range s.Chunks {
		s.Chunks[i].Taps = nil
	}
	for _, token := range tokens {
		if err := s.call(ctx, "", []int{token}); err != nil {
			return err
		}
		s.chain.Advance(1)
	}
	return nil
}

func (p PackageBatch) check(c Case, lo, hi int) error {
	got := fmt.Sprintf("%d tokens behind %d", hi-lo, lo)
	switch {
	case hi-lo > p.Rows || hi == lo:
		return &format.Error{Path: p.Label, Field: "case " + c.Name, Got: got, Want: fmt.Sprintf("a last call of at most %d", p.Rows)}
	case p.Decode == "" && (lo > 0 || len(c.Follow) > 0):
		return &format.Error{Path: p.Label, Field: "case " + c.Name, Got: got, Want: "one call", Fix: "a prefill without caches starts a sequence"}
	}
	return nil
}
