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

// Resumable reports, changing nothing, why a store cannot be truncated to position p.
func Resumable(s Store, p int) error {
	if r, ok := s.(interface{ resumable(p int) error }); ok {
		return r.resumable(p)
	}
	return nil
}

func (r *Ring) resumable(p int) error {
	if held := r.Held(); p > r.next || p < 0 || (p < r.next && max(p-(r.window-1), 0) < held.Lo) {
		return &ErrWindowMoved{p, held}
	}
	return nil
}

// Truncate forgets the rows from position p on, so that the sequence can go on differently from there. A ring can do that only
// while all W−1 rows before p are held: the window slides one way. Positions are never shifted: rotated keys cannot be moved.
func (r *Ring) Truncate(p int) error {
	if err := r.resumable(p); err != nil {
		return err
	}
	r.cut(p)
	return nil
}

// cut goes back to position p.
func (r *Ring) cut(p int) {
	r.next, r.lost = p, r.Held().Lo
	r.dropStaged()
}

func (l *Linear) resumable(p int) error {
	if p > l.next || p < 0 {
		return &ErrWindowMoved{p, l.Held()}
	}
	return nil
}

// Truncate forgets the rows from position p on; always possible for a store that keeps everything.
func (l *Linear) Truncate(p int) error {
	if err := l.resumable(p); err != nil {
		return err
	}
	l.next, l.staged = p, 0
	return nil
}
