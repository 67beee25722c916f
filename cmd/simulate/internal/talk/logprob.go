package talk

import (
	"cmp"
	"math"
	"slices"
)

// Alternative is a token that could have come, with the logarithm of its probability.
type Alternative struct {
	ID      int
	LogProb float64
}

// logProbs are the logarithms of the model's own probabilities, before any setting of the sampler: of id, and of the n likeliest tokens.
func logProbs(logits []float32, id, n int) (float64, []Alternative) {
	best := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - best)
	}
	norm := best + math.Log(sum)
	var top []Alternative
	for i, v := range logits {
		p := Alternative{i, float64(v) - norm}
		if len(top) == n && (n == 0 || p.LogProb <= top[n-1].LogProb) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, p, func(a, b Alternative) int { return cmp.Or(cmp.Compare(b.LogProb, a.LogProb), cmp.Compare(a.ID, b.ID)) })
		top = slices.Insert(top, at, p)
		top = top[:min(len(top), n)]
	}
	return float64(logits[id]) - norm, top
}
