package gemma4

import (
	"fmt"
	"slices"

	"anelab/internal/format"
	"anelab/swa"
)

// Snapshot is everything that a sequence remembers at one position, apart from any state: a prefix that was computed once. It is
// good for exactly its length; rows that a window has left are not in it, so it cannot stand for a shorter prefix.
type Snapshot struct {
	model   *Model
	context int
	next    int
	saved   []swa.Saved // of owners, in order
}

// Snapshot copies what the sequence remembers.
func (s *State) Snapshot() *Snapshot {
	p := &Snapshot{model: s.model, context: s.context, next: s.Next()}
	for _, st := range s.stores {
		if st != nil {
			p.saved = append(p.saved, swa.Save(st))
		}
	}
	return p
}

// Next is the position behind the prefix.
func (p *Snapshot) Next() int { return p.next }

// Bytes is the memory that it takes.
func (p *Snapshot) Bytes() int64 {
	var n int64
	for _, s := range p.saved {
		n += s.Bytes()
	}
	return n
}

// Restore makes the sequence go on behind the prefix of a snapshot, bit for bit as if it had just been fed. A snapshot may be
// restored any number of times, into any state of the same model and context.
func (s *State) Restore(p *Snapshot) error {
	if p.model != s.model || p.context != s.context {
		return &format.Error{Field: "snapshot", Got: fmt.Sprintf("one of a context of %d", p.context), Want: fmt.Sprintf("of the same model and a context of %d", s.context),
			Fix: "feed the prefix again"}
	}
	s.tried = 0
	next := 0
	for _, st := range s.stores {
		if st != nil {
			p.saved[next].Restore(st)
			next++
		}
	}
	return nil
}

// Prefixes keeps snapshots of prompts, up to a number of bytes; those that were not asked for the longest go first. Not safe
// for concurrent use.
type Prefixes struct {
	limit int64
	used  int64
	kept  []prefix // the one asked for last at the end
}

type prefix struct {
	tokens []int
	at     *Snapshot
}

// NewPrefixes keeps at most limit bytes of snapshots.
func NewPrefixes(limit int64) *Prefixes { return &Prefixes{limit: limit} }

// Keep takes a snapshot of a sequence that was fed exactly these tokens. One that does not fit at all is not kept.
func (c *Prefixes) Keep(tokens []int, s *Snapshot) {
	if s.next != len(tokens) {
		panic("gemma4: a snapshot kept under tokens that are not its own")
	}
	if s.Bytes() > c.limit {
		return
	}
	if i := slices.IndexFunc(c.kept, func(p prefix) bool { return slices.Equal(p.tokens, tokens) }); i >= 0 {
		c.drop(i)
	}
	c.kept = append(c.kept, prefix{slices.Clone(tokens), s})
	c.used += s.Bytes()
	for c.used > c.limit {
		c.drop(0)
	}
}

func (c *Prefixes) drop(i int) {
	c.used -= c.kept[i].at.Bytes()
	c.kept = slices.Delete(c.kept, i, i+1)
}

// Longest is the longest kept prefix of a prompt that leaves at least one token to feed, because a snapshot holds no logits; nil
// if there is none. An equal prompt is answered by the next shorter prefix (the upstream runtime gives up there, spec
// forward.md §6.6).
func (c *Prefixes) Longest(prompt []int) *Snapshot {
	best := -1
	for i, p := range c.kept {
		if n := len(p.tokens); n < len(prompt) && slices.Equal(p.tokens, prompt[:n]) && (best < 0 || n > len(c.kept[best].tokens)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	p := c.kept[best]
	c.kept = append(slices.Delete(c.kept, best, best+1), p)
	return p.at
}
