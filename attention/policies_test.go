package attention

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/arith"
	"anelab/swa"
)

// seenBy lists the positions that group g sees.
func seenBy(p Policy, g, pos int) []int {
	var all []int
	for _, s := range p.Visible(nil, g, pos) {
		for i := s.Lo; i < s.Hi; i++ {
			all = append(all, i)
		}
	}
	return all
}

func TestVisible(t *testing.T) { // hand
	for _, c := range []struct {
		text  string
		group int
		pos   int
		want  []int
	}{
		{"wfa:4", 0, 10, []int{7, 8, 9, 10}},
		{"stream:2+3", 0, 10, []int{0, 1, 8, 9, 10}},
		{"stream:2+3", 0, 4, []int{0, 1, 2, 3, 4}}, // 2 is both the end of the window and behind the sinks
		{"stream:2+3", 0, 1, []int{0, 1}},
		{"stream:0+2", 0, 5, []int{4, 5}},
		{"duo:2+3:0110", 0, 8, []int{0, 1, 6, 7, 8}},
		{"duo:2+3:0110", 1, 5, []int{0, 1, 2, 3, 4, 5}},
		{"duo:2+3:0110", 2, 8, []int{0, 1, 6, 7, 8}},
		{"duokv:1+1:10", 1, 4, []int{0, 4}},
		{"blocks:2x4", 0, 13, []int{8, 9, 10, 11, 12, 13}}, // what it costs at most, not what is chosen
		{"flash:3", 0, 4, []int{0, 1, 2, 3, 4}},
	} {
		p, err := Parse(c.text)
		require.NoError(t, err)
		require.Equal(t, c.want, seenBy(p, c.group, c.pos), "%s at %d", c.text, c.pos)
	}
}

func TestSpansMeetAsOne(t *testing.T) { // hand: touching spans are one, so that the same positions give the same bits
	require.Equal(t, []swa.Span{{Lo: 0, Hi: 6}}, Streaming{Sink: 3, Recent: 3}.Visible(nil, 0, 5))
	require.Equal(t, []swa.Span{{Lo: 0, Hi: 3}, {Lo: 4, Hi: 7}}, Streaming{Sink: 3, Recent: 3}.Visible(nil, 0, 6))
}

func TestGroupsAndKeep(t *testing.T) { // hand
	for _, c := range []struct {
		text   string
		groups []HeadGroup // of 8 heads
		keep   swa.Retention
	}{
		{"wfa:9", []HeadGroup{{0, 8}}, swa.Last(9)},
		{"stream:4+9", []HeadGroup{{0, 8}}, swa.Sinks(4, 9)},
		{"stream:0+9", []HeadGroup{{0, 8}}, swa.Last(9)},
		{"duo:4+9:10110101", []HeadGroup{{0, 1}, {1, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}}, swa.All},
		{"duo:4+9:00000000", []HeadGroup{{0, 8}}, swa.Sinks(4, 9)},
		{"duokv:4+9:01", []HeadGroup{{0, 4}, {4, 8}}, swa.All},
		{"duokv:4+9:0", []HeadGroup{{0, 8}}, swa.Sinks(4, 9)},
		{"blocks:3x8", []HeadGroup{{0, 8}}, swa.All},
		{"full/int8", []HeadGroup{{0, 8}}, swa.All},
		{"stream:4+9/int8", []HeadGroup{{0, 8}}, swa.Sinks(4, 9)},
	} {
		p, err := Parse(c.text)
		require.NoError(t, err)
		require.Equal(t, c.groups, p.Groups(8), c.text)
		require.Equal(t, c.keep, p.Keep(), c.text)
		require.Equal(t, c.text, p.String())
	}
}

func TestParseRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"wfa":                "the form of wfa:2048",
		"wfa:0":              "the form of wfa:2048",
		"wfa:99999999999":    "the form of wfa:2048",
		"wfa:+4":             "the form of wfa:2048",
		"strem:4+8":          `did you mean "stream"?`,
		"stream:4":           "the form of stream:4+256",
		"stream:4+0":         "the form of stream:4+256",
		"stream:-1+4":        "the form of stream:4+256",
		"duo:4+8":            "the form of duo:4+256:10110101",
		"duo:4+8:":           "the form of duo:4+256:10110101",
		"duo:4+8:102":        "the form of duo:4+256:10110101",
		"blocks:0x4":         "the form of blocks:16x32",
		"flash:x":            "the form of flash:1024",
		"full/":              "a form int8",
		"full/int4":          `did you mean "int8"?`,
		"full/kivi:9":        "a form int8",
		"full/kivi:2g32+128": "a form int8", // the sizes that kivi:2 stands for: one text per policy
		"full/palu:0":        "a form int8",
		"wfa:64/kivi:2":      "a window would cut them; full/kivi:2, or wfa:64/int8",
		"blocks:4x8/int8":    "the index of blocks is made of them; blocks:4x8",
		"full/int8/int8":     "a form int8",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range Examples() {
		p, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, text, p.String())
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range Examples() {
		f.Add(text)
		f.Add(text + "/int8")
	}
	for _, text := range []string{"full/kivi:2", "full/kivi:4g8+16", "full/palu:64", "full/like:4", "duo:1+1:", "//", "stream:4+", ":"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		require.Equal(t, text, p.String())
		last := -1
		for _, s := range p.Visible(nil, 0, 40) {
			require.True(t, s.Lo > last && s.Hi > s.Lo && s.Hi <= 41, "ascending, disjoint, not of the future")
			last = s.Hi
		}
		require.Equal(t, 41, last, "a query sees itself")
	})
}

// dilated sees every second position, counted from itself: a policy as somebody would add it, with nothing but this and its tests.
type dilated struct{}

var _ = register("dilated", "dilated", func(string, string) (Policy, error) { return dilated{}, nil })

func (dilated) String() string               { return "dilated" }
func (dilated) Groups(heads int) []HeadGroup { return []HeadGroup{{0, heads}} }
func (dilated) Keep() swa.Retention          { return swa.All }

func (dilated) Visible(dst []swa.Span, _ int, pos int) []swa.Span {
	for p := pos % 2; p <= pos; p += 2 {
		dst = append(dst, swa.Span{Lo: p, Hi: p + 1})
	}
	return dst
}

func TestANewPolicyIsOneFile(t *testing.T) { // hand oracle: parsed, wrapped and run without an edit elsewhere
	for _, text := range []string{"dilated", "dilated/kivi:2g4+99"} {
		policy, err := Parse(text)
		require.NoError(t, err)
		p := newProblem(8, 2, 6, 23, 2)
		requireClose(t, p.oracle(func(_, j int) bool { return j%2 == 0 }), p.run(t, mode(t, "f32"), policy), 2e-6, text)
	}
}

func TestATT01CausalEdgeFollowsTheQuery(t *testing.T) { // hand: 2 queries at the end of 5 keys see 0 … 3 and 0 … 4; more queries than keys cannot be asked
	for _, p := range []Policy{Full{}, Flash{Rows: 2}} {
		require.Equal(t, []int{0, 1, 2, 3}, seenBy(p, 0, 3))
		require.Equal(t, []int{0, 1, 2, 3, 4}, seenBy(p, 0, 4))
	}
	store := swa.NewLinear(swa.Shape{KVHeads: 1, HeadDim: 1}, 8)
	require.Panics(t, func() { store.Stage(3, make([]float32, 2), make([]float32, 2)) }, "rows of later queries without those before")
}

func TestATT03OneQueryHasItsWholeWindow(t *testing.T) { // hand: W = 128, 256 keys, one query: 128 … 255
	for _, p := range []Policy{WFA{128}, Sliding{128}, Streaming{0, 128}} {
		got := seenBy(p, 0, 255)
		require.Len(t, got, 128)
		require.Equal(t, []int{128, 255}, []int{got[0], got[127]})
	}
}

// problem is q, k and v of so many heads and positions, from sines; peak sets the spread of the scores.
type problem struct {
	heads, kvHeads, d, n int
	q, k, v              []float32
}

func newProblem(heads, kvHeads, d, n int, peak float64) *problem {
	p := &problem{heads: heads, kvHeads: kvHeads, d: d, n: n}
	fill := func(size, seed int, scale float64) []float32 {
		x := make([]float32, size)
		for i := range x {
			x[i] = float32(math.Round(math.Sin(float64(i*seed%9973))*scale*256) / 256) // exact in fp16
		}
		return x
	}
	p.q, p.k, p.v = fill(heads*d, 71, peak), fill(n*kvHeads*d, 37, 1), fill(n*kvHeads*d, 53, 1)
	return p
}

// oracle is softmax over the positions that a head sees, in float64, straight from the definition.
func (p *problem) oracle(sees func(head, pos int) bool) []float64 {
	out := make([]float64, p.heads*p.d)
	for h := range p.heads {
		kv := h / (p.heads / p.kvHeads) // ATT-04: repeated, not tiled
		w := make([]float64, p.n)
		most := math.Inf(-1)
		for j := range w {
			for c := range p.d {
				w[j] += float64(p.q[h*p.d+c]) * float64(p.k[(j*p.kvHeads+kv)*p.d+c])
			}
			if !sees(h, j) {
				w[j] = math.Inf(-1)
			}
			most = max(most, w[j])
		}
		var sum float64
		for j := range w {
			w[j] = math.Exp(w[j] - most)
			sum += w[j]
		}
		for j := range w {
			for c := range p.d {
				out[h*p.d+c] += w[j] / sum * float64(p.v[(j*p.kvHeads+kv)*p.d+c])
			}
		}
	}
	return out
}

// run is the last query through a policy.
func (p *problem) run(t *testing.T, a arith.Arithmetic, policy Policy) []float32 {
	t.Helper()
	shape := swa.Shape{KVHeads: p.kvHeads, HeadDim: p.d}
	var store swa.Store = swa.NewLinear(shape, p.n)
	if s, ok := As[Selector](policy); ok {
		store = swa.NewIndexed(store, shape, s.IndexRows(), p.n)
	}
	store.Stage(0, p.k, p.v)
	return p.over(a, policy, store)
}

// over is the last query over a store that holds the rows.
func (p *problem) over(a arith.Arithmetic, policy Policy, store swa.Store) []float32 {
	out := make([]float32, len(p.q))
	Attend(a, Query{Pos: p.n - 1, Q: p.q, Out: out, HeadDim: p.d, Keys: store.Keys(), Values: store.Values(), Policy: policy,
		Runs: Runs(policy, p.heads, p.kvHeads)}, &Scratch{}, nil)
	return out
}

func mode(t *testing.T, name string) arith.Arithmetic {
	t.Helper()
	a, err := arith.New(name, 1)
	require.NoError(t, err)
	return a
}

func requireClose(t *testing.T, want []float64, got []float32, within float64, what string) {
	t.Helper()
	for i, w := range want {
		require.InDelta(t, w, got[i], within, "%s, element %d", what, i)
	}
}

func everything(int, int) bool { return true }

func TestATT04ATT09PoliciesAgainstTheDefinition(t *testing.T) { // hand oracle: 8 query heads over 2 KV heads and over 1
	for _, kvHeads := range []int{1, 2} {
		p := newProblem(8, kvHeads, 6, 23, 2)
		for text, sees := range map[string]func(h, j int) bool{
			"full":             everything,
			"wfa:7":            func(_, j int) bool { return 22-j < 7 },
			"stream:3+5":       func(_, j int) bool { return j < 3 || 22-j < 5 },
			"duo:3+5:10110001": func(h, j int) bool { return "10110001"[h] == '1' || j < 3 || 22-j < 5 },
			"flash:5":          everything,
			"flash:23":         everything,
			"blocks:5x5":       everything,
		} {
			policy, err := Parse(text)
			require.NoError(t, err)
			requireClose(t, p.oracle(sees), p.run(t, mode(t, "f32"), policy), 2e-6, text)
		}
	}
	two := newProblem(8, 2, 6, 23, 2)
	gates, err := Parse("duokv:3+5:01")
	require.NoError(t, err)
	requireClose(t, two.oracle(func(h, j int) bool { return h >= 4 || j < 3 || 22-j < 5 }), two.run(t, mode(t, "f32"), gates), 2e-6, "a gate is for all heads of its KV head")
}

func TestATT06PaddedRows(t *testing.T) { // invariant: heads of 120 in port rows of 128, 16 query heads over 4
	p := newProblem(16, 4, 120, 9, 0.3)
	const width = 128
	pad := func(x []float32) swa.Slot {
		s := swa.Slot{Data: make([]float32, 4*p.n*width), Rows: p.n, Width: width}
		for j := range p.n {
			for g := range 4 {
				copy(s.Data[(g*p.n+j)*width:], x[(j*4+g)*120:(j*4+g+1)*120])
			}
		}
		return s
	}
	a := mode(t, "ane")
	want := p.run(t, a, Full{})
	require.Equal(t, want, p.over(a, Full{}, swa.NewHandoff(pad(p.k), pad(p.v), 120, p.n-1, 0)))
	require.Len(t, want, 16*120)
}

func TestATT07PermutedHeadsAreTheSameModel(t *testing.T) { // invariant: rows of q and columns of the output follow Order, keys and values stay
	p := newProblem(8, 1, 6, 23, 2)
	const gates = "01100101"
	want := p.run(t, mode(t, "f32"), Duo{Streaming{3, 5}, gates, PerQueryHead})
	permuted, order := *p, Order(gates)
	permuted.q = nil
	for _, h := range order {
		permuted.q = append(permuted.q, p.q[h*6:(h+1)*6]...)
	}
	got := permuted.run(t, mode(t, "f32"), Duo{Streaming{3, 5}, "11110000", PerQueryHead})
	for i, h := range order {
		require.Equal(t, want[h*6:(h+1)*6], got[i*6:(i+1)*6], "head %d", h)
	}
	all := permuted.run(t, mode(t, "f32"), Full{})
	full := p.run(t, mode(t, "f32"), Full{})
	for i, h := range order {
		require.Equal(t, full[h*6:(h+1)*6], all[i*6:(i+1)*6])
	}
}

func TestATT11FusedAndWrittenOutAgree(t *testing.T) { // hand oracle: scale 1.0; five ops, one fused op and blocks within fp16 of the definition, for 1 and for 64 queries
	fused := arith.NewANE(arith.ANERules{Softmax: arith.SoftmaxFused}, 1)
	for _, n := range []int{1, 64} {
		p := newProblem(8, 1, 16, n, 0.4)
		want := p.oracle(everything)
		for name, got := range map[string][]float32{
			"five ops": p.run(t, mode(t, "ane"), Full{}), "fused": p.run(t, fused, Full{}), "flash": p.run(t, mode(t, "ane"), Flash{Rows: 16}),
		} {
			requireClose(t, want, got, 2e-3, name)
			require.Equal(t, argmax(want), argmax32(got), name)
		}
	}
}

func argmax(x []float64) int { return slices.Index(x, slices.Max(x)) }

func argmax32(x []float32) int { return slices.Index(x, slices.Max(x)) }

// blind sees nothing.
type blind struct{ Full }

func (blind) Visible(dst []swa.Span, _, _ int) []swa.Span { return dst }

func TestNUM06NothingVisibleGivesZeros(t *testing.T) { // hand
	p := newProblem(4, 1, 3, 5, 1)
	for _, m := range arith.Modes {
		require.Equal(t, make([]float32, 12), p.run(t, mode(t, m), blind{}), m)
	}
}

func TestNUM07ScoresBelowAnyFiniteStandIn(t *testing.T) { // hand: scores −60,000 and −60,001, in one block and in two: weights 0.731 and 0.269
	p := &problem{heads: 1, kvHeads: 1, d: 1, n: 2, q: []float32{-60000}, k: []float32{1, 60001.0 / 60000}, v: []float32{1, 0}}
	for _, policy := range []Policy{Full{}, Flash{Rows: 2}, Flash{Rows: 1}} {
		require.InDelta(t, 0.731, p.run(t, mode(t, "f32"), policy)[0], 2e-3, policy.String())
	}
}

func TestFlashRoundsAsTheGraph(t *testing.T) { // hand: two blocks of one position, fp16: ℓ = 1, inv = 1, o = v₀; then α = e⁻¹, ℓ = 1.3679, inv = 0.7310
	p := &problem{heads: 1, kvHeads: 1, d: 1, n: 2, q: []float32{1}, k: []float32{0, 1}, v: []float32{1, 0}}
	got := p.run(t, mode(t, "ane"), Flash{Rows: 1})[0]
	// fp16: e⁻¹ → 0.36792; ℓ = 1.36816 (0.36792 + 1 to 10 bits); inv = 1/1.36816 → 0.73096; ℓ·α·inv = 0.36792·0.73096 → 0.26904
	require.Equal(t, float32(0.26904296875), got)
}

func TestBlocksChooseByTheirBounds(t *testing.T) { // hand: blocks of 2; keys of the second block reach 5, those of the first 1, of the third 3; the query's own is the fourth
	p := &problem{heads: 1, kvHeads: 1, d: 1, n: 7, q: []float32{1}, k: []float32{1, 0, 5, -9, 3, 3, 0}, v: []float32{1, 2, 3, 4, 5, 6, 7}}
	for count, sees := range map[int][]int{1: {6}, 2: {2, 3, 6}, 3: {2, 3, 4, 5, 6}, 4: {0, 1, 2, 3, 4, 5, 6}, 9: {0, 1, 2, 3, 4, 5, 6}} {
		got := p.run(t, mode(t, "f32"), Blocks{Count: count, Rows: 2})
		requireClose(t, p.oracle(func(_, j int) bool { return slices.Contains(sees, j) }), got, 1e-6, Blocks{count, 2}.String())
	}
	p.q[0] = -1 // now the least keys matter: −9 in the second block, 0 in the first
	requireClose(t, p.oracle(func(_, j int) bool { return j == 2 || j == 3 || j == 6 }), p.run(t, mode(t, "f32"), Blocks{2, 2}), 1e-6, "negative queries look at the least keys")
	require.Panics(t, func() {
		store := swa.NewLinear(swa.Shape{KVHeads: 1, HeadDim: 1}, 7)
		store.Stage(0, p.k, p.v)
		p.over(mode(t, "f32"), Blocks{2, 2}, store)
	})
}

func TestATT09MixedClassesOfOneKVHead(t *testing.T) { // hand: rows are kept for all heads of a KV head; per KV head a mixed list is refused with the rounded one
	mixed, err := Parse("duokv:4+8:10110101")
	require.NoError(t, err)
	require.NoError(t, Fit(mixed, 8, 8))
	require.ErrorContains(t, Fit(mixed, 8, 1), "duokv:4+8:1, or classes per query head, which only mask: duo:4+8:11111111")
	require.ErrorContains(t, Fit(mixed, 8, 2), "duokv:4+8:11")
	streaming, err := Parse("duokv:4+8:00001111")
	require.NoError(t, err)
	require.ErrorContains(t, Fit(streaming, 8, 2), "duokv:4+8:01")
	mask, err := Parse("duo:4+8:10110101")
	require.NoError(t, err)
	require.NoError(t, Fit(mask, 8, 1))
	require.Equal(t, swa.All, mask.Keep())
	require.NoError(t, Fit(Full{}, 8, 1))
	stored, err := Parse("duo:4+8:10110101/int8")
	require.NoError(t, err)
	require.Error(t, Fit(stored, 4, 1), "a form does not hide what it is around")
}
