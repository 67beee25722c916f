package attention

import (
	"anelab/internal/arith"
	"anelab/swa"
)

// Query is one token's attention in one layer.
type Query struct {
	Pos     int       // absolute position
	Q       []float32 // [H, d], after norm and RoPE
	Out     []float32 // [H, d]
	HeadDim int       // d
	Keys    swa.View
	Values  swa.View
	Policy  Policy
	Runs    []Run // of the policy, resolved once
}

// Scratch is the working memory of one goroutine.
type Scratch struct {
	scores []float32
	spans  []swa.Span
	part   []swa.Span
	bounds []float64
}

// Probs receives the attention probabilities of one head: p[i] belongs to the i-th position of spans. It must not keep them.
type Probs func(head int, p []float32, spans []swa.Span)

// Attend computes softmax(q·Kᵀ)·V for every head over what the policy shows (scale 1.0: Gemma 4 norms q and k). A head that
// sees nothing gives zeros. probs may be nil.
func Attend(a arith.Arithmetic, q Query, s *Scratch, probs Probs) {
	selects, isSelector := As[Selector](q.Policy)
	blocks, isBlockwise := As[Blockwise](q.Policy)
	for _, r := range q.Runs {
		s.spans = q.Policy.Visible(s.spans[:0], r.Group, q.Pos)
		if isSelector {
			s.spans = selects.Select(s, &q, r)
		}
		if probs != nil || !isBlockwise { // whoever looks at probabilities gets those of one softmax
			q.heads(a, s, r, probs)
		}
		if isBlockwise {
			q.blockwise(a, s, r, blocks.BlockRows())
		}
	}
}

// heads runs the heads of r, which see s.spans.
func (q *Query) heads(a arith.Arithmetic, s *Scratch, r Run, probs Probs) {
	d, n := q.HeadDim, swa.Count(s.spans)
	p := s.Room((r.Hi - r.Lo) * n)
	a.Scores(p, q.Q[r.Lo*d:r.Hi*d], q.Keys.Head(r.KV).At(q.Pos), s.spans)
	for h := r.Lo; h < r.Hi; h++ {
		row := p[(h-r.Lo)*n:][:n]
		a.Softmax(row, s.spans)
		if probs != nil {
			probs(h, row, s.spans)
		}
	}
	a.Mix(q.Out[r.Lo*d:r.Hi*d], p, q.Values.Head(r.KV).At(q.Pos), s.spans)
}

// Room returns a buffer of n values, grown in large steps so that a growing context seldom allocates.
func (s *Scratch) Room(n int) []float32 {
	if cap(s.scores) < n {
		s.scores = make([]float32, n, max(2*n, 1024))
	}
	return s.scores[:n]
}

// Slice returns the positions number lo to hi−1 of spans, as spans; valid until the next call.
func (s *Scratch) Slice(spans []swa.Span, lo, hi int) []swa.Span {
	s.spans = s.spans[:0]
	for _, span := range spans {
		if lo < span.Len() && hi > 0 {
			s.spans = append(s.spans, swa.Span{Lo: span.Lo + max(lo, 0), Hi: min(span.Lo+hi, span.Hi)})
		}
		lo, hi = lo-span.Len(), hi-span.Len()
	}
	return s.spans
}
