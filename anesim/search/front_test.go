package search

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
)

func TestFrontByHand(t *testing.T) { // hand
	points := []Point{
		{Cost: [4]float64{1, 5, 5, 5}, ID: 0},
		{Cost: [4]float64{2, 5, 5, 5}, ID: 1}, // slower than 0 and no better
		{Cost: [4]float64{2, 4, 5, 5}, ID: 2},
		{Cost: [4]float64{2, 4, 5, 5}, ID: 3}, // the same as 2
		{Cost: [4]float64{9, 9, 9, 1}, ID: 4},
		{Cost: [4]float64{1, 5, 5, 6}, ID: 5}, // as fast as 0, larger
	}
	var ids []int
	for _, p := range Front(points) {
		ids = append(ids, p.ID)
	}
	require.Equal(t, []int{0, 2, 4}, ids)
	require.Empty(t, Front(nil))
}

// oracle: every pair compared.
func TestFrontEqualsAllPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 17))
	for range 50 {
		points := make([]Point, 1+rng.IntN(200))
		for i := range points {
			points[i].ID = i
			for k := range points[i].Cost {
				points[i].Cost[k] = float64(rng.IntN(7)) // coarse, so that ties are common
			}
		}
		want := map[[NumObjectives]float64]bool{}
		for i := range points {
			beaten := false
			for j := range points {
				beaten = beaten || points[j].dominates(&points[i])
			}
			if !beaten {
				want[points[i].Cost] = true
			}
		}
		got := Front(points)
		require.Len(t, got, len(want))
		for _, p := range got {
			require.True(t, want[p.Cost])
		}
	}
}

// invariant: a million points take seconds.
func TestFrontOfAMillion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	points := make([]Point, 1_000_000)
	for i := range points {
		points[i].ID = i
		for k := range points[i].Cost {
			points[i].Cost[k] = rng.Float64()
		}
	}
	start := time.Now()
	front := Front(points)
	t.Logf("%d of 10^6 points in %v", len(front), time.Since(start))
	require.Greater(t, len(front), 100)
}

// invariant: fronts of a small grid hold what no candidate beats, and the fastest of them is the optimum.
func TestExplore(t *testing.T) {
	m := model(t, 14, 7)
	g := Grid{Model: m, Device: device(t, "iphone17pro"), MinCuts: 1, MaxCuts: 4, Prompt: anesim.Prompt{Tokens: 100, Rows: 512},
		Variants: []Variant{{"int4g32", "", 2048}, {"int8g32", "", 2048}, {"int4g32", "sliding:1024", 8192}}}
	got, err := Explore(g)
	require.NoError(t, err)
	require.Equal(t, 3*(1+13+78+286), got.Points)
	require.Len(t, got.Variants, 3)
	for v, front := range got.Variants {
		require.NotEmpty(t, front)
		t.Logf("%s: %d on the front, fastest %s", v, len(front), front[0].Layout)
		for i := range front {
			for j := range front {
				require.False(t, front[i].Point.dominates(&front[j].Point))
			}
		}
	}
	require.NotEmpty(t, got.All)

	best, err := Best(Request{Model: m, Device: g.Device})
	require.NoError(t, err)
	require.LessOrEqual(t, len(best.Layout.Cuts), 4)
	require.InDelta(t, best.Seconds, got.Variants[g.Variants[0]][0].Point.Cost[TimePerToken], 1e-12)
	_, err = Explore(Grid{Model: m, Device: g.Device, MaxCuts: 1, Variants: []Variant{{"int5x", "", 2048}}})
	require.Error(t, err)
}

// BenchmarkFront keeps the best of a million random points.
func BenchmarkFront(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	points := make([]Point, 1_000_000)
	for b.Loop() {
		b.StopTimer()
		for i := range points {
			for k := range points[i].Cost {
				points[i].Cost[k] = rng.Float64()
			}
		}
		b.StartTimer()
		Front(points)
	}
}
