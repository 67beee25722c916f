package quality

import (
	"context"

	"anelab/gemma4"
)

// depths at which the pair is planted, in percent of the filler.
var depths = []int{0, 25, 50, 75, 100}

// shortest and longest texts of the passkey test, in tokens; the lengths in between double.
const (
	shortest = 64
	longest  = 1 << 14
)

// passkeys asks for one pair planted in plain filler, at one depth of every length that the sequence has filler for: the depths
// take turns from sequence to sequence. The answer is one token, so one prediction decides.
func (r *Runner) passkeys(ctx context.Context, i int, s *Sums) error {
	q := &r.in.Set.Sequences[i]
	depth := depths[i%len(depths)]
	for n := shortest; n <= longest; n *= 2 {
		text, answer, ok := passkeyText(r.in.Set, q, n, depth)
		if !ok {
			return nil
		}
		state, err := r.model.NewState(len(text))
		if err != nil {
			return err
		}
		logits, err := state.Prefill(ctx, text)
		if err != nil {
			return err
		}
		s.cell(n, depth).add(gemma4.Argmax(logits) == answer)
	}
	return nil
}

// passkeyText is n tokens: the head of the sequence, its filler without interruptions, its first pair planted at a depth, and the
// question at the end. A sequence without enough filler makes none.
func passkeyText(set *Set, q *Sequence, n, depth int) (text []int, answer int, ok bool) {
	const head = 2 // start and topic
	if len(q.Questions) == 0 {
		return nil, 0, false
	}
	x := q.Questions[0]
	if x.Value < 2 || x.At < 1 {
		return nil, 0, false
	}
	pair, ask := q.Tokens[x.Value-2:x.Value+1], q.Tokens[x.At-1:x.At+1]
	var filler []int
	for _, id := range q.Tokens[head:] {
		if id >= set.ScoreFrom {
			filler = append(filler, id)
		}
	}
	plain := n - head - len(pair) - len(ask)
	if plain > len(filler) || plain < 1 {
		return nil, 0, false
	}
	at := plain * depth / 100
	text = append(text, q.Tokens[:head]...)
	text = append(text, filler[:at]...)
	text = append(text, pair...)
	text = append(text, filler[at:plain]...)
	return append(text, ask...), x.Answer, true
}
