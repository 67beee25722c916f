package proof

import (
	"context"
	"iter"
	"math"

	"anelab/gemma4"
	"anelab/parity"
)

// observer passes taps on and takes note of what goldens say about them as a whole: the tokens that greedy decoding would
// choose, and how loud every layer is for every token of the prompt.
type observer struct {
	parity.Backend
	prompt int       // tokens
	Tokens []int     // argmax of the logits that follow the prompt, then of each step
	RMS    []float32 // [L, T] if the prompt came in one call; else call by call
	calls  int       // that had tokens of the prompt
}

// Run implements [parity.Backend].
func (o *observer) Run(ctx context.Context, c parity.Case) iter.Seq2[parity.Tap, error] {
	return func(yield func(parity.Tap, error) bool) {
		for t, err := range o.Backend.Run(ctx, c) {
			if err == nil {
				o.note(t)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func (o *observer) note(t parity.Tap) {
	rows := 0
	if len(t.Shape) > 0 {
		rows = t.Shape[0]
	}
	switch {
	case t.Point == gemma4.PointEmbeds && t.First < o.prompt:
		o.calls++
	case t.Point == gemma4.PointHidden && t.First < o.prompt:
		o.RMS = appendRMS(o.RMS, t.Data, t.Shape[1])
	case t.Point == gemma4.PointLogits && t.First+rows >= o.prompt:
		v := t.Shape[1]
		o.Tokens = append(o.Tokens, gemma4.Argmax(t.Data[(rows-1)*v:]))
	}
}

func appendRMS(rms, x []float32, width int) []float32 {
	for i := 0; i < len(x); i += width {
		sum := 0.0
		for _, v := range x[i : i+width] {
			sum += float64(v) * float64(v)
		}
		rms = append(rms, float32(math.Sqrt(sum/float64(width))))
	}
	return rms
}
