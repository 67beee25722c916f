package search

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/gemma4"
)

func space(t testing.TB, from, to int) *Space {
	t.Helper()
	text, err := anelab.Files.ReadFile("testdata/configs/e2b.json")
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig("e2b.json", text)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	d, err := devices.Load("iphone17pro")
	require.NoError(t, err)
	return &Space{Model: m, Device: d, MinParts: from, MaxParts: to}
}

// invariant: the ranking is what sorting all predictions gives.
func TestRankEqualsSorting(t *testing.T) {
	s := space(t, 1, 3)
	s.Untried = true
	r, err := s.Rank(context.Background(), 2048, 7, nil)
	require.NoError(t, err)
	require.Equal(t, 1+34+561, r.Priced)
	require.EqualValues(t, r.Priced, s.Size())

	var times []float64
	for n := 1; n <= 3; n++ {
		for l := range chunking.Enumerate(s.Model, n) {
			l.Context = 2048
			p, err := l.Plan(s.Model)
			require.NoError(t, err)
			if !anesim.Refused(anesim.Check(p, s.Device)) {
				times = append(times, math.Round(1e12*anesim.Predict(p, s.Device, s.Workload).TimeS))
			}
		}
	}
	slices.Sort(times)
	require.Len(t, r.Best, 7)
	for i, b := range r.Best {
		require.Equal(t, i+1, b.Rank)
		require.InDelta(t, times[i], order(b.Quote), 2)
	}
	require.Equal(t, r.Priced-len(times), r.Refused)
	for _, p := range r.Presets {
		if p.Rank == 0 {
			require.Equal(t, "@1way", p.Preset)
			require.NotEmpty(t, p.Refused)
			continue
		}
		least, _ := slices.BinarySearch(times, order(p.Quote)-2) // sums differ in the last bits: ties may fall either way
		most, _ := slices.BinarySearch(times, order(p.Quote)+2)
		require.GreaterOrEqual(t, p.Rank, least+1, p.Preset)
		require.LessOrEqual(t, p.Rank, most+1, p.Preset)
	}
}

// invariant: what a limit warns of is priced and counted, and ranked only on request.
func TestUntriedLayoutsAreCounted(t *testing.T) {
	s := space(t, 2, 2)
	careful, err := s.Rank(context.Background(), 2048, 40, nil)
	require.NoError(t, err)
	s.Untried = true
	all, err := s.Rank(context.Background(), 2048, 40, nil)
	require.NoError(t, err)
	require.Len(t, all.Best, 34)
	require.Len(t, careful.Best, 34-careful.Untried)
	require.Positive(t, careful.Untried)
	require.Zero(t, all.Untried)
	for _, b := range careful.Best {
		require.Equal(t, "yes", b.Verdict())
	}
}

func TestCandidatesNamePresetsAndTheirRefusals(t *testing.T) { // hand: forward.md §4.2–4.5
	names := map[string]string{}
	for c, err := range space(t, 1, 4).Candidates(context.Background(), 512, 0) {
		require.NoError(t, err)
		require.Equal(t, 512, c.Plan.Context)
		if c.Preset != "" {
			l := c.Plan.Layout
			l.Context = 0
			names[c.Preset] = l.String() + " " + c.Verdict()
		}
	}
	require.Equal(t, map[string]string{
		"@4way":  "L0-7 | L8-14 | L15-24 | L25-34+head yes",
		"@3way":  "L0-7 | L8-24 | L25-34+head yes",
		"@topo1": "L0-14 | L15-24 | L25-34+head yes",
		"@2way":  "L0-14 | L15-34+head yes",
		"@1way":  "L0-34+head no",
	}, names)
}

func TestNamedLayoutsAlone(t *testing.T) { // hand
	s := space(t, 0, 0)
	l, err := chunking.Parse("L0-20 w=f16 | L21-34+head", s.Model)
	require.NoError(t, err)
	s.Layouts = []chunking.Layout{l}
	r, err := s.Rank(context.Background(), 2048, 5, nil)
	require.NoError(t, err)
	require.Equal(t, 1, r.Priced)
	require.Empty(t, append(r.Best, Ranked{})[0].Preset)
}

func TestSearchEndsWithItsContext(t *testing.T) { // hand
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := space(t, 1, 4).Rank(ctx, 2048, 5, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// BenchmarkCandidates plans, checks and quotes: layouts/s is what a sweep can stream on one core.
func TestCandidatesSkipsTheFirst(t *testing.T) { // invariant: what is skipped is what would have come first
	s := space(t, 1, 2)
	var all, rest []string
	for c, err := range s.Candidates(context.Background(), 512, 0) {
		require.NoError(t, err)
		all = append(all, c.Plan.Layout.String())
	}
	for c, err := range s.Candidates(context.Background(), 512, 13) {
		require.NoError(t, err)
		rest = append(rest, c.Plan.Layout.String())
	}
	require.Len(t, all, 35)
	require.Equal(t, all[13:], rest)
}

func BenchmarkCandidates(b *testing.B) {
	s := space(b, 5, 5)
	q := anesim.NewQuoter(s.Device, s.Workload)
	n := 0
	for b.Loop() {
		for c, err := range s.Candidates(context.Background(), 2048, 0) {
			if err != nil {
				b.Fatal(err)
			}
			q.Quote(c.Plan)
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "layouts/s")
}
