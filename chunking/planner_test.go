package chunking

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/quant"
)

func TestPortsOfE4B(t *testing.T) { // hand: spec forward.md §1.2 and §4.0; two KV heads, donors 22 and 23
	m := published(t, "e4b")
	l, ok := m.Preset("@4way")
	require.True(t, ok)
	p := planOf(t, m, l)
	require.Equal(t, squeeze(`
		hidden_states [1,1,2560]
		causal_mask_full [1,1,1,2048]
		causal_mask_sliding [1,1,1,512]
		update_mask [1,1,2048,1]
		per_layer_raw [1,1,10752]
		cos_s [1,1,1,256]
		sin_s [1,1,1,256]
		cos_f [1,1,1,512]
		sin_f [1,1,1,512]
		K_sliding_in [10,2,512,512] L[0,1,2,3,4,6,7,8,9,10]
		V_sliding_in [10,2,512,512] L[0,1,2,3,4,6,7,8,9,10]
		K_full_in [2,2,2048,512] L[5,11]
		V_full_in [2,2,2048,512] L[5,11]`), text(p.Chunks[0].Inputs))
	require.Equal(t, squeeze(`
		hidden_states_out [1,1,2560]
		K_sliding_out [10,2,512,512] L[12,13,14,15,16,18,19,20,21,22]
		V_sliding_out [10,2,512,512] L[12,13,14,15,16,18,19,20,21,22]
		K_full_out [2,2,2048,512] L[17,23]
		V_full_out [2,2,2048,512] L[17,23]
		kv13_k [1,2,512,256] L[22]
		kv13_v [1,2,512,256] L[22]
		kv14_k [1,2,2048,512] L[23]
		kv14_v [1,2,2048,512] L[23]`), text(p.Chunks[1].Outputs))
	require.Equal(t, "L33-41+head", p.Chunks[3].String())
	require.Equal(t, "token_id [1] int32\ntoken_logit [1]\nhidden_states_out [1,1,2560]\n", text(p.Chunks[3].Outputs))
}

func TestPortsOf31B(t *testing.T) { // hand: no PLE, no sharing, KV heads differ per kind, V of full layers is the raw key
	m := published(t, "31b")
	p := planOf(t, m, cuts(m, 0, 6))
	require.Equal(t, squeeze(`
		hidden_states [1,1,5376]
		causal_mask_full [1,1,1,2048]
		causal_mask_sliding [1,1,1,1024]
		update_mask [1,1,2048,1]
		cos_s [1,1,1,256]
		sin_s [1,1,1,256]
		cos_f [1,1,1,512]
		sin_f [1,1,1,512]
		K_sliding_in [5,16,1024,512] L[0,1,2,3,4]
		V_sliding_in [5,16,1024,512] L[0,1,2,3,4]
		K_full_in [1,4,2048,512] L[5]
		V_full_in [1,4,2048,512] L[5]`), text(p.Chunks[0].Inputs))
	require.Empty(t, p.Handoffs())
	var kinds []OpKind
	for _, o := range p.Chunks[0].Ops {
		if o.Layer == 5 {
			kinds = append(kinds, o.Kind)
		}
	}
	require.Equal(t, []OpKind{OpNorm, OpQ, OpK, OpAttention, OpO, OpGate, OpUp, OpDown}, kinds)
	require.EqualValues(t, 4*5376+512+512+1, p.Chunks[0].Ops[5*9].Rows, "gains of layer 5: five layers of nine ops before it")
	require.False(t, p.Totals().PLEModel)
}

// Cuts that nobody ships but a search visits. hand
func TestPortsOfUnusualCuts(t *testing.T) {
	m := published(t, "e2b")
	names := func(ports []Port) (s []string) {
		for _, p := range ports {
			switch p.Role {
			case RoleCache, RoleHandoff, RoleToken:
				s = append(s, fmt.Sprintf("%s%v%v", p.Name, p.Shape[:2], p.Layers))
			}
		}
		return s
	}
	p := planOf(t, m, cuts(m, 0, 4, 5, 14, 15, 16, 19, 20))
	for i, want := range [][2][]string{
		{{"K_sliding_in[4 1][0 1 2 3]", "V_sliding_in[4 1][0 1 2 3]", "K_full_in[1 1][]", "V_full_in[1 1][]"},
			{"K_sliding_out[4 1][0 1 2 3]", "V_sliding_out[4 1][0 1 2 3]", "K_full_out[1 1][]", "V_full_out[1 1][]"}}, // max(0, 1) full slots
		{{"K_full_in[1 1][4]", "V_full_in[1 1][4]"}, {"K_full_out[1 1][4]", "V_full_out[1 1][4]"}}, // a full layer alone
		{nil, nil}, // layers 5 to 13: checked below
		{{"K_full_in[1 1][14]", "V_full_in[1 1][14]"}, {"K_full_out[1 1][14]", "V_full_out[1 1][14]", "kv14_k[1 1][14]", "kv14_v[1 1][14]"}},
		{{"kv13_k[1 1][13]", "kv13_v[1 1][13]"}, nil}, // layer 15 is sliding: the full donor is not read
		{{"kv13_k[1 1][13]", "kv13_v[1 1][13]"}, nil},
		{{"kv14_k[1 1][14]", "kv14_v[1 1][14]"}, nil}, // layer 19 is full
	} {
		if i == 2 {
			out := names(p.Chunks[i].Outputs)
			require.Equal(t, []string{"kv13_k[1 1][13]", "kv13_v[1 1][13]"}, out[len(out)-2:])
			continue
		}
		require.Equal(t, want[0], names(p.Chunks[i].Inputs), "inputs of chunk %d", i+1)
		require.Equal(t, want[1], names(p.Chunks[i].Outputs), "outputs of chunk %d", i+1)
	}
	require.Equal(t, "[layer 13 (sliding) from chunk 3 to 5 6 8 layer 14 (full) from chunk 4 to 7 8]", fmt.Sprint(p.Handoffs()))
	h := p.Handoffs()[1]
	require.EqualValues(t, 2*2048*512*2, h.Bytes)
	require.Equal(t, []bool{false, false, false, true, true, true, true, false},
		[]bool{h.Crosses(0), h.Crosses(1), h.Crosses(2), h.Crosses(3), h.Crosses(4), h.Crosses(5), h.Crosses(6), h.Crosses(7)})

	head, err := Parse("L0-13 | L14-34 | head", m)
	require.NoError(t, err)
	p = planOf(t, m, head)
	require.Equal(t, "hidden_states [1,1,1536]\n", text(p.Chunks[2].Inputs))
	require.Equal(t, squeeze(headPorts), text(p.Chunks[2].Outputs))
	require.Len(t, p.Chunks[2].Ops, 2)
	in := names(p.Chunks[1].Inputs)
	require.Equal(t, []string{"K_full_in[1 1][14]", "V_full_in[1 1][14]", "kv13_k[1 1][13]", "kv13_v[1 1][13]"}, in, "caches before hand-offs")
}

func TestVerifyPorts(t *testing.T) { // spec forward.md §4.10, K = 3, hand
	m := published(t, "e2b")
	l := cuts(m, 0, 8, 15, 25)
	l.QueryTokens = 3
	p := planOf(t, m, l)
	require.Equal(t, squeeze(`
		hidden_states [1,3,1536]
		causal_mask_full [1,1,3,2048]
		causal_mask_sliding [1,1,3,512]
		update_indicator [1,1,2048,3]
		per_layer_combined [1,3,8960]
		cos_s [1,1,3,256]
		sin_s [1,1,3,256]
		cos_f [1,1,3,512]
		sin_f [1,1,3,512]
		K_sliding_in [5,1,512,512] L[8,10,11,12,13]
		V_sliding_in [5,1,512,512] L[8,10,11,12,13]
		K_full_in [2,1,2048,512] L[9,14]
		V_full_in [2,1,2048,512] L[9,14]`), text(p.Chunks[1].Inputs))
	require.Equal(t, squeeze(`
		hidden_states_out [1,3,1536]
		new_K_sliding [5,1,3,256] L[8,10,11,12,13]
		new_V_sliding [5,1,3,256] L[8,10,11,12,13]
		new_K_full [2,1,3,512] L[9,14]
		new_V_full [2,1,3,512] L[9,14]`+donorPorts), text(p.Chunks[1].Outputs))
	require.Equal(t, "token_ids [1,3] int32\nhidden_states_out [1,3,1536]\n", text(p.Chunks[3].Outputs))
}

func TestAttentionSettings(t *testing.T) { // hand
	m := published(t, "e2b")
	plan := func(layout string) *Plan {
		l, err := Parse(layout, m)
		require.NoError(t, err)
		return planOf(t, m, l)
	}
	shape := func(c *Chunk, name string) []int {
		for _, p := range append(append([]Port{}, c.Inputs...), c.Outputs...) {
			if p.Name == name {
				return p.Shape
			}
		}
		return nil
	}
	windowed := plan("@4way attn=sliding:768") // WFA, spec forward.md §4.8
	require.Nil(t, shape(windowed.Chunks[0], "update_mask"), "no cache is written through a mask")
	require.Equal(t, []int{2, 1, 768, 512}, shape(windowed.Chunks[1], "K_full_in"))
	require.Equal(t, []int{1, 1, 768, 512}, shape(windowed.Chunks[3], "kv14_k"))
	require.Equal(t, []int{1, 1, 1, 768}, shape(windowed.Chunks[3], "causal_mask_full"))
	require.EqualValues(t, 44_040_192-7*(2048-768)*2048, windowed.Totals().KVReadBytes)

	// Layer 34 looks further back than the other readers of layer 14, so layer 14 keeps what 34 needs.
	mixed := plan("@4way attn=sliding:768 @34 attn=sliding:1000")
	require.NotNil(t, shape(plan("@4way attn=sliding:768 @4 attn=full").Chunks[3], "update_mask"))
	require.Equal(t, []int{2, 1, 1000, 512}, shape(mixed.Chunks[1], "K_full_in"))
	require.Equal(t, []int{1, 1, 768, 512}, shape(mixed.Chunks[0], "K_full_in"))
	require.EqualValues(t, windowed.Totals().KVReadBytes+(1000-768)*2048, mixed.Totals().KVReadBytes)
	require.EqualValues(t, windowed.Totals().MACs+(1000-768)*2*8*512, mixed.Totals().MACs)
}

func TestPlansThatCannotBeBuilt(t *testing.T) { // hand
	m := published(t, "e2b")
	for _, c := range []struct {
		name, message string
		change        func(l *Layout)
	}{
		{"no chunks", "layout: empty chunk: there are no chunks", func(l *Layout) { l.Cuts = nil }},
		{"layers left out", "layout: chunk 2: layers 8 to 14 are in no chunk", func(l *Layout) { l.Cuts = append(l.Cuts[:1:1], l.Cuts[2:]...) }},
		{"empty", "layout: chunk 2: chunk 2 has no layers", func(l *Layout) { l.Cuts[1] = Cut{Lo: 8, Hi: 8} }},
		{"backwards", "layout: chunk 2: layers 14 to 7 run backwards", func(l *Layout) { l.Cuts[1] = Cut{Lo: 14, Hi: 8} }},
		{"negative", "layout: chunk 1: layers -1 to 7 run backwards", func(l *Layout) { l.Cuts[0].Lo = -1 }},
		{"head in front of layers", "only the head, yet begins at layer 0", func(l *Layout) { l.Cuts = append([]Cut{{Head: true}}, l.Cuts...) }},
		{"context", "layout: context: context 1048577", func(l *Layout) { l.Context = 1<<20 + 1 }},
		{"negative context", "layout: context: context -1", func(l *Layout) { l.Context = -1 }},
		{"tokens", "layout: query tokens: -3 query tokens", func(l *Layout) { l.QueryTokens = -3 }},
		{"mode", "layout: kv mode: KV mode 7", func(l *Layout) { l.KVMode = 7 }},
		{"policy", `"ful"`, func(l *Layout) { l.Attn = []LayerAttn{{-1, "ful"}} }},
		{"policy layer", "layer -2 does not exist", func(l *Layout) { l.Attn = []LayerAttn{{-2, "full"}} }},
		{"policy twice", "two attention policies for the full layers", func(l *Layout) { l.Attn = []LayerAttn{{-1, "full"}, {-1, "full"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := cuts(m, 0, 8, 15, 25)
			c.change(&l)
			_, err := l.Plan(m)
			require.ErrorContains(t, err, c.message)
			require.NotEmpty(t, l.Violations(m))
		})
	}
}

// Whatever the cuts: every layer once, every byte of weight and KV once, donors before readers, and nothing is handed to
// nobody. invariant
func TestRandomCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, name := range []string{"e2b", "e4b", "31b"} {
		m := published(t, name)
		whole := planOf(t, m, cuts(m, 0)).Totals()
		pl := NewPlanner(m)
		for range 200 {
			l := randomLayout(r, m)
			l.Attn, l.Context, l.QueryTokens = nil, 0, 0
			for i := range l.Cuts {
				l.Cuts[i].Weights = quant.Encoding{}
			}
			p, err := pl.Plan(l)
			require.NoError(t, err)
			got := p.Totals()
			require.Equal(t, countsOf(whole), countsOf(got), l.String())
			requireFlow(t, p)
		}
	}
}

func countsOf(t Totals) []int64 {
	return []int64{int64(t.Layers), int64(t.FullOwn), int64(t.FullShared), int64(t.SlidingOwn), int64(t.SlidingShared),
		t.LinearParams, t.LinearBytes, t.WeightBytes, t.MACs, t.KVReadBytes}
}

// requireFlow follows tensors through the chunks: slots cover the owners once, inputs from other chunks have a producer.
func requireFlow(t *testing.T, p *Plan) {
	t.Helper()
	produced, stored := map[string]bool{}, map[int]int{}
	var opLayers []int
	for i, c := range p.Chunks {
		for _, in := range c.Inputs {
			if in.Role == RoleHandoff || in.Name == "per_layer_combined" {
				require.True(t, produced[in.Name], "%v: chunk %d reads %s before anyone wrote it", p.Layout, i+1, in.Name)
			}
			if in.Role == RoleCache && in.Name[0] == 'K' {
				for _, layer := range in.Layers {
					stored[layer]++
				}
			}
		}
		for _, out := range c.Outputs {
			if out.Name == "per_layer_combined_out" {
				produced["per_layer_combined"] = true
			}
			produced[out.Name] = true
		}
		for _, o := range c.Ops {
			if o.Kind == OpAttention {
				opLayers = append(opLayers, o.Layer)
			}
		}
	}
	for i, l := range p.Model.Layers {
		require.Equal(t, i, opLayers[i])
		if l.OwnsKV() {
			require.Equal(t, 1, stored[i])
		} else {
			require.Zero(t, stored[i])
		}
	}
	for _, h := range p.Handoffs() {
		require.NotEmpty(t, h.To)
		require.True(t, p.Chunks[h.From].Lo <= h.Layer && h.Layer < p.Chunks[h.From].Hi)
	}
}

func TestChunksAreShared(t *testing.T) {
	m := published(t, "e2b")
	pl := NewPlanner(m)
	plan := func(l Layout) *Plan {
		p, err := pl.Plan(l)
		require.NoError(t, err)
		return p
	}
	a, b := plan(cuts(m, 0, 8, 15, 25)), plan(cuts(m, 0, 8, 25))
	require.Same(t, a.Chunks[0], b.Chunks[0])
	require.Same(t, a.Chunks[3], b.Chunks[2])
	l := cuts(m, 0, 8, 25)
	l.Cuts[0].Weights = quant.Int4G32
	require.Same(t, a.Chunks[0], plan(l).Chunks[0], "int4g32 is what the zero value means")
	l.Context = 2048
	require.Same(t, a.Chunks[0], plan(l).Chunks[0], "so is a context of 2048")
	l.Context = 512
	require.NotSame(t, a.Chunks[0], plan(l).Chunks[0])
	l.Cuts[0].Weights = quant.DenseF16
	require.Equal(t, 512, plan(l).Context)
	require.Equal(t, a.Chunks, plan(cuts(m, 0, 8, 15, 25)).Chunks)
}

func TestEnumerate(t *testing.T) {
	m := published(t, "e2b")
	small := &Model{Layers: make([]gemma4.Layer, 5)}
	var got []string
	for l := range Enumerate(small, 3) {
		got = append(got, l.String())
	}
	require.Equal(t, []string{ // hand
		"L0 | L1 | L2-4+head", "L0 | L1-2 | L3-4+head", "L0 | L1-3 | L4+head",
		"L0-1 | L2 | L3-4+head", "L0-1 | L2-3 | L4+head", "L0-2 | L3 | L4+head"}, got)

	for n, want := range map[int]int64{-1: 0, 0: 0, 1: 1, 2: 34, 3: 561, 4: 5984, 35: 1, 36: 0} { // C(34, n−1), hand
		require.Equal(t, want, Count(m, n), n)
		var yielded int64
		for l := range Enumerate(m, n) {
			yielded++
			require.True(t, l.inOrder(35))
		}
		require.Equal(t, want, yielded, n)
	}
	require.EqualValues(t, 46_376, Count(m, 5))
	require.EqualValues(t, 9_223_372_036_854_775_807, Count(&Model{Layers: make([]gemma4.Layer, 200)}, 100), "stops at the largest")
	for range Enumerate(m, 3) {
		break
	}
}

// The quick rule that plans are built by and the rules that explain a fault must never disagree. invariant
func TestQuickRuleAgreesWithViolations(t *testing.T) {
	m := published(t, "e2b")
	r := rand.New(rand.NewPCG(7, 11))
	var good int
	for range 3000 {
		l := randomLayout(r, m)
		l.Attn = nil
		for range r.IntN(3) {
			c := &l.Cuts[r.IntN(len(l.Cuts))]
			switch r.IntN(5) {
			case 0:
				c.Lo += r.IntN(3) - 1
			case 1:
				c.Hi += r.IntN(3) - 1
			case 2:
				c.Head = !c.Head
			case 3:
				*c = l.Cuts[r.IntN(len(l.Cuts))]
			case 4:
				c.Lo, c.Hi = c.Hi, c.Lo
			}
		}
		ok := l.inOrder(35)
		require.Equal(t, len(l.Violations(m)) == 0, ok, "%+v", l)
		if ok {
			good++
		}
	}
	require.NotZero(t, good)
}

func TestPlanningAllocatesNothing(t *testing.T) {
	m := published(t, "e2b")
	pl := NewPlanner(m)
	var p Plan
	layouts := []Layout{cuts(m, 0, 8, 15, 25), cuts(m, 0, 8, 25)}
	for _, l := range layouts {
		require.NoError(t, pl.PlanInto(&p, l))
	}
	i := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if pl.PlanInto(&p, layouts[i%2]) != nil {
			panic("chunking: a good layout was refused")
		}
		i++
	}))
}

func BenchmarkEnumeratePlan(b *testing.B) {
	m := published(b, "e2b")
	for _, n := range []int{3, 4, 5} {
		b.Run(fmt.Sprintf("chunks=%d", n), func(b *testing.B) {
			pl := NewPlanner(m)
			var p Plan
			layouts := 0
			b.ReportAllocs()
			for b.Loop() {
				for l := range Enumerate(m, n) {
					if err := pl.PlanInto(&p, l); err != nil {
						b.Fatal(err)
					}
					layouts++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(layouts), "ns/layout")
		})
	}
}

// No length is baked in: T and C reach every port that has them. hand
func TestCHK03EveryLengthFollowsTheLayout(t *testing.T) {
	m := published(t, "e2b")
	for _, tokens := range []int{2, 64, 512, 1024} {
		l := cuts(m, 0, 8, 25)
		l.QueryTokens, l.Context = tokens, 1200
		for _, c := range planOf(t, m, l).Chunks {
			for _, p := range c.Inputs {
				switch p.Role {
				case RoleHidden, RolePLE:
					require.Equal(t, tokens, p.Shape[1], p.Name)
				case RoleMask, RoleRope:
					require.Equal(t, tokens, p.Shape[2], p.Name)
				case RoleUpdate:
					require.Equal(t, []int{1, 1, 1200, tokens}, p.Shape, p.Name)
				}
			}
		}
	}
}

// Layers that share KV compute none, in whatever chunk they are. hand: 12 sliding and 3 full owners
func TestKVS06SharedLayersHaveNoKeysOfTheirOwn(t *testing.T) {
	m := published(t, "e2b")
	owners := map[int]int{}
	for _, c := range planOf(t, m, cuts(m, 0, 10, 14, 20)).Chunks {
		for _, o := range c.Ops {
			if o.Kind == OpK || o.Kind == OpV {
				owners[o.Layer]++
			}
		}
	}
	require.Len(t, owners, 15)
	for layer, projections := range owners {
		require.Less(t, layer, 15)
		require.Equal(t, 2, projections)
	}
}
