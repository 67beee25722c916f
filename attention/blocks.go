package attention

import (
	"cmp"
	"fmt"
	"slices"

	"anelab/swa"
)

var _ = register("blocks", "blocks:16x32", func(_, arg string) (Policy, error) {
	count, rows, err := numbers(arg, "x", [2]int{1, 1})
	return Blocks{count, rows}, err
})

// Selector is a policy whose visible positions depend on the query's values. Its Visible says how many positions a query sees at
// most, as if the newest ones were chosen: enough to price it, and no mask.
type Selector interface {
	Policy
	// IndexRows is the number of positions in a block of the index that the store must keep.
	IndexRows() int
	// Select returns the positions that the heads of run r see; s.spans is its memory.
	Select(s *Scratch, q *Query, r Run) []swa.Span
}

// Blocks sees a fixed number of blocks of positions: the one that the query is in and those whose keys could give the highest
// scores, judged by the least and greatest value of every key channel (Quest). The query heads of a KV head choose together, by
// the sum of their bounds, so that a graph of fixed shape gathers one set of rows. Every row is kept.
type Blocks struct{ Count, Rows int }

func (b Blocks) String() string { return fmt.Sprintf("blocks:%dx%d", b.Count, b.Rows) }

// Groups is all heads.
func (Blocks) Groups(heads int) []HeadGroup { return []HeadGroup{{0, heads}} }

// Visible is the newest Count blocks.
func (b Blocks) Visible(dst []swa.Span, _ int, pos int) []swa.Span {
	first := max(pos/b.Rows-(b.Count-1), 0) * b.Rows
	return append(dst, swa.Span{Lo: first, Hi: pos + 1})
}

// Keep is everything.
func (Blocks) Keep() swa.Retention { return swa.All }

// IndexRows is the size of a block.
func (b Blocks) IndexRows() int { return b.Rows }

// Select is the query's own block and the best Count−1 before it; of equals the earlier.
func (b Blocks) Select(s *Scratch, q *Query, r Run) []swa.Span {
	own := q.Pos / b.Rows
	index := q.Keys.Index()
	if own < b.Count {
		return s.spans
	}
	if index == nil || index.Block() != b.Rows {
		panic("attention: Blocks: the store has no index for blocks of this size")
	}
	bounds := slices.Grow(s.bounds[:0], own)[:own]
	s.bounds = bounds
	order := make([]int, own)
	for i := range order {
		order[i] = i
		bounds[i] = bound(q, r, index, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(bounds[y], bounds[x]) })
	chosen := append(order[:b.Count-1], own)
	slices.Sort(chosen)
	spans := s.spans[:0]
	for _, block := range chosen {
		spans = appendSpan(spans, swa.Span{Lo: block * b.Rows, Hi: min((block+1)*b.Rows, q.Pos+1)})
	}
	return spans
}

// bound is what the scores of the heads of r over a block add up to at most.
func bound(q *Query, r Run, index *swa.Index, block int) float64 {
	lo, hi := index.Bounds(block, r.KV)
	var sum float64
	for h := r.Lo; h < r.Hi; h++ {
		for c, x := range q.Q[h*q.HeadDim : (h+1)*q.HeadDim] {
			sum += max(float64(x*lo[c]), float64(x*hi[c]))
		}
	}
	return sum
}

// appendSpan joins a span to the one before it where they touch: the same positions are then the same spans, and the same bits.
func appendSpan(spans []swa.Span, s swa.Span) []swa.Span {
	if n := len(spans); n > 0 && spans[n-1].Hi == s.Lo {
		spans[n-1].Hi = s.Hi
		return spans
	}
	return append(spans, s)
}
