package run

import (
	"fmt"

	"anelab/internal/format"
)

// WriteThrough commits every row of the last verify call, as a graph does that writes its caches itself, and goes on behind the
// first n. Windows have then shifted by all rows: the rejected ones stand where the newest accepted rows should, and as many of
// the oldest are gone. Caches of every position hold the rejected rows too, but ahead of the sequence, where no mask shows them
// before they are written again. This reproduces a fault of the upstream runtime; [Session.Accept] is what is right.
func (s *Session) WriteThrough(n int) error {
	if s.trial == nil || n < 0 || n > s.trial.f.Tokens {
		return &format.Error{Field: "write through", Got: fmt.Sprintf("%d rows", n), Want: "0 to the tokens of the verify call just made"}
	}
	pos := s.pos
	if err := s.Accept(s.trial.f.Tokens); err != nil {
		return err
	}
	s.pos = pos + n
	return nil
}
