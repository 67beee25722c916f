package parity

import (
	"context"
	"errors"
	"iter"

	"anelab/gemma4"
)

// Reference is the whole model in one process: the backend that others are measured against.
type Reference struct {
	Label string // name in reports; "reference" when empty
	Model *gemma4.Model
}

// Name implements [Backend].
func (r Reference) Name() string {
	if r.Label == "" {
		return "reference"
	}
	return r.Label
}

// Run implements [Backend].
func (r Reference) Run(ctx context.Context, c Case) iter.Seq2[Tap, error] {
	return Traced(ctx, func(ctx context.Context, trace gemma4.Tracer) error {
		s, err := r.Model.NewState(c.Context())
		if err != nil {
			return err
		}
		s.SetBatch(max(len(c.Prompt), 1))
		s.Listen(trace)
		for lo, hi := range c.Calls() {
			if _, err := s.Prefill(ctx, c.Tokens(lo, hi)); err != nil {
				return err
			}
		}
		return nil
	})
}

// errStopped ends a run whose reader has seen enough.
var errStopped = errors.New("parity: stopped")

// Traced turns a run that hands its taps to a tracer into a sequence of taps, without a copy. When the reader stops, the run's
// context ends and later taps are dropped.
func Traced(ctx context.Context, run func(context.Context, gemma4.Tracer) error) iter.Seq2[Tap, error] {
	return func(yield func(Tap, error) bool) {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		stopped := false
		err := run(ctx, func(t Tap) {
			if !stopped && !yield(t, nil) {
				stopped = true
				stop(errStopped)
			}
		})
		if err != nil && !stopped {
			yield(Tap{}, err)
		}
	}
}
