package anesim

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/shareddata"
)

// hand: sizes of spec forward.md §8.2 and §8.4 at C = 2048; kv13 is 2·512·256·2 B, kv14 2·2048·512·2 B.
func TestQuantities(t *testing.T) {
	p := planOf(t, e2b(t), "L0-7 | L8-14 | L15-24 | L25-34+head")
	const handoff = 524288 + 4194304
	want := []Quantities{
		{Dispatch: 1, WeightStream: 155425552, AttentionOwn: 2048, CopyBackBytes: 11534336, PLEProjection: 1},
		{Dispatch: 1, WeightStream: 133953294, AttentionOwn: 4096, CopyBackBytes: 13631488}, // 5 sliding layers · 1 MiB + 2 full layers · 4 MiB
		{Dispatch: 1, WeightStream: 325275156, AttentionShared: 4096, HandoffBytes: handoff, HandoffCall: 1, HandoffFirst: 1},
		{Dispatch: 1, WeightStream: 526866964, AttentionShared: 4096, HandoffBytes: handoff, HandoffCall: 1},
	}
	require.Equal(t, want, planQuantities(p, CopyBackSync))
	for i := range want {
		want[i][CopyBackBytes] = 0
	}
	require.Equal(t, want, planQuantities(p, CopyBackAsync))
	require.Equal(t, want, planQuantities(p, CopyBackNone))
}

// hand: the first reader is the chunk behind the one that wrote, wherever the cut is.
func TestFirstImport(t *testing.T) {
	m := e2b(t)
	for _, c := range []struct {
		layout string
		first  []bool
	}{
		{"L0-7 | L8-14 | L15-24 | L25-34+head", []bool{false, false, true, false}},
		{"L0-7 | L8-24 | L25-34+head", []bool{false, false, true}},
		{"L0-14 | L15-34+head", []bool{false, true}},
		{"L0-34+head", []bool{false}},
		{"L0-34 | head", []bool{false, false}},
		{"L0-13 | L14-20 | L21-34+head", []bool{false, true, true}}, // chunk 2 reads layer 13 and writes layer 14
	} {
		p := planOf(t, m, c.layout)
		for i, want := range c.first {
			require.Equal(t, want, importsFirst(p, i), "%s chunk %d", c.layout, i)
		}
	}
}

// hand: a full layer that looks at 100 positions is priced for 100.
func TestWindowedFullLayers(t *testing.T) {
	p := planOf(t, e2b(t), "L0-14 | L15-34+head attn=sliding:100")
	q := planQuantities(p, CopyBackNone)
	require.Equal(t, 300.0, q[0][AttentionOwn])
	require.Equal(t, 400.0, q[1][AttentionShared])
}

// hand, milliseconds with the round constants of phone():
//
//	L0-7          0.5 + 1.55425552 + 2.048 + 1                              = 5.10225552
//	L8-14         0.5 + 1.33953294 + 4.096                                  = 5.93553294
//	L15-24        0.5 + 3.25275156 + 2.048 + 0.4718592 + 0.25 + 0.125       = 6.64761076
//	L25-34+head   0.5 + 5.26866964 + 2.048 + 0.4718592 + 0.25               = 8.53852884
//	host          0.75 + 0.2048                                             = 0.9548
func TestPredictByHand(t *testing.T) {
	p := planOf(t, e2b(t), "L0-7 | L8-14 | L15-24 | L25-34+head")
	x := Predict(p, phone(), Workload{})
	want := []float64{5.10225552e-3, 5.93553294e-3, 6.64761076e-3, 8.53852884e-3}
	require.Len(t, x.Chunks, 4)
	sum := 0.9548e-3
	for i, c := range x.Chunks {
		require.InDelta(t, want[i], c.TimeS, 1e-12)
		sum += want[i]
	}
	require.InDelta(t, 0.9548e-3, x.HostTimeS, 1e-12)
	require.InDelta(t, sum, x.TimeS, 1e-12)
	require.InDelta(t, 1/sum, x.TokPerSec, 1e-9)
	require.Equal(t, "attention", x.Chunks[0].BoundBy)
	require.InDelta(t, 2.048/5.10225552, x.Chunks[0].BoundShare, 1e-9)
	require.Equal(t, "weights", x.Chunks[3].BoundBy)

	// A copy of the caches inside the calls costs 20 ps per byte of 25 165 824.
	sync := Predict(p, phone(), Workload{CopyBack: CopyBackSync})
	require.InDelta(t, 25165824*20e-12, sync.TimeS-x.TimeS, 1e-12)
}

// invariant: the sums are sums of the listed terms, and a pricer adds up to the same.
func TestPredictionIsTheSumOfItsTerms(t *testing.T) {
	m, d := e2b(t), phone()
	planner, pricer := chunking.NewPlanner(m), NewPricer(d, Workload{CopyBack: CopyBackSync})
	n := 0
	for l := range chunking.Enumerate(m, 3) {
		if n++; n%7 != 0 {
			continue
		}
		p, err := planner.Plan(l)
		require.NoError(t, err)
		x := Predict(p, d, Workload{CopyBack: CopyBackSync})
		var sum float64
		for _, c := range x.Terms() {
			require.InDelta(t, c.Constant*c.Quantity, c.TimeS, 1e-15)
			sum += c.TimeS
		}
		require.InDelta(t, x.TimeS, sum, 1e-12)
		require.InDelta(t, x.TimeS, pricer.Seconds(p), 1e-12)
		require.Less(t, x.TimeRange.Lo, x.TimeS)
		require.Less(t, x.TimeS, x.TimeRange.Hi)
		require.InDelta(t, 1/x.TimeRange.Hi, x.Range.Lo, 1e-9)
	}
	require.Equal(t, 561, n) // C(34, 2)
}

func TestPricingAllocatesNothing(t *testing.T) { // invariant
	p := planOf(t, e2b(t), "@4way")
	pricer := NewPricer(phone(), Workload{})
	pricer.Seconds(p)
	require.Zero(t, testing.AllocsPerRun(100, func() { pricer.Seconds(p) }))
}

// hand: variance of a sum is quadratic in quantities; with correlation 1 standard deviations add.
func TestVariance(t *testing.T) {
	d := phone()
	q := Quantities{Dispatch: 2, PLEProjection: 3}
	require.InDelta(t, math.Hypot(2*0.25e-3, 3*0.5e-3), math.Sqrt(d.variance(&q)), 1e-12)
	d.Correlation[Dispatch][PLEProjection], d.Correlation[PLEProjection][Dispatch] = 1, 1
	require.InDelta(t, 2*0.25e-3+3*0.5e-3, math.Sqrt(d.variance(&q)), 1e-12)
}

func TestPredictWithoutMeasurements(t *testing.T) { // hand
	x := Predict(planOf(t, e2b(t), "@4way"), phone(), Workload{})
	require.Equal(t, "priors only: no measurement of this device", x.Basis)
	require.Contains(t, x.Warnings[0], "was never measured")
	require.Greater(t, x.TimeRange.Hi/x.TimeRange.Lo, 1.5)
}

// BenchmarkLayouts plans and prices every way to make four chunks: 5984 layouts.
func BenchmarkLayouts(b *testing.B) {
	m := e2b(b)
	planner, pricer := chunking.NewPlanner(m), NewPricer(phone(), Workload{})
	var p chunking.Plan
	n := 0
	for b.Loop() {
		for l := range chunking.Enumerate(m, 4) {
			if err := planner.PlanInto(&p, l); err != nil {
				b.Fatal(err)
			}
			pricer.Seconds(&p)
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "layouts/s")
}

// invariant: a chunk under another attention policy, or of several query tokens, is not the program that was timed.
func TestOtherGraphsWereNotTimed(t *testing.T) {
	d := phone().FromPriors()
	d.Evidence.Models = []ModelEvidence{{Name: fitModel, Layers: 35, HiddenSize: 1536}}
	d.Evidence.Contexts = []ContextEvidence{{Context: 2048, Layouts: []string{"a", "b"}}, {Context: 8192, Layouts: []string{"a"}}}
	d.Evidence.Chunks = []MeasuredChunk{{Model: fitModel, Chunk: "L0-7", Context: 8192, Weights: "int4g32", CopyBack: CopyBackSync, Experiments: 1}}
	for text, timed := range map[string]bool{"@4way context=8192": true, "@4way context=8192 attn=sliding:2048": false, "@4way context=8192 tokens=3": false} {
		p := planOf(t, e2b(t), text)
		q := planQuantities(p, CopyBackNone)[0]
		require.Equal(t, timed, len(d.Measured(p.Chunks[0], p, Workload{})) == 1, text)
		require.Equal(t, timed, d.contextDoubt(p.Chunks[0], p, &q) == 0, text)
	}
}

// hand: E4B has two KV heads, so each position of an own full layer counts twice; L0-11 has two such layers.
func TestOwnCachesCountOncePerHead(t *testing.T) {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", "e4b.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	q := planQuantities(planOf(t, m, "L0-11 | L12-23 | L24-32 | L33-41+head"), CopyBackNone)
	require.Equal(t, 2*2*2048.0, q[0][AttentionOwn])
	require.Equal(t, 0.0, q[2][AttentionOwn])
	require.Equal(t, 2048.0, q[2][AttentionShared]) // layer 29
}
