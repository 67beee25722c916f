package attention

import (
	"fmt"

	"anelab/swa"
)

// Policy says which positions a query sees and what must be kept for that.
type Policy interface {
	fmt.Stringer
	// Groups lists the sets of query heads that share a visibility rule; one group for most policies.
	Groups(heads int) []HeadGroup
	// Visible appends to dst the absolute positions that a query of group g sees, as ascending disjoint spans. dst lets a
	// decode step allocate nothing.
	Visible(dst []swa.Span, g int, pos int) []swa.Span
	// Keep says which rows must stay.
	Keep() swa.Retention
}

// HeadGroup is query heads [Lo, Hi).
type HeadGroup struct{ Lo, Hi int }

// Run is a set of query heads [Lo, Hi) that share a visibility rule and read one KV head.
type Run struct {
	Group  int // of the policy
	KV     int // KV head
	Lo, Hi int
}

// Runs splits the groups of a policy at the borders of KV heads; heads is a multiple of kvHeads. Resolve it once: a step asks
// for nothing else.
func Runs(p Policy, heads, kvHeads int) []Run {
	var runs []Run
	perKV := heads / kvHeads
	for g, group := range p.Groups(heads) {
		for lo := group.Lo; lo < group.Hi; {
			kv := lo / perKV
			hi := min(group.Hi, (kv+1)*perKV)
			runs = append(runs, Run{Group: g, KV: kv, Lo: lo, Hi: hi})
			lo = hi
		}
	}
	return runs
}

var _ = register("full", "full", func(text, arg string) (Policy, error) {
	if text != "full" {
		return nil, errForm
	}
	return Full{}, nil
})

// Full sees everything up to itself.
type Full struct{}

func (Full) String() string { return "full" }

// Groups is all heads.
func (Full) Groups(heads int) []HeadGroup { return []HeadGroup{{0, heads}} }

// Visible is 0 … pos.
func (Full) Visible(dst []swa.Span, _ int, pos int) []swa.Span {
	return append(dst, swa.Span{Lo: 0, Hi: pos + 1})
}

// Keep is everything.
func (Full) Keep() swa.Retention { return swa.All }

var _ = register("sliding", "sliding:512", func(_, arg string) (Policy, error) {
	w, err := number(arg, 1)
	return Sliding{w}, err
})

// Sliding sees the last Window positions, itself included.
type Sliding struct{ Window int }

func (s Sliding) String() string { return fmt.Sprintf("sliding:%d", s.Window) }

// Groups is all heads.
func (Sliding) Groups(heads int) []HeadGroup { return []HeadGroup{{0, heads}} }

// Visible is pos−W+1 … pos.
func (s Sliding) Visible(dst []swa.Span, _ int, pos int) []swa.Span {
	return append(dst, swa.Span{Lo: max(pos-s.Window+1, 0), Hi: pos + 1})
}

// Keep is the last W rows.
func (s Sliding) Keep() swa.Retention { return swa.Last(s.Window) }
