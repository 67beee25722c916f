package quality

import (
	"fmt"
	"math"
)

// bounds are the least distances of the buckets; the last one is open.
var bounds = [...]int{0, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 16384}

// Buckets is the number of distance buckets.
const Buckets = len(bounds)

// bucketOf is the bucket of a distance.
func bucketOf(distance int) int {
	for i := len(bounds) - 1; i > 0; i-- {
		if distance >= bounds[i] {
			return i
		}
	}
	return 0
}

// BucketName is the range of distances of a bucket: "32-63".
func BucketName(i int) string {
	if i == len(bounds)-1 {
		return fmt.Sprintf("%d-", bounds[i])
	}
	return fmt.Sprintf("%d-%d", bounds[i], bounds[i+1]-1)
}

// Count is how many of some were right.
type Count struct {
	Right int `json:"right"`
	Of    int `json:"of"`
}

func (c *Count) add(right bool) {
	c.Of++
	if right {
		c.Right++
	}
}

// Share is the part that was right; NaN of none.
func (c Count) Share() float64 { return float64(c.Right) / float64(c.Of) }

func (c Count) plus(o Count) Count { return Count{c.Right + o.Right, c.Of + o.Of} }

// Cell is a depth of a passkey test: how far into a text of so many tokens the pair was planted.
type Cell struct {
	Tokens       int `json:"tokens"`
	DepthPercent int `json:"depth_percent"`
	Count
}

// Sums are what one unit counted, or several of them together. Sums of −ln p are in nats.
type Sums struct {
	Sequences int            `json:"sequences"`
	Recall    [Buckets]Count `json:"recall"` // by distance
	AnswerNLL float64        `json:"answer_nll"`
	Topic     Count          `json:"topic"`
	Passkey   []Cell         `json:"passkey,omitempty"` // by tokens, then depth
	Target    Count          `json:"target"`            // scored targets
	TargetNLL float64        `json:"target_nll"`
	Agree     Count          `json:"agree"` // positions whose argmax is the full model's
	KL        float64        `json:"kl"`    // KL(full ‖ this), summed over positions
}

// Add puts the sums of the next unit to s. Floating-point sums depend on the order, so add units in theirs.
func (s *Sums) Add(o *Sums) {
	s.Sequences += o.Sequences
	for i := range s.Recall {
		s.Recall[i] = s.Recall[i].plus(o.Recall[i])
	}
	s.AnswerNLL += o.AnswerNLL
	s.Topic = s.Topic.plus(o.Topic)
	for _, c := range o.Passkey {
		cell := s.cell(c.Tokens, c.DepthPercent)
		cell.Count = cell.plus(c.Count)
	}
	s.Target = s.Target.plus(o.Target)
	s.TargetNLL += o.TargetNLL
	s.Agree = s.Agree.plus(o.Agree)
	s.KL += o.KL
}

// cell finds or makes the cell of a passkey test, keeping them in order.
func (s *Sums) cell(tokens, depth int) *Cell {
	i := 0
	for ; i < len(s.Passkey); i++ {
		c := &s.Passkey[i]
		if c.Tokens == tokens && c.DepthPercent == depth {
			return c
		}
		if c.Tokens > tokens || c.Tokens == tokens && c.DepthPercent > depth {
			break
		}
	}
	s.Passkey = append(s.Passkey, Cell{})
	copy(s.Passkey[i+1:], s.Passkey[i:])
	s.Passkey[i] = Cell{Tokens: tokens, DepthPercent: depth}
	return &s.Passkey[i]
}

// Figures are shares and means of [Sums]; NaN for what was not counted.
type Figures struct {
	Recall    float64 // share of questions answered
	Far       float64 // the same at distance 32 and more
	AnswerNLL float64 // mean −ln p(answer), nats
	Topic     float64 //
	Passkey   float64 //
	PPL       float64 // exp of the mean −ln p of scored targets
	Top1      float64 // share of scored targets that are the argmax
	Agree     float64 // share of positions
	KL        float64 // mean over positions, nats
}

// farBucket is the first bucket outside a window of 32.
const farBucket = 2

// Figures computes shares and means.
func (s *Sums) Figures() Figures {
	var all, far, key Count
	for i, c := range s.Recall {
		all = all.plus(c)
		if i >= farBucket {
			far = far.plus(c)
		}
	}
	for _, c := range s.Passkey {
		key = key.plus(c.Count)
	}
	return Figures{Recall: all.Share(), Far: far.Share(), AnswerNLL: s.AnswerNLL / float64(all.Of), Topic: s.Topic.Share(), Passkey: key.Share(),
		PPL: math.Exp(s.TargetNLL / float64(s.Target.Of)), Top1: s.Target.Share(), Agree: s.Agree.Share(), KL: s.KL / float64(s.Agree.Of)}
}
