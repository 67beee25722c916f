package attention

import (
	"fmt"

	"anelab/swa"
)

var _ = register("stream", "stream:4+256", func(_, arg string) (Policy, error) {
	sink, recent, err := numbers(arg, "+", [2]int{0, 1})
	return Streaming{sink, recent}, err
})

// Streaming sees the first Sink positions, where attention without a target parks its weight, and the last Recent ones, itself
// included: j < S or p − j < R, DuoAttention's training mask (spec forward.md §7.1). Positions are never re-indexed.
type Streaming struct{ Sink, Recent int }

func (s Streaming) String() string { return fmt.Sprintf("stream:%d+%d", s.Sink, s.Recent) }

// Groups is all heads.
func (Streaming) Groups(heads int) []HeadGroup { return []HeadGroup{{0, heads}} }

// Visible is 0 … S−1 and pos−R+1 … pos, as one span where they meet.
func (s Streaming) Visible(dst []swa.Span, _ int, pos int) []swa.Span {
	lo := max(pos-s.Recent+1, 0)
	if lo <= s.Sink {
		return append(dst, swa.Span{Lo: 0, Hi: pos + 1})
	}
	if s.Sink > 0 {
		dst = append(dst, swa.Span{Lo: 0, Hi: s.Sink})
	}
	return append(dst, swa.Span{Lo: lo, Hi: pos + 1})
}

// Keep is the first S rows and the last R.
func (s Streaming) Keep() swa.Retention { return swa.Sinks(s.Sink, s.Recent) }
