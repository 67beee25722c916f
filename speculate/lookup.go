package speculate

import "slices"

// Drafter proposes how a sequence may go on. Not safe for concurrent use.
type Drafter interface {
	// See tells the drafter the tokens that follow those it has seen.
	See(tokens ...int)
	// Draft is at most the given number of tokens that may come next; none when it has nothing to say.
	Draft(most int) []int
}

// Lookup is prompt lookup (Saxena, Prompt Lookup Decoding, 2023): it finds the last earlier occurrence of the newest n tokens, the
// longest n first, and proposes what followed there.
type Lookup struct {
	longest int
	seen    []int
}

// NewLookup compares up to n tokens; 3 is its author's choice.
func NewLookup(n int) *Lookup {
	if n < 1 {
		panic("speculate: a lookup compares at least one token")
	}
	return &Lookup{longest: n}
}

// See remembers tokens.
func (l *Lookup) See(tokens ...int) { l.seen = append(l.seen, tokens...) }

// Draft copies from the sequence.
func (l *Lookup) Draft(most int) []int {
	end := len(l.seen)
	for n := min(l.longest, end-1); n > 0; n-- {
		tail := l.seen[end-n:]
		for at := end - n - 1; at >= 0; at-- {
			if slices.Equal(l.seen[at:at+n], tail) {
				return slices.Clone(l.seen[at+n : min(at+n+most, end)])
			}
		}
	}
	return nil
}
