package gemma4

import (
	"context"
	"fmt"

	"anelab/internal/format"
	"anelab/swa"
)

// Try feeds tokens as [State.Score] does, in one call of any length, and leaves the sequence where it was: every row reads the
// rows that stood before the call and those of the call up to its own, each within its whole window. [State.Accept] takes over as
// many rows as the caller agrees with; any other call forgets them. This is what a verify call of speculative decoding
// computes when nothing is lost (spec forward.md §4.10).
func (s *State) Try(ctx context.Context, tokens []int, take func(row int, logits []float32) error) error {
	s.tried = 0
	if err := s.check(tokens); err != nil {
		return err
	}
	if err := s.forward(ctx, tokens, every); err != nil {
		return err
	}
	if err := s.scored(0, len(tokens), take); err != nil {
		return err
	}
	s.tried = len(tokens)
	return nil
}

// Accept commits the first n rows of the [State.Try] just made.
func (s *State) Accept(n int) error {
	if n < 0 || n > s.tried {
		return &format.Error{Field: "accept", Got: fmt.Sprintf("%d rows", n), Want: fmt.Sprintf("0 to %d, the rows of the call just tried", s.tried)}
	}
	if n < s.tried {
		for l, st := range s.stores {
			if st != nil {
				restage(st, s.model.Layers[l], n)
			}
		}
	}
	s.tried = 0
	s.commit()
	return nil
}

// restage keeps the first n staged rows of an owner's store. They are read back as they were stored, so storing them once more
// changes no bit.
func restage(st swa.Store, y Layer, n int) {
	first, w, d := st.Next(), y.KVWidth(), y.HeadDim
	k, v := make([]float32, n*w), make([]float32, n*w)
	keys, values := st.Keys(), st.Values()
	for i := range n {
		for g := range y.KVHeads {
			at := i*w + g*d
			keys.Head(g).Load(k[at:at+d], first+i, 1)
			values.Head(g).Load(v[at:at+d], first+i, 1)
		}
	}
	st.Stage(first, k, v)
}
