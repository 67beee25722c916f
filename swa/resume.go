package swa

import "fmt"

// ErrWindowMoved says that rows needed to go on from an earlier position are gone.
type ErrWindowMoved struct {
	Position int  // where the caller wants to go on
	Held     Span // what is still there
}

func (e *ErrWindowMoved) Error() string {
	return fmt.Sprintf("cannot go on at position %d: only rows %d to %d are still held; compute the prefix again", e.Position, e.Held.Lo, e.Held.Hi-1)
}

// Truncate forgets the rows from position p on, so that the sequence can go on differently from there. A ring can do that only
// while all W−1 rows before p are held: the window slides one way. Positions are never shifted: rotated keys cannot be moved.
func (r *Ring) Truncate(p int) error {
	held := r.Held()
	if p > r.next || p < 0 || (p < r.next && max(p-(r.window-1), 0) < held.Lo) {
		return &ErrWindowMoved{p, held}
	}
	r.next, r.lost = p, held.Lo
	r.dropStaged()
	return nil
}

// Truncate forgets the rows from position p on; always possible for a store that keeps everything.
func (l *Linear) Truncate(p int) error {
	if p > l.next || p < 0 {
		return &ErrWindowMoved{p, l.Held()}
	}
	l.next, l.staged = p, 0
	return nil
}
