package anesim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// fp16 rounds to the nearest half.
func fp16(x float32) float32 { return half.F16ToF32(half.F32ToF16(x)) }

// softmax of fp16 scores plus fp16 masks, every step rounded as an fp16 graph rounds it.
func softmax(scores []float32, masks ...[]float32) []float32 {
	sums := make([]float32, len(scores))
	peak := float32(math.Inf(-1))
	for i, s := range scores {
		sum := float32(0)
		for _, m := range masks {
			sum = fp16(sum + m[i])
		}
		sums[i] = fp16(s + sum)
		peak = max(peak, sums[i])
	}
	var total float32
	for i := range sums {
		sums[i] = fp16(float32(math.Exp(float64(fp16(sums[i] - peak)))))
		total += sums[i]
	}
	for i := range sums {
		sums[i] = fp16(sums[i] / total)
	}
	return sums
}

// SIM-07: advice on what to fill a mask with, run instead of copied. Eight heads of 512 scores from U(−10, 10), 200 of them
// open: −inf and −10⁴ give the same fp16 softmax bit for bit, in five seeds; so do two masks that add up to −2·10⁴, or two of
// −65504, which add up to −inf in fp16. A row without an open key is where they part, and no graph here has one.
func TestSIM07MaskFillsAgree(t *testing.T) { // invariant
	const keys, open = 512, 200
	fill := func(x float32) []float32 {
		m := make([]float32, keys)
		for i := open; i < keys; i++ {
			m[i] = x
		}
		return m
	}
	infinite := fill(float32(math.Inf(-1)))
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		for range 8 {
			scores := make([]float32, keys)
			for i := range scores {
				scores[i] = fp16(20*rng.Float32() - 10)
			}
			want := softmax(scores, infinite)
			require.Equal(t, want, softmax(scores, fill(-1e4)))
			require.Equal(t, want, softmax(scores, fill(-1e4), fill(-1e4)))
			require.Equal(t, want, softmax(scores, fill(-65504), fill(-65504)))
		}
	}
	require.Equal(t, float32(math.Inf(-1)), fp16(fp16(-65504)+fp16(-65504)))
	closed := softmax([]float32{1, 2}, []float32{float32(math.Inf(-1)), float32(math.Inf(-1))})
	require.True(t, math.IsNaN(float64(closed[0])), "a row without a key has no softmax under −inf")
}
