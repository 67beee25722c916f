package speculate

import (
	"context"

	"anelab/gemma4"
)

// Target is a model that decodes by greedy choice and checks drafts. Not safe for concurrent use.
type Target interface {
	// Start feeds a prompt to a new sequence and returns the token that follows it.
	Start(ctx context.Context, prompt []int) (int, error)
	// Step feeds a token and returns the one that follows it.
	Step(ctx context.Context, token int) (int, error)
	// Verify returns the token that follows each of the given ones; the sequence stays where it is until Accept.
	Verify(ctx context.Context, tokens []int) ([]int, error)
	// Accept takes over the first n tokens of the Verify just made.
	Accept(n int) error
	// Room is how many more positions the sequence has.
	Room() int
}

// Whole is the model in one piece: its verify calls are clean.
type Whole struct{ state *gemma4.State }

// NewWhole starts a sequence of at most so many positions.
func NewWhole(m *gemma4.Model, context int) (*Whole, error) {
	s, err := m.NewState(context)
	if err != nil {
		return nil, err
	}
	return &Whole{s}, nil
}

// Start feeds the prompt.
func (w *Whole) Start(ctx context.Context, prompt []int) (int, error) {
	logits, err := w.state.Prefill(ctx, prompt)
	if err != nil {
		return 0, err
	}
	return gemma4.Argmax(logits), nil
}

// Step feeds one token.
func (w *Whole) Step(ctx context.Context, token int) (int, error) {
	return w.Start(ctx, []int{token})
}

// Verify tries the tokens.
func (w *Whole) Verify(ctx context.Context, tokens []int) ([]int, error) {
	var next []int
	err := w.state.Try(ctx, tokens, func(_ int, logits []float32) error {
		next = append(next, gemma4.Argmax(logits))
		return nil
	})
	return next, err
}

// Accept commits the first n of them.
func (w *Whole) Accept(n int) error { return w.state.Accept(n) }

// Room is what is left of the context.
func (w *Whole) Room() int { return w.state.Context() - w.state.Next() }
