package swa

import "fmt"

// Store keeps keys and values of one owner layer.
type Store interface {
	// Stage places the rows of a call at positions [first, first+T): k and v are [T, K, d]. first must be Next().
	Stage(first int, k, v []float32)
	// Keys and Values view the committed rows and those staged last.
	Keys() View
	Values() View
	// Commit makes the staged rows part of the past.
	Commit()
	// Next is the position that follows the committed rows.
	Next() int
	// Held is the range of committed positions that can be read.
	Held() Span
	// Truncate forgets positions p and above and drops staged rows; it fails where the rows needed to go on from p are gone.
	Truncate(p int) error
}

// Retention says which past rows a layer must keep for everyone who reads them: the first Sink ones and the last Last ones.
type Retention struct {
	Sink int // the first rows of the sequence; only beside Last
	Last int // the newest rows; 0 = all
}

// All keeps everything.
var All = Retention{}

// Last keeps the newest n rows.
func Last(n int) Retention { return Retention{Last: n} }

// Sinks keeps the first s rows and the newest n.
func Sinks(s, n int) Retention { return Retention{Sink: s, Last: n} }

// Union keeps what both need: a donor's store must satisfy all its readers.
func (r Retention) Union(o Retention) Retention {
	if r == All || o == All {
		return All
	}
	return Retention{Sink: max(r.Sink, o.Sink), Last: max(r.Last, o.Last)}
}

// Rows is the number of rows kept at the given context.
func (r Retention) Rows(context int) int {
	if r == All {
		return context
	}
	return min(r.Sink+r.Last, context)
}

func (r Retention) String() string {
	switch {
	case r == All:
		return "all"
	case r.Sink > 0:
		return fmt.Sprintf("first %d and last %d", r.Sink, r.Last)
	}
	return fmt.Sprintf("last %d", r.Last)
}

// Shape is one position's key (or value) row: K heads of width d, and how it is kept.
type Shape struct {
	KVHeads, HeadDim int
	Elem             Elem // what a number is rounded to
	Form             Form // fewer bits than that; zero keeps the numbers
}

// Width is the number of values in a row.
func (s Shape) Width() int { return s.KVHeads * s.HeadDim }

// New returns the store that a retention asks for, with all memory allocated: [Linear] for All, [Ring] for a window, [Bank] for
// a window behind sinks, [Grouped] where rows are quantised in groups of positions.
func New(r Retention, s Shape, context int) Store {
	switch {
	case s.Form.Group > 0:
		return NewGrouped(s, context)
	case r == All || r.Rows(context) == context:
		return NewLinear(s, context)
	case r.Sink > 0:
		return NewBank(s, r)
	}
	return NewRing(s, r.Last)
}
