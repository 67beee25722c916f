package gemma4

import "context"

// Score feeds tokens as Prefill does and hands over the logits [V] that follow each of them, in order; row counts from 0 in this
// call. The slice is valid until take returns, and an error of take ends the work.
func (s *State) Score(ctx context.Context, tokens []int, take func(row int, logits []float32) error) error {
	if err := s.check(tokens); err != nil {
		return err
	}
	for row := 0; row < len(tokens); row += s.batch {
		part := tokens[row:min(row+s.batch, len(tokens))]
		if err := s.call(ctx, part, every); err != nil {
			return err
		}
		if err := s.scored(row, len(part), take); err != nil {
			return err
		}
	}
	return nil
}

// scored computes the logits of all rows of the last call.
func (s *State) scored(row, t int, take func(row int, logits []float32) error) error {
	m, d, v := s.model, s.model.Config.HiddenSize, s.model.Config.VocabSize
	step := max(1, scoreValues/v) // rows at once, so that a large vocabulary does not fill the memory
	for i := 0; i < t; i += step {
		n := min(step, t-i)
		s.normed, s.pre, s.logits = grow(s.normed, n*d), grow(s.pre, n*v), grow(s.logits, n*v)
		m.FinalNorm(s.normed, s.pass.X[i*d:(i+n)*d])
		m.Logits(s.logits, s.pre, s.normed)
		for k := range n {
			logits := s.logits[k*v : (k+1)*v]
			if !finite(logits) {
				return ErrNotFinite
			}
			if err := take(row+i+k, logits); err != nil {
				return err
			}
		}
	}
	return nil
}

// scoreValues is how many logits are computed at once.
const scoreValues = 1 << 22
