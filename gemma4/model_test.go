package gemma4_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/gemmatest"
	"anelab/quant"
)

var background = context.Background()

func load(t testing.TB, c gemma4.Config, src gemma4.Source, mode string) *gemma4.Model {
	t.Helper()
	a, err := arith.New(mode, 2)
	require.NoError(t, err)
	m, err := gemma4.Load(c, src, a, gemma4.Options{})
	require.NoError(t, err)
	return m
}

func small(t testing.TB, mode string) *gemma4.Model {
	return load(t, gemmatest.Config(), gemmatest.New(gemmatest.Config(), 1), mode)
}

func newState(t testing.TB, m *gemma4.Model, context int) *gemma4.State {
	t.Helper()
	s, err := m.NewState(context)
	require.NoError(t, err)
	return s
}

func prompt(n int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = (i*29 + 3) % 101
	}
	return tokens
}

// logitsOf feeds tokens in calls of the given lengths (the last one repeated) and returns a copy of the final logits.
func logitsOf(t testing.TB, m *gemma4.Model, tokens []int, lengths ...int) []float32 {
	t.Helper()
	s := newState(t, m, len(tokens))
	var logits []float32
	for i := 0; len(tokens) > 0; i++ {
		n := min(lengths[min(i, len(lengths)-1)], len(tokens))
		var err error
		logits, err = s.Prefill(background, tokens[:n])
		require.NoError(t, err)
		tokens = tokens[n:]
	}
	return slices.Clone(logits)
}

// trace runs one prefill and returns every tap by "point.layer".
func trace(t testing.TB, m *gemma4.Model, tokens []int) map[string][]float32 {
	t.Helper()
	s, taps := newState(t, m, len(tokens)), map[string][]float32{}
	s.Listen(func(tap gemma4.Tap) {
		taps[fmt.Sprintf("%s.%d", tap.Point, tap.Layer)] = slices.Clone(tap.Data)
	})
	_, err := s.Prefill(background, tokens)
	require.NoError(t, err)
	return taps
}

func TestSWA20KVS03PrefillEqualsSteps(t *testing.T) { // invariant: any split of the prompt, lengths around W = 7 and 2W
	for _, mode := range arith.Modes {
		m := small(t, mode)
		for _, n := range []int{1, 6, 7, 8, 10, 14, 15, 23} {
			want := logitsOf(t, m, prompt(n), n)
			for _, lengths := range [][]int{{1}, {4}, {4, 4, 2}, {7}, {8, 1}, {n - 1, 1}} {
				if lengths[0] > 0 {
					require.Equal(t, want, logitsOf(t, m, prompt(n), lengths...), "%s: %d tokens in calls of %v", mode, n, lengths)
				}
			}
		}
	}
}

func TestBatchDoesNotChangeResults(t *testing.T) { // invariant: SWA-07, SWA-08: rows visible = rows multiplied, whatever the batch
	m := small(t, "hf-bf16")
	want := logitsOf(t, m, prompt(24), 24)
	for _, batch := range []int{1, 3, 5, 7, 16} {
		s := newState(t, m, 24)
		s.SetBatch(batch)
		got, err := s.Prefill(background, prompt(24))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestSkippingWhatAPromptDoesNotNeedIsExact(t *testing.T) { // invariant: a listener makes every row go all the way
	shared, none := gemmatest.Config(), gemmatest.Config()
	none.NumKVSharedLayers, none.UseDoubleWideMLP = 0, false
	for name, c := range map[string]gemma4.Config{"shared": shared, "every layer owns": none} {
		for _, mode := range arith.Modes {
			m := load(t, c, gemmatest.New(c, 3), mode)
			for _, n := range []int{1, 2, 7, 8, 23} {
				full, skip := newState(t, m, 40), newState(t, m, 40)
				full.Listen(func(gemma4.Tap) {})
				want, err := full.Prefill(background, prompt(n))
				require.NoError(t, err)
				skip.SetBatch(9)
				got, err := skip.Prefill(background, prompt(n))
				require.NoError(t, err)
				require.Equal(t, want, got, "%s %s: %d tokens", name, mode, n)
				want, err = full.Step(background, 5)
				require.NoError(t, err)
				got, err = skip.Step(background, 5)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s %s: the step after %d tokens", name, mode, n)
			}
		}
	}
}

func TestOneTokenAttentionIsShared(t *testing.T) { // invariant: steps past several blocks of positions = one call over all, any threads
	c := gemmatest.Config()
	for _, mode := range arith.Modes {
		m := load(t, c, gemmatest.New(c, 3), mode)
		const n = 530
		full := newState(t, m, n)
		full.SetBatch(n)
		want, err := full.Prefill(background, prompt(n))
		require.NoError(t, err)
		want = slices.Clone(want)
		for _, threads := range []int{1, 3} {
			a, err := arith.New(mode, threads)
			require.NoError(t, err)
			m, err := gemma4.Load(c, gemmatest.New(c, 3), a, gemma4.Options{})
			require.NoError(t, err)
			require.Equal(t, want, logitsOf(t, m, prompt(n), n-1, 1), "%s, %d threads", mode, threads)
		}
	}
}

func TestKVS01KVS06SharedLayersReadOnlyTheirDonor(t *testing.T) {
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	want := logitsOf(t, load(t, c, src, "f32"), prompt(11), 11)
	for _, name := range []string{"k_proj", "v_proj"} { // dead weights of a shared layer change nothing
		src.Put("layers.6.self_attn."+name+".weight", slices.Repeat([]float32{9}, 12*40), 12, 40)
	}
	src.Put("layers.6.self_attn.k_norm.weight", slices.Repeat([]float32{9}, 12), 12)
	require.Equal(t, want, logitsOf(t, load(t, c, src, "f32"), prompt(11), 11))

	before := trace(t, load(t, c, src, "f32"), prompt(2))
	for _, l := range []int{5, 6, 7, 8} {
		require.Equal(t, before["k.3"], before[fmt.Sprintf("k.%d", l)], "sliding layer %d reads layer 3", l)
	}
	require.Equal(t, before["v.4"], before["v.9"], "full layer 9 reads layer 4")
	scaled := src.Values("layers.3.self_attn.v_proj.weight")
	for i := range scaled {
		scaled[i] = -scaled[i]
	}
	src.Put("layers.3.self_attn.v_proj.weight", scaled, 12, 40)
	after := trace(t, load(t, c, src, "f32"), prompt(2))
	require.Equal(t, before["hidden.2"], after["hidden.2"])
	require.NotEqual(t, before["attn_out.3"], after["attn_out.3"])
	require.NotEqual(t, before["attn_out.5"], after["attn_out.5"])
}

func TestKVS08CachedAndUncachedAgree(t *testing.T) { // invariant: one call over everything, and one token at a time
	for _, mode := range arith.Modes {
		m := small(t, mode)
		whole := trace(t, m, prompt(9))
		s, last := newState(t, m, 9), map[string][]float32{}
		s.Listen(func(tap gemma4.Tap) { last[fmt.Sprintf("%s.%d", tap.Point, tap.Layer)] = slices.Clone(tap.Data) })
		for _, token := range prompt(9) {
			_, err := s.Step(background, token)
			require.NoError(t, err)
		}
		for _, name := range []string{"hidden.4", "hidden.9", "final_norm.-1", "logits.-1"} {
			n := len(last[name])
			require.Equal(t, whole[name][8*n:], last[name], "%s %s", mode, name)
		}
	}
}

func TestKVS09RunsRepeat(t *testing.T) { // 30 times prefill and a step, two states of one model at once
	m := small(t, "ane")
	want := logitsOf(t, m, prompt(12), 11, 1)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 15 {
				if !slices.Equal(want, logitsOf(t, m, prompt(12), 11, 1)) {
					t.Error("another result from the same tokens")
				}
			}
		})
	}
	wg.Wait()
}

func TestFWD02PLETableIsScaledByRootWidth(t *testing.T) { // hand: zero projection leaves 2^−½·√P·row
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	src.Put("per_layer_model_projection.weight", make([]float32, 60*40), 60, 40)
	ple := trace(t, load(t, c, src, "f32"), []int{17})["per_layer_inputs.-1"]
	table := src.Values("embed_tokens_per_layer.weight")[17*60:][:60]
	for i, v := range table {
		require.InDelta(t, float64(v)*math.Sqrt(6)/math.Sqrt2, ple[i], 1e-6)
	}
}

func TestFWD07ScaleLivesOutsideTheWeight(t *testing.T) { // hand: one weight 1, stream e: projection e·D^−½ before its norm
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	m := load(t, c, src, "f32")
	ple, x := trace(t, m, []int{17})["per_layer_inputs.-1"], trace(t, m, []int{17})["embeds.-1"]
	w, gain := src.Values("per_layer_model_projection.weight"), src.Values("per_layer_projection_norm.weight")
	proj, sum := make([]float64, 6), 0.0
	for i := range proj {
		for k, v := range x {
			proj[i] += float64(w[i*40+k]) * float64(v) / math.Sqrt(40)
		}
		sum += proj[i] * proj[i]
	}
	for i, v := range src.Values("embed_tokens_per_layer.weight")[17*60:][:6] {
		want := (proj[i]/math.Sqrt(sum/6+1e-6)*float64(gain[i]) + float64(v)*math.Sqrt(6)) / math.Sqrt2
		require.InDelta(t, want, ple[i], 1e-5)
	}
}

func TestLayerScalarScalesTheWholeStream(t *testing.T) { // hand
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	src.Put("layers.0.layer_scalar", []float32{1}, 1)
	one := trace(t, load(t, c, src, "f32"), prompt(3))["hidden.0"]
	src.Put("layers.0.layer_scalar", []float32{0.25}, 1)
	quarter := trace(t, load(t, c, src, "f32"), prompt(3))["hidden.0"]
	for i, v := range one {
		require.Equal(t, v/4, quarter[i])
	}
}

func TestValuesAreNormedWithoutGainAndNotRotated(t *testing.T) { // hand: RMS of every value row is 1; V of a token is the same anywhere
	m := small(t, "f32")
	at0, both := trace(t, m, []int{40})["v.0"], trace(t, m, []int{7, 40})["v.0"]
	require.Equal(t, at0, both[12:])
	var sum float64
	for _, v := range at0 {
		sum += float64(v) * float64(v)
	}
	require.InDelta(t, 1, math.Sqrt(sum/12), 1e-4)
	require.NotEqual(t, trace(t, m, []int{40})["k.0"], trace(t, m, []int{7, 40})["k.0"][12:], "keys are rotated")
}

func TestKEqVTakesTheRawKey(t *testing.T) { // hand: V = RMS₁(Wk·h), K = RoPE(RMS(Wk·h)); at position 0 RoPE does nothing
	c := gemmatest.Config()
	c.NumKVSharedLayers, c.UseDoubleWideMLP, c.AttentionKEqV, c.NumGlobalKVHeads = 0, false, true, 2
	c.NumKeyValueHeads = 2
	src := gemmatest.New(c, 1)
	require.False(t, src.Has("layers.4.self_attn.v_proj.weight"))
	taps := trace(t, load(t, c, src, "f32"), []int{40})
	gain := src.Values("layers.4.self_attn.k_norm.weight")
	for i, v := range taps["v.4"] {
		require.InDelta(t, float64(v)*float64(gain[i%20]), taps["k.4"][i], 1e-5)
	}
}

func TestROPE03IdentityTailOfFullLayers(t *testing.T) { // hand: d = 20, factor 0.25: pairs 0 and 1 turn, lanes 2…9 and 12…19 stay
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	taps := trace(t, load(t, c, src, "f32"), prompt(8))
	cos, sin := taps["rope_cos.full.-1"], taps["rope_sin.full.-1"]
	for p := range 8 {
		for i := range 10 {
			if i >= 2 {
				require.Equal(t, []float32{1, 0}, []float32{cos[p*20+i], sin[p*20+10+i]})
			} else if p > 0 {
				require.NotZero(t, sin[p*20+i])
			}
		}
	}
}

func TestNUM01NotFiniteIsAnError(t *testing.T) {
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	src.Put("norm.weight", slices.Repeat([]float32{float32(math.Inf(1))}, 40), 40)
	_, err := newState(t, load(t, c, src, "f32"), 4).Prefill(background, prompt(2))
	require.ErrorIs(t, err, gemma4.ErrNotFinite)
}

func TestNUM11OverflowingWeightsAreReported(t *testing.T) { // hand: 2^16 in bf16 has no fp16; fine in the other modes
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	w := src.Values("layers.2.mlp.down_proj.weight")
	w[5], w[77] = 65536, -65536
	src.Put("layers.2.mlp.down_proj.weight", w, 40, 52)
	require.Empty(t, load(t, c, src, "hf-bf16").Warnings)
	warnings := load(t, c, src, "ane").Warnings
	require.Len(t, warnings, 1)
	require.ErrorContains(t, warnings[0], "layers.2.mlp.down_proj.weight: 2 weights that are not finite in mode ane")
}

func TestNUM12GainsAreNotOffset(t *testing.T) { // hand: a gain of 0.05 multiplies by bf16(0.05), not by 1.05
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	src.Put("norm.weight", slices.Repeat([]float32{1}, 40), 40)
	one := trace(t, load(t, c, src, "f32"), prompt(2))["final_norm.-1"]
	src.Put("norm.weight", slices.Repeat([]float32{0.05}, 40), 40)
	for i, v := range trace(t, load(t, c, src, "f32"), prompt(2))["final_norm.-1"] {
		require.InDelta(t, float64(one[i])*0.050048828125, v, 1e-7)
	}
}

func TestSWA14ContextOverflowIsRefused(t *testing.T) { // positions are never shifted
	s := newState(t, small(t, "f32"), 9)
	_, err := s.Prefill(background, prompt(9))
	require.NoError(t, err)
	_, err = s.Step(background, 1)
	require.ErrorContains(t, err, "context: 10 positions, want at most 9")
	require.Equal(t, 9, s.Next())
}

func TestSWA15StateResumesWhereTheWindowIsHeld(t *testing.T) {
	m := small(t, "hf-bf16")
	s := newState(t, m, 40)
	_, err := s.Prefill(background, prompt(30))
	require.NoError(t, err)
	require.ErrorContains(t, s.Truncate(20), "cannot go on at position 20")
	require.Equal(t, 30, s.Next(), "a refused resume changes nothing")
	require.NoError(t, s.Truncate(29))
	got, err := s.Step(background, prompt(30)[29])
	require.NoError(t, err)
	require.Equal(t, logitsOf(t, m, prompt(30), 30), got)
}

func TestCancelBetweenLayersLeavesTheStateUsable(t *testing.T) {
	m := small(t, "f32")
	s := newState(t, m, 20)
	_, err := s.Prefill(background, prompt(8))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	last := gemma4.Tap{}
	s.Listen(func(tap gemma4.Tap) {
		if last = tap; tap.Layer == 5 {
			cancel()
		}
	})
	_, err = s.Prefill(ctx, prompt(13)[8:])
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 5, last.Layer, "no layer was begun behind the one in which it ended")
	require.Equal(t, gemma4.PointHidden, last.Point, "which was finished")
	s.Listen(nil)
	got, err := s.Prefill(background, prompt(13)[8:])
	require.NoError(t, err)
	require.Equal(t, logitsOf(t, m, prompt(13), 13), got)
}

func TestRefusals(t *testing.T) {
	m := small(t, "f32")
	s := newState(t, m, 9)
	for name, tokens := range map[string][]int{"token 1: id 101": {1, 101}, "token 0: id -1": {-1}, "prompt: no tokens": {}} {
		_, err := s.Prefill(background, tokens)
		require.ErrorContains(t, err, name)
	}
	_, err := m.NewState(5000)
	require.ErrorContains(t, err, "want 1 to 4096 positions")
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	src.Put("layers.3.mlp.up_proj.weight", make([]float32, 6), 2, 3)
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	_, err = gemma4.Load(c, src, a, gemma4.Options{})
	require.ErrorContains(t, err, "layers.3.mlp.up_proj.weight: shape [2 3], want [52 40]")
}

func TestPinnedModesHaveTheSameBitsEverywhere(t *testing.T) { // run also under arm64, purego and every kernel path
	for mode, want := range map[string]uint64{"hf-bf16": pinnedHFBF16, "ane": pinnedANE} {
		h := fnv.New64a()
		for _, v := range append(logitsOf(t, small(t, mode), prompt(23), 9, 1), logitsOf(t, small(t, mode), prompt(5), 5)...) {
			require.NoError(t, binary.Write(h, binary.LittleEndian, math.Float32bits(v)))
		}
		require.Equal(t, want, h.Sum64(), mode)
	}
}

// Hashes of logits; they change only when a rounding rule changes.
const (
	pinnedHFBF16 = 0xf19d3b8db101d22c
	pinnedANE    = 0x156f934664d31c60
)

func TestHalfPrecisionStores(t *testing.T) { // hand: sizes; invariant: close to float32 stores, equal where the mode is 16 bits anyway
	c := gemmatest.Config()
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	m, err := gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{KV: gemma4.KVFloat16})
	require.NoError(t, err)
	exact := small(t, "f32")
	require.Equal(t, int64((4*7*12+40*20)*2*4), exact.KVBytes(40), "4 sliding layers of 7 rows of 12, one full layer of 40 rows of 20")
	require.Equal(t, exact.KVBytes(40)/2, m.KVBytes(40))
	got, want := logitsOf(t, m, prompt(23), 20, 1), logitsOf(t, exact, prompt(23), 20, 1)
	require.NotEqual(t, want, got)
	for i := range want {
		require.InDelta(t, want[i], got[i], 0.05)
	}
	require.Equal(t, got, logitsOf(t, m, prompt(23), 1), "staged rows are rounded like stored ones")
}

func TestStepBytes(t *testing.T) { // hand: two bytes for every linear parameter and the head
	n := 101*40 + 60*40
	for l := range 10 {
		d, ffn := 12, 52
		if l == 4 || l == 9 {
			d = 20
		}
		if l >= 5 {
			ffn *= 2
		} else {
			n += 2 * d * 40
		}
		n += 2*4*d*40 + 3*ffn*40 + 2*6*40
	}
	require.Equal(t, int64(2*n), small(t, "f32").StepBytes())
}

func TestArgmaxTakesTheFirstMaximum(t *testing.T) {
	require.Equal(t, 1, gemma4.Argmax([]float32{1, 3, 3, 2}))
}

func TestGenerateIsGreedyStepping(t *testing.T) { // invariant
	m := small(t, "f32")
	var got []int
	for token, err := range newState(t, m, 20).Generate(background, prompt(8), 9) {
		require.NoError(t, err)
		got = append(got, token)
	}
	require.Len(t, got, 9)
	tokens := prompt(8)
	for _, want := range got {
		require.Equal(t, want, gemma4.Argmax(logitsOf(t, m, tokens, len(tokens))))
		tokens = append(tokens, want)
	}
	for _, err := range newState(t, m, 9).Generate(background, prompt(8), 9) {
		if err != nil {
			require.ErrorContains(t, err, "10 positions")
			return
		}
	}
	require.Fail(t, "a context overflow must end the sequence with an error")
}

func TestDecodeAllocatesNothing(t *testing.T) {
	for _, mode := range arith.Modes {
		m := small(t, mode)
		s := newState(t, m, 400)
		_, err := s.Prefill(background, prompt(30))
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := s.Step(background, 3); err != nil {
				panic(err)
			}
		}), mode)
	}
}

// An int4 palette is a weight like any other: the pass reads its rows, whatever the encoding.
func TestPaletteWeights(t *testing.T) {
	c := gemmatest.Config()
	src := gemmatest.New(c, 1)
	w, err := src.Tensor("layers.0.mlp.up_proj.weight")
	require.NoError(t, err)
	dense, err := quant.Dense(w)
	require.NoError(t, err)
	palette, err := quant.Palettize(background, dense, quant.Options{Mode: quant.Uniform, Bits: 4, Group: 4}, nil)
	require.NoError(t, err)
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	x, got, want := make([]float32, 40), make([]float32, 52), make([]float32, 52)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	a.Linear(got, palette, x, 1)
	palette.MulVec(want, x)
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-5)
	}
}

func BenchmarkStep(b *testing.B) {
	for _, mode := range arith.Modes {
		b.Run("mode="+mode, func(b *testing.B) {
			s := newState(b, small(b, mode), 4096)
			for b.Loop() {
				if s.Next() == 4096 {
					if err := s.Truncate(0); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := s.Step(background, 3); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// scaledSource holds the projection of per-layer inputs with its scale, as CoreML-LLM writes it.
type scaledSource struct {
	*gemmatest.Source
	projection quant.Tensor
}

func (s scaledSource) Tensor(name string) (quant.Tensor, error) {
	if name == s.projection.Name {
		return s.projection, nil
	}
	return s.Source.Tensor(name)
}

func (scaledSource) ProjectionScaled() bool { return true }

func TestProjectionWithItsScale(t *testing.T) { // invariant: a source that has folded the scale in = the rule that folds it in
	const name = "per_layer_model_projection.weight"
	c := gemmatest.Config()
	src := gemmatest.New(c, 3)
	folds := arith.NewANE(arith.ANERules{PLEScale: arith.PLEScaleFolded}, 2)
	plain, err := src.Tensor(name)
	require.NoError(t, err)
	m, err := quant.Dense(plain)
	require.NoError(t, err)
	scaled, rest := folds.ScaledWeight(m, 1/math.Sqrt(float64(c.HiddenSize)))
	require.Equal(t, 1.0, rest)
	held := quant.Tensor{Name: name, DType: quant.F32, Shape: plain.Shape}
	row := make([]float32, m.Cols())
	for r := range m.Rows() {
		scaled.Row(row, r)
		for _, v := range row {
			held.Data = binary.LittleEndian.AppendUint32(held.Data, math.Float32bits(v))
		}
	}
	want, err := gemma4.Load(c, src, folds, gemma4.Options{})
	require.NoError(t, err)
	got := load(t, c, scaledSource{src, held}, "ane")
	require.Equal(t, logitsOf(t, want, prompt(11), 11), logitsOf(t, got, prompt(11), 11))
	require.NotEqual(t, logitsOf(t, small(t, "ane"), prompt(11), 11), logitsOf(t, got, prompt(11), 11))
}
