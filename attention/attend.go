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
	heads := len(q.Q) / q.HeadDim
	perKV := heads / q.KVHeads
	for g, group := range q.Groups {
		s.spans = q.Policy.Visible(s.spans[:0], g, q.Pos)
		p := s.room(swa.Count(s.spans))
		for h := group.Lo; h < group.Hi; h++ {
			a.Scores(p, q.Q[h*q.HeadDim:(h+1)*q.HeadDim], q.Keys.Head(h/perKV), s.spans)
			a.Softmax(p, s.spans)
			if probs != nil {
				probs(h, p, s.spans)
			}
			a.Mix(q.Out[h*q.HeadDim:(h+1)*q.HeadDim], p, q.Values.Head(h/perKV), s.spans)
		}
	}
}

// room returns a buffer for n scores, grown in large steps so that a growing context seldom allocates.
func (s *Scratch) room(n int) []float32 {
	if cap(s.scores) < n {
		s.scores = make([]float32, n, max(2*n, 64))
	}
	return s.scores[:n]
}

// Reserve makes room for a context of n positions, so that later calls allocate nothing.
func (s *Scratch) Reserve(n int) {
	s.room(n)
	if s.spans == nil {
		s.spans = make([]swa.Span, 0, 4)
	}
}
