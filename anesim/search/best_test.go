package search

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/shareddata"
)

// model is E2B with fewer layers: n in all, the last shared of which read the KV of others.
func model(t testing.TB, n, shared int) *chunking.Model {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", "e2b.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	cfg.NumHiddenLayers, cfg.NumKVSharedLayers, cfg.LayerTypes = n, shared, cfg.LayerTypes[:n]
	if len(cfg.IntermediateSize) > 1 {
		cfg.IntermediateSize = cfg.IntermediateSize[:n]
	}
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	return m
}

func device(t testing.TB, name string) anesim.Device {
	d, err := devices.Load(name)
	require.NoError(t, err)
	return d
}

// shaken is a device whose constants are moved at random, so that every kind of optimum comes up.
func shaken(d anesim.Device, seed uint64) anesim.Device {
	rng := rand.New(rand.NewPCG(seed, 13))
	for t := range anesim.NumTerms {
		d.Constants[t].Value *= math.Exp(2 * rng.NormFloat64())
	}
	return d
}

// bruteForce prices every layout, one after the other.
func bruteForce(t testing.TB, r Request) (best float64, layouts int) {
	planner, pricer := chunking.NewPlanner(r.Model), anesim.NewPricer(r.Device, r.Workload)
	best = math.Inf(1)
	var p chunking.Plan
	for n := 1; n <= len(r.Model.Layers); n++ {
		if r.Chunks != 0 && n != r.Chunks {
			continue
		}
		for l := range chunking.Enumerate(r.Model, n) {
			layouts++
			l.Context = r.Settings.Context
			require.NoError(t, planner.PlanInto(&p, l))
			if found := anesim.Check(&p, r.Device); r.Legality == OnlyTried && len(found) > 0 && found[0].Verdict != anesim.VerdictNote {
				continue
			}
			best = min(best, pricer.Seconds(&p))
		}
	}
	return best, layouts
}

// oracle: enumeration of all layouts of models with up to 14 layers.
func TestBestEqualsBruteForce(t *testing.T) {
	phone := device(t, "iphone17pro")
	for _, c := range []struct {
		layers, shared, chunks, context int
		seed                            uint64
	}{
		{14, 7, 0, 2048, 0}, {14, 7, 5, 2048, 2}, {13, 5, 0, 8192, 3}, {12, 5, 3, 512, 4}, {11, 6, 0, 2048, 5}, {11, 0, 0, 2048, 6},
		{10, 5, 1, 2048, 7}, {10, 5, 10, 2048, 8}, {7, 0, 0, 2048, 9}, {5, 0, 2, 4096, 10},
	} {
		d := phone
		if c.seed > 0 {
			d = shaken(phone, c.seed)
		}
		r := Request{Model: model(t, c.layers, c.shared), Device: d, Chunks: c.chunks, Settings: chunking.Layout{Context: c.context}}
		got, err := Best(r)
		require.NoError(t, err)
		want, n := bruteForce(t, r)
		require.InDelta(t, want, got.Seconds, 1e-12*want, "%+v", c)
		require.Equal(t, int64(n), got.Proof.Layouts.Int64(), "%+v", c)
		require.NoError(t, got.Proof.Verify())
		plan, err := got.Layout.Plan(r.Model)
		require.NoError(t, err)
		require.InDelta(t, anesim.Predict(plan, d, r.Workload).TimeS, got.Seconds, 1e-12)
		if c.chunks > 0 {
			require.Len(t, got.Layout.Cuts, c.chunks)
		}
	}
}

// oracle: with a bound on the weights of a chunk, enumeration under the same bound.
func TestBestUnderABound(t *testing.T) {
	const bound = 70 << 20
	r := Request{Model: model(t, 12, 5), Device: device(t, "mac"), MaxWeightBytes: bound}
	planner, pricer, want := chunking.NewPlanner(r.Model), anesim.NewPricer(r.Device, r.Workload), math.Inf(1)
	for n := 1; n <= 12; n++ {
		for l := range chunking.Enumerate(r.Model, n) {
			p, err := planner.Plan(l)
			require.NoError(t, err)
			fits := true
			for i, c := range p.Chunks {
				fits = fits && (c.Totals.WeightBytes <= bound || i == n-1) // the head alone is larger
			}
			if fits {
				want = min(want, pricer.Seconds(p))
			}
		}
	}
	_, err := Best(r)
	require.ErrorContains(t, err, "chunks refused", "the head is larger than the bound: there is no layout")
	r.MaxWeightBytes = 240 << 20
	got, err := Best(r)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Seconds, 0.0)
	require.NotZero(t, want)
	for _, c := range mustPlan(t, got.Layout, r.Model).Chunks {
		require.LessOrEqual(t, c.Totals.WeightBytes, r.MaxWeightBytes)
	}
}

func mustPlan(t testing.TB, l chunking.Layout, m *chunking.Model) *chunking.Plan {
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

// invariant: the whole model, all 2^34 boundary sets, with a proof that a second walk confirms.
func TestWholeModel(t *testing.T) {
	r := Request{Model: model(t, 35, 20), Device: device(t, "iphone17pro")}
	start := time.Now()
	got, err := Best(r)
	took := time.Since(start)
	require.NoError(t, err)
	t.Logf("%s: %.2f ms in %v; %d states, %d edges, %d chunks priced, %d refused", got.Layout, 1e3*got.Seconds, took,
		got.Proof.States, got.Proof.Edges, got.Proof.ChunksPriced, got.Proof.ChunksBanned)
	require.Equal(t, "17179869184", got.Proof.Layouts.String())
	require.Equal(t, 630, got.Proof.ChunksPriced)
	require.Equal(t, "L0-13 | L14-34+head", got.Layout.String())
	require.Equal(t, 14*15/2, got.Proof.ChunksBanned, "chunks of 22 to 35 layers: 14 + 13 + … + 1")
	require.NoError(t, got.Proof.Verify())
	require.Equal(t, got.Seconds, got.Proof.BoundSeconds)

	r.Legality = AllowDoubtful
	doubtful, err := Best(r)
	require.NoError(t, err)
	require.Equal(t, 1, doubtful.Proof.ChunksBanned, "L0-34+head")
	require.Less(t, doubtful.Seconds, got.Seconds)

	r.Legality = AllowAll
	all, err := Best(r)
	require.NoError(t, err)
	require.Len(t, all.Layout.Cuts, 1, "by the sum law one program is fastest; that it does not load is a rule, not a price")

	// Exactly n is never better than any number, and the best of all n is the best.
	r.Legality = OnlyTried
	least := math.Inf(1)
	for n := 2; n <= 7; n++ {
		r.Chunks = n
		one, err := Best(r)
		require.NoError(t, err)
		require.GreaterOrEqual(t, one.Seconds, got.Seconds)
		least = min(least, one.Seconds)
	}
	require.Equal(t, got.Seconds, least)
}

// invariant: a proof with one potential moved is no proof.
func TestVerifyCanFail(t *testing.T) {
	got, err := Best(Request{Model: model(t, 14, 7), Device: device(t, "mac")})
	require.NoError(t, err)
	p := got.Proof
	p.BoundSeconds -= 1e-6
	require.ErrorContains(t, p.Verify(), "the bound is")
	p = got.Proof
	p.cost[p.graph.index(node{layer: 5})] += 1e-3
	require.ErrorContains(t, p.Verify(), "undercuts the bound")
}

func TestBestRefusesNonsense(t *testing.T) { // hand
	_, err := Best(Request{Model: model(t, 10, 5), Device: device(t, "mac"), Chunks: 11})
	require.ErrorContains(t, err, `chunks: 11, want 0 for any number, or 1 to 10`)
	_, err = Best(Request{Model: model(t, 10, 5), Device: device(t, "mac"), Settings: chunking.Layout{Context: -1}})
	require.ErrorContains(t, err, "context")
}

// BenchmarkBest searches all layouts of E2B.
func BenchmarkBest(b *testing.B) {
	r := Request{Model: model(b, 35, 20), Device: device(b, "iphone17pro")}
	for b.Loop() {
		if _, err := Best(r); err != nil {
			b.Fatal(err)
		}
	}
}
