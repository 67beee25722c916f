package anesim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
)

// session makes the rows of one experiment: every chunk timed by rule, times a factor.
func session(t testing.TB, name, layout string, context int, timed func(p *chunking.Plan, i int) float64) []Measurement {
	m := e2b(t)
	proto := Measurement{Experiment: name, Device: "Phone", Model: fitModel, KVMode: fitKVMode, Layout: layout, Context: context, QueryTokens: 1,
		WeightBits: 4, GroupSize: 32, ColdWarm: "warm", Quality: "A", Timed: true, Note: "copyback=sync"}
	l, err := proto.layout(m)
	require.NoError(t, err)
	p, err := l.Plan(m)
	require.NoError(t, err)
	var rows []Measurement
	var sum float64
	for i, c := range p.Chunks {
		r := proto
		r.Line, r.Component, r.Lo, r.Hi, r.HasHead, r.Seconds = len(rows)+2, fmt.Sprint(i+1), c.Lo, c.Hi, c.Head, timed(p, i)
		sum += r.Seconds
		rows = append(rows, r)
	}
	step := proto
	step.Line, step.Component, step.Seconds = len(rows)+2, "step", sum+0.75e-3
	return append(rows, step)
}

var layouts = []struct {
	text    string
	context int
}{
	{"0-7|8-14|15-24|25-34+head", 2048}, {"0-7|8-24|25-34+head", 2048}, {"0-14|15-34+head", 2048}, {"0-14|15-24|25-34+head", 4096},
	{"0-4|5-14|15-19|20-34+head", 8192}, {"0-13|14-20|21-34+head", 512},
}

// by is a rule that times chunks with a device's constants, sync copies, a session factor and noise.
func by(d Device, factor func() float64, noise func() float64) func() func(*chunking.Plan, int) float64 {
	return func() func(*chunking.Plan, int) float64 {
		f := factor()
		return func(p *chunking.Plan, i int) float64 {
			q := planQuantities(p, CopyBackSync)[i]
			return d.seconds(&q) * f * noise()
		}
	}
}

func one() float64 { return 1 }

func sessionsBy(t testing.TB, rule func() func(*chunking.Plan, int) float64) []Measurement {
	var rows []Measurement
	for i, l := range layouts {
		rows = append(rows, session(t, fmt.Sprintf("e%d", i), l.text, l.context, rule())...)
	}
	return rows
}

func options(t testing.TB, d Device) Options {
	return Options{Devices: []Device{d}, Models: map[string]*chunking.Model{fitModel: e2b(t)}}
}

// truth differs from phone()'s priors.
func truth() Device {
	d := phone()
	for i := range chunkTerms {
		d.Constants[i].Value *= 1 + 0.1*float64(int(i)%5-2)
	}
	return d
}

// invariant: rows made from constants give those constants back, but for the pull of the priors.
func TestCalibrateFindsTheConstants(t *testing.T) {
	c, err := Calibrate(sessionsBy(t, by(truth(), one, one)), options(t, phone()))
	require.NoError(t, err)
	want := truth()
	for i := range chunkTerms {
		got := c.Devices[0].Constants[i]
		require.InDelta(t, want.Constants[i].Value, got.Value, 1.5*got.SD, i)
		require.Less(t, got.SD, got.Prior.SD, i)
	}
	require.Less(t, float64(c.Fit.ChunkRaw.Max), 0.5)
	require.Less(t, float64(c.LOO.SumRaw.Max), 1.5)
	require.InDelta(t, 0.75e-3, c.Devices[0].hostSeconds(2048), 0.2e-3)
}

// invariant: a session that is slower as a whole keeps its scaled errors, and its factor is found.
func TestCalibrateForgivesTheSession(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	factors := []float64{1.04, 0.97, 1.01, 0.96, 1.03, 0.99}
	i := -1
	factor := func() float64 { i++; return factors[i] }
	noise := func() float64 { return 1 + 0.005*rng.NormFloat64() }
	c, err := Calibrate(sessionsBy(t, by(truth(), factor, noise)), options(t, phone()))
	require.NoError(t, err)
	for k, s := range c.Sessions {
		require.InDelta(t, factors[k], s.Scale, 0.025, s.Experiment)
	}
	require.Less(t, float64(c.Fit.ChunkScaled.Median), 0.7)
	require.Greater(t, float64(c.Fit.SumRaw.Max), 1.0)
	require.Equal(t, 19, c.Fit.ChunkRaw.N) // 4+3+2+3+4+3
	require.Equal(t, 17, c.Fit.ChunkScaled.N)
	require.Equal(t, 6, c.Fit.SumRaw.N)
	require.Equal(t, 5, c.Fit.SumScaled.N)
}

// invariant: neither the order of the rows nor rows that cannot be fitted move a constant.
func TestCalibrateIgnoresOrderAndOtherRows(t *testing.T) {
	rows := sessionsBy(t, by(truth(), one, one))
	a, err := Calibrate(rows, options(t, phone()))
	require.NoError(t, err)
	shuffled := append([]Measurement{}, rows...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for i, change := range []func(*Measurement){
		func(m *Measurement) { m.Quality = "X" }, func(m *Measurement) { m.ColdWarm = "cold" }, func(m *Measurement) { m.Model = "gemma-4-e4b" },
		func(m *Measurement) { m.KVMode = "mlstate-dual" }, func(m *Measurement) { m.QueryTokens = 3 }, func(m *Measurement) { m.Device = "Toaster" },
		func(m *Measurement) { m.Context = 0 }, func(m *Measurement) { m.Component = "emb" },
	} {
		odd := rows[0]
		odd.Line, odd.Experiment, odd.Seconds = 1000+i, "odd", 1
		change(&odd)
		shuffled = append(shuffled, odd)
	}
	b, err := Calibrate(shuffled, options(t, phone()))
	require.NoError(t, err)
	for i := range NumTerms {
		require.InDelta(t, a.Devices[0].Constants[i].Value, b.Devices[0].Constants[i].Value, 1e-9*a.Devices[0].Constants[i].SD, i)
	}
	reasons := map[string][]int{}
	n := 0
	for _, e := range b.Excluded {
		reasons[e.Reason] = e.Lines
		n += e.Rows
	}
	require.Equal(t, []int{1005}, reasons["no device file for Toaster"])
	require.Equal(t, []int{1000}, reasons["quality X"])
	require.Equal(t, []int{1006}, reasons["no context given"])
	require.Equal(t, len(shuffled), n+b.Fit.ChunkRaw.N, "a row is neither fitted nor excluded")
}

// hand: a chunk cut that the model forbids is listed with its reason.
func TestCalibrateListsUnplannableRows(t *testing.T) {
	rows := sessionsBy(t, by(truth(), one, one))
	bad := rows[0]
	bad.Line, bad.Experiment, bad.Layout = 99, "bad", "0-7|8-14"
	c, err := Calibrate(append(rows, bad), options(t, phone()))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(c.Excluded[1].Reason, "no plan: layout"), c.Excluded[1].Reason)
	require.Equal(t, []int{99}, c.Excluded[1].Lines)

	_, err = Calibrate([]Measurement{bad}, options(t, phone()))
	require.ErrorContains(t, err, "no row to fit")
}

func TestAddScore(t *testing.T) { // hand
	rows := sessionsBy(t, by(truth(), one, one))
	c, err := Calibrate(rows, options(t, phone()))
	require.NoError(t, err)
	fresh := session(t, "fresh", "0-9|10-20|21-34+head", 2048, by(truth(), one, one)())
	c.AddScore(append(fresh, rows[0]))
	require.Equal(t, 3, c.Score.ChunkRaw.N)
	require.Equal(t, 1, c.Score.SumRaw.N)
	require.Less(t, float64(c.Score.ChunkRaw.Max), 1.0)
	require.Equal(t, 3, c.Baselines["ms_per_layer"].Score.ChunkRaw.N)
	last := c.Excluded[len(c.Excluded)-1]
	require.Equal(t, ExcludedClass{Set: "score", Reason: "whole step (host time is fitted on it)", Rows: 1, Lines: []int{5}}, last)
	require.Equal(t, "experiment was fitted on", c.Excluded[len(c.Excluded)-2].Reason)
	require.Equal(t, Percent(100), c.Score.Coverage90)
	require.False(t, finite(float64(c.Baselines["ms_per_layer"].Score.Coverage90)), "a baseline has no interval")
}

// hand: the keys that scripts read.
func TestReportKeys(t *testing.T) {
	c, err := Calibrate(sessionsBy(t, by(truth(), one, one)), options(t, phone()))
	require.NoError(t, err)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &top))
	require.Equal(t, `"1.0"`, string(top["format_version"]))
	for _, key := range []string{"fit", "loo", "score"} {
		var acc map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(top[key], &acc))
		require.Contains(t, acc, "coverage90_pct")
		for _, part := range []string{"chunk_raw", "chunk_scaled", "sum_raw", "sum_scaled"} {
			var stats map[string]*float64
			require.NoError(t, json.Unmarshal(acc[part], &stats))
			for _, stat := range []string{"n", "median_pct", "p90_pct", "max_pct"} {
				require.Contains(t, stats, stat, key)
			}
			require.Equal(t, key == "score", stats["median_pct"] == nil, "nothing was scored, so there is no median")
		}
	}
	var baselines map[string]map[string]any
	require.NoError(t, json.Unmarshal(top["baselines"], &baselines))
	require.Len(t, baselines, 2)
	for _, b := range baselines {
		require.Contains(t, b, "loo")
	}
	require.Contains(t, top, "coverage90_pct")
	require.Contains(t, string(top["rows"]), `"set":"loo"`)
}

// hand: medians and sums of three rows 10 % high, 5 % low and 2 % low: ratios 1/1.1, 1/0.95, 1/0.98.
func TestAccuracyByHand(t *testing.T) {
	rows := make([]sample, 3)
	for i, over := range []float64{1.10, 0.95, 0.98} {
		rows[i] = sample{Measurement: Measurement{Experiment: "e", Component: fmt.Sprint(i + 1), Layout: "a|b|c", Seconds: 1}, plan: planOf(t, e2b(t), "@3way"), chunk: i}
		rows[i].q[Dispatch] = over
	}
	a := accuracyOf(residuals("fit", func(s *sample) (float64, Range) { return s.q[Dispatch], Range{} }, rows))
	require.InDelta(t, 5, float64(a.ChunkRaw.Median), 1e-9)
	require.InDelta(t, 10, float64(a.ChunkRaw.Max), 1e-9)
	require.InDelta(t, 9, float64(a.ChunkRaw.P90), 1e-9) // 0.8 of the way from 5 to 10
	require.InDelta(t, 1, float64(a.SumRaw.Max), 1e-9)   // 3.03/3
	// Scale 1/0.98: errors 12.24 %, 3.06 %, 0.
	require.InDelta(t, 100*(1-0.95/0.98), float64(a.ChunkScaled.Median), 1e-9)
	require.InDelta(t, 100*(1.1/0.98-1), float64(a.ChunkScaled.Max), 1e-9)
	require.InDelta(t, 100*(1.01/0.98-1), float64(a.SumScaled.Max), 1e-9)
}
