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
	KVHeads int       // K; H is a multiple
	Keys    swa.View
	Values  swa.View
	Policy  Policy
	Groups  []HeadGroup // of the policy, resolved once
}

// Scratch is the working memory of one goroutine.
type Scratch struct {
	scores []float32
	spans  []swa.Span
}

// Probs receives the attention probabilities of one head: p[i] belongs to the i-th position of spans. It must not keep them.
type Probs func(head int, p []float32, spans []swa.Span)

// Attend computes softmax(q·Kᵀ)·V for every head over what the policy shows (scale 1.0: Gemma 4 norms q and k). A head that
// sees nothing gives zeros. probs may be nil.
func Attend(a arith.Arithmetic, q Query, s *Scratch, probs Probs) {
	perKV := len(q.Q) / q.HeadDim / q.KVHeads
	for g, group := range q.Groups {
		s.spans = q.Policy.Visible(s.spans[:0], g, q.Pos)
		for lo := group.Lo; lo < group.Hi; {
			hi := min(group.Hi, (lo/perKV+1)*perKV) // heads of the group that read one KV head
			q.heads(a, s, [2]int{lo, hi}, probs)
			lo = hi
		}
	}
}

// heads runs query heads [lo, hi), which see s.spans and read one KV head.
func (q *Query) heads(a arith.Arithmetic, s *Scratch, r [2]int, probs Probs) {
	d, n := q.HeadDim, swa.Count(s.spans)
	perKV := len(q.Q) / d / q.KVHeads
	p, kv := s.Room((r[1]-r[0])*n), r[0]/perKV
	a.Scores(p, q.Q[r[0]*d:r[1]*d], q.Keys.Head(kv), s.spans)
	for h := r[0]; h < r[1]; h++ {
		row := p[(h-r[0])*n:][:n]
		a.Softmax(row, s.spans)
		if probs != nil {
			probs(h, row, s.spans)
		}
	}
	a.Mix(q.Out[r[0]*d:r[1]*d], p, q.Values.Head(kv), s.spans)
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
