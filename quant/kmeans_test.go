package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// histogramOf counts fp16 values.
func histogramOf(values []float32) *histogram {
	sorted := make([]float64, len(values))
	for i, x := range values {
		sorted[i] = float64(half.RoundF16(x)) + 0 // −0 is 0
	}
	slices.Sort(sorted)
	h := new(histogram)
	for i, x := range sorted {
		if i > 0 && x == sorted[i-1] {
			h.counts[len(h.counts)-1]++
			continue
		}
		h.values, h.counts = append(h.values, x), append(h.counts, 1)
	}
	return h
}

// exhaustive is the least squared error of all cuttings into at most k runs, for few values.
func exhaustive(h *histogram, k int) float64 {
	if len(h.values) == 0 {
		return 0
	}
	if k == 0 {
		return math.Inf(1)
	}
	least := math.Inf(1)
	for last := range h.values {
		left := &histogram{h.values[:last], h.counts[:last]}
		least = min(least, exhaustive(left, k-1)+spread(h.values[last:], h.counts[last:]))
	}
	return least
}

// spread is the squared error about the mean.
func spread(values, counts []float64) float64 {
	var w, sum, out float64
	for i, x := range values {
		w, sum = w+counts[i], sum+counts[i]*x
	}
	for i, x := range values {
		out += counts[i] * (x - sum/w) * (x - sum/w)
	}
	return out
}

// errorOf is the squared error of a cutting.
func errorOf(h *histogram, starts []int) float64 {
	sum := 0.0
	for k, lo := range starts {
		hi := len(h.values)
		if k+1 < len(starts) {
			hi = starts[k+1]
		}
		if hi > lo {
			sum += spread(h.values[lo:hi], h.counts[lo:hi])
		}
	}
	return sum
}

func TestCutsAreOptimal(t *testing.T) { // oracle: every cutting tried
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		values := make([]float32, 1+r.IntN(11))
		for i := range values {
			values[i] = float32(r.IntN(40) - 20)
		}
		h := histogramOf(values)
		for k := 1; k <= 5; k++ {
			var c cutter
			starts := c.cuts(h, k)
			require.InDelta(t, exhaustive(h, k), errorOf(h, starts), 1e-9, "%v into %d: %v", h, k, starts)
			require.InDelta(t, exhaustive(h, k), errorOf(h, c.anyCuts(h, k)), 1e-9)
		}
	}
}

// densities have different shapes: what a checkpoint holds, and what is hard for a search that guesses.
var densities = map[string]func(r *rand.Rand) float64{
	"gauss":       func(r *rand.Rand) float64 { return r.NormFloat64() * 0.02 },
	"laplace":     func(r *rand.Rand) float64 { return r.ExpFloat64() * float64(r.IntN(2)*2-1) * 0.02 },
	"bf16":        func(r *rand.Rand) float64 { return float64(half.RoundBF16(float32(r.NormFloat64() * 0.02))) },
	"two heaps":   func(r *rand.Rand) float64 { return r.NormFloat64()*0.01 + float64(r.IntN(2)) },
	"far outlier": func(r *rand.Rand) float64 { return r.NormFloat64() * []float64{0.02, 30000}[r.IntN(200)/199] },
	"grid":        func(r *rand.Rand) float64 { return float64(r.IntN(301)-150) / 64 },
	"subnormal":   func(r *rand.Rand) float64 { return r.NormFloat64() * 1e-6 },
}

// Invariant: where the shortest path vouches for its cuts they are those of kmeans1d's programme.
func TestCertifiedCutsAreTheConverters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	vouched := 0
	for name, density := range densities {
		values := make([]float32, 4000)
		for i := range values {
			values[i] = float32(density(r))
		}
		h := histogramOf(values)
		for _, k := range []int{2, 3, 4, 8, 16, 64} {
			var c cutter
			exact := errorOf(h, c.cuts(h, k))
			require.InDelta(t, exact, errorOf(h, c.anyCuts(h, k)), 1e-12*c.wxx[len(h.values)], "%s into %d", name, k)
			got, ok := c.certified(min(k, len(h.values)))
			if !ok {
				continue
			}
			vouched++
			require.Equal(t, c.layers.cuts(&c.sums, len(h.values), k), got, "%s into %d", name, k)
		}
	}
	require.Greater(t, vouched, len(densities)*4, "the short way must be the usual one")
}

// Hand: 0 is as near to −1 as to 1, and no rounding decides between {−1, 0}, {1} and {−1}, {0, 1}: nobody may vouch.
func TestTiesAreNotCertified(t *testing.T) {
	h := &histogram{values: []float64{-1, 0, 1}, counts: []float64{1, 1, 1}}
	var c cutter
	c.reset(h)
	_, ok := c.certified(2)
	require.False(t, ok)
	require.Equal(t, []int{0, 1}, c.cuts(h, 2))

	c.reset(&histogram{values: []float64{3}, counts: []float64{9}})
	_, ok = c.certified(1)
	require.False(t, ok, "nothing to divide")
}

func TestFewerValuesThanEntries(t *testing.T) { // hand: every value is an entry, the rest stays 0 at the end
	h := histogramOf([]float32{0.5, -2, 0.5, 7})
	var c chooser
	table := make([]float32, 8)
	require.NoError(t, c.choose(table, h, exactFrom))
	require.Equal(t, []float32{-2, 0.5, 7, 0, 0, 0, 0, 0}, table)
	require.Equal(t, []byte{0, 1, 2}, c.index)
	require.NoError(t, c.choose(table, h, 1))
	require.Equal(t, []float32{-2, 0.5, 7, 0, 0, 0, 0, 0}, table)
}

// Hand: just above a tie of fp16, float32 sees the tie itself and goes to the even neighbour below.
func TestMeansRoundOnce(t *testing.T) {
	tie := 1 + 0x1p-11
	for x, want := range map[float64]uint16{
		tie: 0x3c00, tie + 0x1p-40: 0x3c01, tie - 0x1p-40: 0x3c00, -tie - 0x1p-40: 0xbc01, -tie + 0x1p-40: 0xbc00,
		1 + 0x1.8p-10: 0x3c02, 1 + 0x1.8p-10 - 0x1p-40: 0x3c01, 0: 0, 0x1p-25: 0, 0x1p-25 + 0x1p-60: 1, 65519.999999: 0x7bff, 65520: 0x7c00,
	} {
		require.Equal(t, want, f64ToF16(x), "%b", x)
	}
}

func FuzzCuts(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, uint8(2))
	f.Add([]byte{0, 0, 0, 0}, uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, entries uint8) {
		var values []float32
		for ; len(data) >= 2 && len(values) < 600; data = data[2:] {
			if x := half.F16ToF32(uint16(data[0]) | uint16(data[1])<<8); x-x == 0 {
				values = append(values, x)
			}
		}
		if len(values) == 0 {
			return
		}
		h, k := histogramOf(values), 1+int(entries)%32
		var c, d cutter
		starts := c.cuts(h, k)
		d.reset(h)
		require.Equal(t, d.layers.cuts(&d.sums, len(h.values), min(k, len(h.values))), starts)
		require.True(t, slices.IsSorted(starts))
		require.Zero(t, starts[0])
	})
}
