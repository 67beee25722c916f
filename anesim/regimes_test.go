package anesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/chunking"
)

func planned(t testing.TB, layout string) *chunking.Plan {
	return plannedFor(t, model(t), layout)
}

func plannedFor(t testing.TB, m *chunking.Model, layout string) *chunking.Plan {
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

func inside(r anesim.Range, x float64) bool { return r.Lo <= x && x <= r.Hi }

// oracle: the prefill sessions of the phone, ends of a 348-token and a 10-token prompt in graphs of 512 rows.
func TestPrefillOnThePhone(t *testing.T) {
	d := device(t, "iphone17pro")
	for _, c := range []struct {
		tokens  int
		seconds float64
	}{{348, 560.1e-3}, {10, 75.6e-3}} {
		x := anesim.PredictPrefill(planned(t, "@4way"), d, anesim.Prompt{Tokens: c.tokens, Rows: 512})
		t.Logf("%d tokens: %.0f ms (%.0f–%.0f), measured %.0f", c.tokens, 1e3*x.TimeS, 1e3*x.TimeRange.Lo, 1e3*x.TimeRange.Hi, 1e3*c.seconds)
		require.True(t, inside(x.TimeRange, c.seconds))
		require.InEpsilon(t, c.seconds, x.TimeS, 0.25)
		var sum float64
		for _, p := range x.Parts {
			sum += p.TimeS
			require.NotEmpty(t, p.Source)
		}
		require.InDelta(t, x.TimeS, sum, 1e-12)
	}
}

// hand: which parts a prompt has.
func TestPrefillParts(t *testing.T) {
	d, p := device(t, "iphone17pro"), planned(t, "@3way")
	step := anesim.Predict(p, d, anesim.Workload{}).TimeS
	names := func(x anesim.Prefill) (all []string) {
		for _, part := range x.Parts {
			all = append(all, part.Name)
		}
		return all
	}
	x := anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 100})
	require.Equal(t, []string{"100 tokens through decode"}, names(x))
	require.InDelta(t, 100*step, x.TimeS, 1e-9)
	x = anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 600, Rows: 512})
	require.Equal(t, []string{"batch of 512 rows, 512 real, on the Neural Engine", "host: rows in, keys and values out", "88 tokens through decode"}, names(x))
	x = anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 600, Rows: 512, Cached: 500})
	require.Equal(t, []string{"restore the prefix", "100 tokens through decode"}, names(x))
	for _, cached := range []int{63, 600} { // too short; the whole prompt
		x = anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 600, Rows: 512, Cached: cached})
		require.Contains(t, x.Notes[0], "is not used")
		require.Len(t, x.Parts, 3)
	}
	x = anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 3000, Rows: 512})
	require.Contains(t, x.Notes[0], "does not fit")
}

// oracle: what was seen of the GPU, 9.7 times slower on one Mac, 3.6 times faster on another: the range holds both.
func TestGPUPrefillIsWide(t *testing.T) {
	d, p := device(t, "mac"), planned(t, "@4way")
	ane := anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 400, Rows: 512})
	gpu := anesim.PredictPrefill(p, d, anesim.Prompt{Tokens: 400, Rows: 512, Engine: anesim.EngineGPU})
	require.True(t, inside(gpu.Parts[0].Range, 9*ane.Parts[0].TimeS))
	require.True(t, inside(gpu.Parts[0].Range, ane.Parts[0].TimeS/2))
}

// oracle: prefill sweep of the Mac; a part of chunk 1 cannot be asked for, so the whole is held against 25.0 ms at N = 64.
func TestPrefillOnTheMac(t *testing.T) {
	x := anesim.PredictPrefill(planned(t, "@4way"), device(t, "mac"), anesim.Prompt{Tokens: 64, Rows: 64})
	t.Logf("%.1f ms in the batch", 1e3*x.Parts[0].TimeS)
	require.True(t, inside(x.Parts[0].Range, 25.0e-3))
}

// oracle: verify calls of effects.csv.
func TestVerifyCalls(t *testing.T) {
	for _, c := range []struct {
		layout, device string
		tokens         int
		seconds        float64
	}{
		{"@4way", "iphone17pro", 3, 31.5e-3}, {"@4way", "mac", 3, 32.08e-3}, {"@4way", "mac", 8, 28.9e-3}, {"@3way", "mac", 8, 29.8e-3},
	} {
		s, r := anesim.VerifySeconds(planned(t, c.layout), device(t, c.device), c.tokens)
		t.Logf("%s %s T=%d: %.1f ms (%.1f–%.1f), measured %.1f", c.device, c.layout, c.tokens, 1e3*s, 1e3*r.Lo, 1e3*r.Hi, 1e3*c.seconds)
		require.True(t, inside(r, c.seconds))
		require.InEpsilon(t, c.seconds, s, 0.10)
	}
	one, r1 := anesim.VerifySeconds(planned(t, "@3way"), device(t, "mac"), 1)
	decode := predict(t, "@3way", "mac", anesim.Workload{})
	require.Equal(t, decode.TimeS, one)
	require.Equal(t, decode.TimeRange, r1)
	many, r64 := anesim.VerifySeconds(planned(t, "@3way"), device(t, "mac"), 64)
	require.GreaterOrEqual(t, many, one)
	require.Greater(t, (r64.Hi-r64.Lo)/many, 2*(r1.Hi-r1.Lo)/one, "nothing was measured above eight rows")
}

func TestAcceptance(t *testing.T) { // hand
	half := anesim.Acceptance{PerPosition: []float64{0.5}}
	require.InDelta(t, 1.75, half.Tokens(2), 1e-12)                                                                 // 1 + 1/2 + 1/4
	require.InDelta(t, 1+0.8+0.8*0.5, anesim.Acceptance{PerPosition: []float64{0.8, 0.5}}.Tokens(2), 1e-12)         // per position
	require.InDelta(t, 1+0.75+0.75*0.75, anesim.Acceptance{PerPosition: []float64{0.5}, Width: 2}.Tokens(2), 1e-12) // a tree of two: 1 − 1/4
	require.Equal(t, 1.0, half.Tokens(0))
}

// hand: a cycle that costs 1.75 steps with two drafts is even at one half.
func TestBreakEven(t *testing.T) {
	p, d := planned(t, "@3way"), device(t, "mac")
	step := anesim.Predict(p, d, anesim.Workload{}).TimeS
	s := anesim.Speculation{Drafts: 2, DraftSeconds: 0.75 * step, Acceptance: anesim.Acceptance{PerPosition: []float64{0.5}}}
	x, err := anesim.PredictSpeculation(p, d, s)
	require.NoError(t, err)
	require.InDelta(t, 0.5, *x.BreakEven, 1e-9)
	require.InDelta(t, 1.0, x.Gain, 1e-9)
	require.True(t, inside(x.Range, x.TokPerSec))

	// A write-through graph pays a step per accepted draft, so no acceptance is worth a drafter that costs anything.
	s.Commit = anesim.CommitAll
	x, err = anesim.PredictSpeculation(p, d, s)
	require.NoError(t, err)
	require.Nil(t, x.BreakEven)
	require.Less(t, x.Gain, 0.75)

	s = anesim.Speculation{Drafts: 3, DraftSeconds: 0, Acceptance: anesim.Acceptance{PerPosition: []float64{0}}}
	x, err = anesim.PredictSpeculation(p, d, s)
	require.NoError(t, err)
	require.InDelta(t, 0, *x.BreakEven, 1e-9, "a free drafter and a flat verify call lose nothing")

	for _, bad := range []anesim.Speculation{
		{Drafts: 0, Acceptance: anesim.Acceptance{PerPosition: []float64{1}}}, {Drafts: 1}, {Drafts: 1, DraftSeconds: -1, Acceptance: anesim.Acceptance{PerPosition: []float64{1}}},
		{Drafts: 1, Acceptance: anesim.Acceptance{PerPosition: []float64{1.5}}},
	} {
		_, err := anesim.PredictSpeculation(p, d, bad)
		require.Error(t, err)
	}
}

// hand: sizes of spec forward.md §6.1 and §8.3; the wired gigabytes of spec ane.md §0.9 lie between the bounds.
func TestMemory(t *testing.T) {
	m := anesim.MemoryOf(planned(t, "@4way"), anesim.Load{})
	require.Equal(t, int64(402653184+524288+2348810240+524288), m.DiskTables)
	require.Equal(t, int64(1141520966)+m.DiskTables, m.DownloadBytes)
	require.Equal(t, "KV caches", m.Items[1].Name)
	require.Equal(t, int64(25165824), m.Items[1].Bytes)
	require.Equal(t, int64(0), m.Items[3].Bytes, "mapped tables take what is touched")

	two := anesim.MemoryOf(planned(t, "@4way"), anesim.Load{Functions: 2, Tables: anesim.TablesResident})
	require.Equal(t, 2*m.Items[0].Lo, two.Items[0].Lo, "functions share nothing in memory")
	require.Equal(t, m.DownloadBytes, two.DownloadBytes, "and everything on disk")
	require.GreaterOrEqual(t, two.ResidentBytes-m.ResidentBytes, m.Items[0].Lo+m.DiskTables)
	for functions, wired := range map[float64]float64{1: 1.05, 2: 2.09} { // GB of a file of 0.69 GB
		scale := float64(m.Items[0].Lo) / 0.69
		require.LessOrEqual(t, float64(m.Items[0].Lo)*functions/scale, wired)
		require.GreaterOrEqual(t, float64(m.Items[0].Hi)*functions/scale, wired)
	}
	prefill := anesim.MemoryOf(planned(t, "@4way"), anesim.Load{PrefillRows: 512, PrefixBytes: 7})
	require.Greater(t, prefill.ResidentBytes, m.ResidentBytes+m.Items[0].Lo)
	for _, x := range []anesim.Memory{m, two, prefill} {
		var sum int64
		for _, i := range x.Items {
			require.LessOrEqual(t, i.Lo, i.Bytes, i.Name)
			require.LessOrEqual(t, i.Bytes, i.Hi, i.Name)
			require.NotEmpty(t, i.Source)
			sum += i.Bytes
		}
		require.Equal(t, sum, x.ResidentBytes)
		require.LessOrEqual(t, x.WiredBytes, x.ResidentBytes)
	}
}

// oracle: the arithmetic of spec ane.md A8, 31 to 58 mJ per token; the range must be at least that wide.
func TestEnergy(t *testing.T) {
	e := anesim.PredictEnergy(planned(t, "@4way"))
	t.Logf("%.0f–%.0f mJ/token", 1e3*e.Range.Lo, 1e3*e.Range.Hi)
	require.Less(t, e.Range.Lo, 31e-3)
	require.Greater(t, e.Range.Hi, 58e-3)
	require.Contains(t, e.Provenance, "no energy of a phone was measured")
	require.Greater(t, e.JoulesPerToken, anesim.PredictEnergy(planned(t, "@2way")).JoulesPerToken, "fewer calls and ports take less")
}
