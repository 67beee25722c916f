package gemma4

import (
	"context"
	"iter"
)

// Generate feeds the prompt and yields up to n tokens, each the greedy choice after the one before. The last token is not fed
// back. An error ends the sequence.
func (s *State) Generate(ctx context.Context, prompt []int, n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		logits, err := s.Prefill(ctx, prompt)
		for i := 0; i < n; i++ {
			if err != nil {
				yield(0, err)
				return
			}
			token := Argmax(logits)
			if !yield(token, nil) || i == n-1 {
				return
			}
			logits, err = s.Step(ctx, token)
		}
	}
}
