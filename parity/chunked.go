package parity

import (
	"context"
	"fmt"
	"iter"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
)

// Chunked is the model cut into the chunks of a plan, run through their ports. Chunks take one token per call: a case with
// Batch 1 goes through them from its first token; otherwise the whole model takes the prompt, as a host would that prefills
// elsewhere, and the chunks start from its imported cache.
type Chunked struct {
	Model *gemma4.Model
	Plan  *chunking.Plan
}

// Name implements [Backend].
func (c Chunked) Name() string { return "chunked " + c.Plan.Layout.String() }

// Where implements [Locator].
func (c Chunked) Where(layer int) string {
	for i, chunk := range c.Plan.Chunks {
		if layer >= chunk.Lo && layer < chunk.Hi {
			return fmt.Sprintf("chunk %d", i+1)
		}
	}
	return ""
}

// Run implements [Backend].
func (c Chunked) Run(ctx context.Context, cs Case) iter.Seq2[Tap, error] {
	return Traced(ctx, func(ctx context.Context, trace gemma4.Tracer) error {
		s, err := run.NewSession(c.Model, c.Plan)
		if err != nil {
			return err
		}
		if cs.Batch != 1 {
			if err := c.prefill(ctx, s, cs, trace); err != nil {
				return err
			}
		}
		s.Listen(func(t Tap) {
			t.First = s.Next() // a chunk that is only the head is not told its position
			trace(t)
		})
		for lo := range cs.Calls() {
			if lo < s.Next() {
				continue
			}
			if _, err := s.Step(ctx, cs.Tokens(lo, lo+1)[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

// prefill feeds the prompt to the whole model and hands its cache to the chunks.
func (c Chunked) prefill(ctx context.Context, s *run.Session, cs Case, trace gemma4.Tracer) error {
	st, err := c.Model.NewState(c.Plan.Context)
	if err != nil {
		return err
	}
	st.SetBatch(max(len(cs.Prompt), 1))
	st.Listen(trace)
	for lo, hi := range cs.Calls() {
		if lo >= len(cs.Prompt) {
			break
		}
		if _, err := st.Prefill(ctx, cs.Tokens(lo, hi)); err != nil {
			return err
		}
	}
	return s.Import(st)
}
