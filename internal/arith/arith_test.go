package arith

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
	"anelab/quant"
	"anelab/swa"
)

func mode(t testing.TB, name string) Arithmetic {
	t.Helper()
	a, err := New(name, 2)
	require.NoError(t, err)
	return a
}

func everyMode(t *testing.T, f func(t *testing.T, a Arithmetic)) {
	for _, name := range Modes {
		t.Run(name, func(t *testing.T) { f(t, mode(t, name)) })
	}
}

// stored returns n numbers between −4 and 4 as the mode stores them, made from integers so that every machine has the same.
func stored(a Arithmetic, seed uint64, n int) []float32 {
	r, x := rand.New(rand.NewPCG(seed, 77)), make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(1<<20)-1<<19) / (1 << 17)
	}
	a.Store(x)
	return x
}

func matrix(t testing.TB, values []float32, rows, cols int) quant.Matrix {
	t.Helper()
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	m, err := quant.Dense(quant.Tensor{Name: "w", DType: quant.F32, Shape: []int{rows, cols}, Data: data})
	require.NoError(t, err)
	return m
}

func TestNewRefusesUnknownMode(t *testing.T) {
	_, err := New("hf-bf61", 0)
	require.ErrorContains(t, err, `did you mean "hf-bf16"?`)
}

func TestFWD04RMSNormMultipliesByTheGainItself(t *testing.T) { // hand: rms of [3, 4] is √12.5
	everyMode(t, func(t *testing.T, a Arithmetic) {
		y := make([]float32, 2)
		a.RMSNorm(y, []float32{3, 4}, []float32{1, 2}, 2, 1e-6)
		require.InDelta(t, 0.8485281, y[0], 4e-3)
		require.InDelta(t, 2.2627417, y[1], 8e-3)
		a.RMSNorm(y, []float32{3, 4}, []float32{0.5, -0.25}, 2, 1e-6)
		require.InDelta(t, 0.4242641, y[0], 2e-3)
		require.InDelta(t, -0.2828427, y[1], 2e-3)
	})
}

func TestFWD05EmbeddingScale(t *testing.T) { // hand: √1536 as each mode holds it, times 1
	for name, want := range map[string]float32{"f32": 39.19183731, "hf-bf16": 39.25, "ane": half.RoundF16(39.19183731)} {
		y := make([]float32, 1)
		mode(t, name).EmbeddingScale(y, []float32{1}, math.Sqrt(1536))
		require.Equal(t, want, y[0], name)
	}
}

func TestFWD12GELUIsTheTanhForm(t *testing.T) { // hand: the erf form gives −0.169971, 1.954500, −0.0040497
	for _, c := range [][2]float64{{-0.75, -0.170039}, {2, 1.954598}, {-3, -0.0036374}} {
		require.InDelta(t, c[1], gelu64(c[0]), 1e-6)
	}
	y := make([]float32, 1)
	mode(t, "f32").GELU(y, []float32{-3})
	require.InDelta(t, -0.0036374, y[0], 1e-7)
}

func TestNUM01AddSaturatesOrOverflowsByRule(t *testing.T) { // hand
	y := make([]float32, 1)
	mode(t, "ane").Add(y, []float32{60000}, []float32{8000})
	require.Equal(t, float32(65504), y[0])
	NewANE(ANERules{Overflow: OverflowInfinite}, 1).Add(y, []float32{60000}, []float32{8000})
	require.True(t, math.IsInf(float64(y[0]), 1))
}

func TestNUM03GateTimesUp(t *testing.T) { // hand: 300·300 = 90000
	y := make([]float32, 1)
	mode(t, "ane").Mul(y, []float32{300}, []float32{300})
	require.Equal(t, float32(65504), y[0])
	mode(t, "hf-bf16").Mul(y, []float32{300}, []float32{300})
	require.InDelta(t, 90000, y[0], 200)
}

func TestNUM04IntermediatesOverflowNotOnlyInputs(t *testing.T) { // hand: 512 products of 16·22.6·… pass 65504 inside the sum
	a := NewANE(ANERules{Overflow: OverflowInfinite}, 1)
	q, s := make([]float32, 512), make([]float32, 1)
	store := swa.NewLinear(swa.Shape{KVHeads: 1, HeadDim: 512}, 1)
	for i := range q {
		q[i] = 90.5 // a query gain of 4 times √512 folded in
	}
	k := make([]float32, 512)
	for i := range k {
		k[i] = 4
	}
	store.Stage(0, k, k)
	a.Scores(s, q, store.Keys(), []swa.Span{{Lo: 0, Hi: 1}})
	require.True(t, math.IsInf(float64(s[0]), 1))
}

func TestNUM06EmptyRowGivesZeros(t *testing.T) {
	everyMode(t, func(t *testing.T, a Arithmetic) {
		o := []float32{7, 7, 7}
		a.Softmax(nil, nil)
		a.Mix(o, nil, swa.NewLinear(swa.Shape{KVHeads: 1, HeadDim: 3}, 1).Values(), nil)
		require.Equal(t, []float32{0, 0, 0}, o)
	})
}

func TestNUM07VeryNegativeScores(t *testing.T) { // hand: softmax of −60000, −60001; fp16 cannot tell them apart
	p := []float32{-60000, -60001}
	mode(t, "f32").Softmax(p, []swa.Span{{Lo: 0, Hi: 2}})
	require.InDelta(t, 0.7310586, p[0], 1e-6)
	require.InDelta(t, 0.2689414, p[1], 1e-6)
	p = []float32{-60000, -60032}
	mode(t, "ane").Softmax(p, []swa.Span{{Lo: 0, Hi: 2}})
	require.Equal(t, []float32{1, 0}, p)
}

func TestNUM13ScaleFreeNormIsNotZero(t *testing.T) { // a weightless norm of non-zero input has RMS 1
	everyMode(t, func(t *testing.T, a Arithmetic) {
		x := stored(a, 3, 61)
		y := make([]float32, 61)
		a.VNorm(y, x, 61, 1e-6)
		var sum float64
		for _, v := range y {
			sum += float64(v) * float64(v)
		}
		require.InDelta(t, 1, math.Sqrt(sum/61), 5e-3)
	})
}

func TestANERules(t *testing.T) { // hand
	y := make([]float32, 2)
	t.Run("v norm in five steps overflows at 256", func(t *testing.T) {
		a := NewANE(ANERules{VNorm: VNormFiveSteps, Overflow: OverflowInfinite}, 1)
		a.VNorm(y, []float32{256, 0}, 2, 1e-6)
		require.Equal(t, []float32{0, 0}, y, "256² is infinite, its rsqrt zero")
		mode(t, "ane").VNorm(y, []float32{256, 0}, 2, 1e-6)
		require.Equal(t, []float32{half.RoundF16(math.Sqrt2), 0}, y)
	})
	t.Run("eps is held as fp16", func(t *testing.T) {
		mode(t, "ane").VNorm(y, []float32{0, 0}, 2, 1e-6)
		require.Equal(t, []float32{0, 0}, y)
		small := []float32{0x1p-10, 0x1p-10} // x² = 9.5e-7, of the size of eps
		mode(t, "ane").VNorm(y, small, 2, 1e-6)
		require.Equal(t, half.RoundF16(float32(0x1p-10/math.Sqrt(0x1p-20+1.01327896e-6))), y[0])
		NewANE(ANERules{Eps: EpsExact}, 1).VNorm(y, small, 2, 1e-6)
		require.Equal(t, half.RoundF16(float32(0x1p-10/math.Sqrt(0x1p-20+1e-6))), y[0])
	})
	t.Run("soft-cap by the reciprocal", func(t *testing.T) {
		mode(t, "ane").SoftCap(y, []float32{20, 100}, 30)
		require.Equal(t, half.RoundF16(30*half.RoundF16(float32(math.Tanh(float64(half.RoundF16(20.0/30)))))), y[0])
		NewANE(ANERules{SoftCap: SoftCapMultiplies}, 1).SoftCap(y, []float32{20, 100}, 30)
		third := half.RoundF16(20 * 0.0333251953)
		require.Equal(t, half.RoundF16(30*half.RoundF16(float32(math.Tanh(float64(third))))), y[0])
	})
	t.Run("subnormals", func(t *testing.T) {
		mode(t, "ane").Mul(y, []float32{0x1p-10, 1}, []float32{0x1p-6, 1})
		require.Equal(t, float32(0x1p-16), y[0])
		NewANE(ANERules{Subnormals: SubnormalsFlushed}, 1).Mul(y, []float32{-0x1p-10, 1}, []float32{0x1p-6, 1})
		require.Zero(t, y[0])
		require.True(t, math.Signbit(float64(y[0])))
	})
	t.Run("fused softmax rounds once", func(t *testing.T) {
		p, span := []float32{0, -1, -2}, []swa.Span{{Lo: 0, Hi: 3}}
		NewANE(ANERules{Softmax: SoftmaxFused}, 1).Softmax(p, span)
		sum := 1 + math.Exp(-1) + math.Exp(-2)
		require.Equal(t, half.RoundF16(float32(math.Exp(-2)/sum)), p[2])
	})
	t.Run("folded scale", func(t *testing.T) {
		w := matrix(t, []float32{1, 3}, 1, 2)
		m, rest := NewANE(ANERules{PLEScale: PLEScaleFolded}, 1).ScaledWeight(w, 0.0255155)
		m.Row(y, 0)
		require.Equal(t, 1.0, rest)
		require.Equal(t, half.RoundF16(3*0.0255126953), y[1])
		_, rest = mode(t, "ane").ScaledWeight(w, 0.5)
		require.Equal(t, 0.5, rest)
	})
}

func TestLinearDoesNotDependOnBatchOrThreads(t *testing.T) { // invariant: bit for bit
	for _, name := range Modes {
		const rows, cols, batch = 37, 61, 9
		one, err := New(name, 1)
		require.NoError(t, err)
		many, err := New(name, 3)
		require.NoError(t, err)
		w := one.Weight(matrix(t, stored(one, 1, rows*cols), rows, cols))
		x := stored(one, 2, batch*cols)
		want, got, single := make([]float32, batch*rows), make([]float32, batch*rows), make([]float32, rows)
		one.Linear(want, w, x, batch)
		many.Linear(got, w, x, batch)
		require.Equal(t, want, got, name)
		for i := range batch {
			many.Linear(single, w, x[i*cols:(i+1)*cols], 1)
			require.Equal(t, want[i*rows:(i+1)*rows], single, "%s row %d", name, i)
		}
	}
}

func TestPrimitivesRoundOnce(t *testing.T) { // oracle: float64 value rounded to float32 and to storage
	everyMode(t, func(t *testing.T, a Arithmetic) {
		x, y := stored(a, 4, 97), stored(a, 5, 97)
		got, want := make([]float32, 97), make([]float32, 97)
		for name, op := range map[string]struct {
			run  func()
			real func(p, q float64) float64
		}{
			"add": {func() { a.Add(got, x, y) }, func(p, q float64) float64 { return p + q }},
			"sub": {func() { a.Sub(got, x, y) }, func(p, q float64) float64 { return p - q }},
			"mul": {func() { a.Mul(got, x, y) }, func(p, q float64) float64 { return p * q }},
			"div": {func() { a.Div(got, x, y) }, func(p, q float64) float64 { return p / q }},
		} {
			op.run()
			for i := range want {
				want[i] = float32(op.real(float64(x[i]), float64(y[i])))
			}
			a.Store(want)
			require.Equal(t, want, got, name)
		}
	})
}

func TestRoPETurnsPairs(t *testing.T) { // hand: position 1, first pair turns by one radian, the identity tail stays
	everyMode(t, func(t *testing.T, a Arithmetic) {
		freq := InvFreq(1e6, 16, 2)
		cos, sin := make([]float32, 16), make([]float32, 16)
		a.RopeTable(cos, sin, 1, freq)
		require.InDelta(t, 0.5403023, cos[0], 2e-3)
		require.InDelta(t, 0.8414710, sin[8], 2e-3)
		require.Equal(t, cos[:8], cos[8:], "ROPE-04: both halves hold the same values")
		x := make([]float32, 16)
		for i := range x {
			x[i] = float32(i)
		}
		a.RoPE(x, cos, sin)
		require.InDelta(t, -8*0.8414710, x[0], 0.04)
		require.InDelta(t, 8*0.5403023, x[8], 0.04)
		for i := 2; i < 8; i++ { // ROPE-03: a full rotation would move these
			require.Equal(t, float32(i), x[i])
			require.Equal(t, float32(i+8), x[i+8])
		}
	})
}

func TestROPE04TablesAtFarPositions(t *testing.T) { // hand: spec forward.md §2.6 and §9
	a := mode(t, "f32")
	cos, sin := make([]float32, 512), make([]float32, 512)
	a.RopeTable(cos, sin, 2047, InvFreq(1e6, 512, 64))
	require.InDelta(t, 0.7010955, cos[63], 3e-6)
	require.InDelta(t, -0.7130675, sin[63], 3e-6)
	for i := 64; i < 256; i++ {
		require.Equal(t, []float32{1, 0, 1, 0}, []float32{cos[i], sin[i], cos[i+256], sin[i+256]})
	}
	a.RopeTable(cos[:256], sin[:256], 2047, InvFreq(1e4, 256, 128))
	require.InDelta(t, 0.9759035, cos[127], 3e-6)
	require.InDelta(t, 0.2182025, sin[127], 3e-6)
}

func TestAttentionSumsByAbsolutePosition(t *testing.T) { // invariant: ring and linear stores give the same bits after the wrap
	everyMode(t, func(t *testing.T, a Arithmetic) {
		shape, n := swa.Shape{KVHeads: 1, HeadDim: 19}, 23
		ring, linear := swa.NewRing(shape, 9), swa.NewLinear(shape, n)
		k, v := stored(a, 6, n*19), stored(a, 7, n*19)
		for p := range n {
			for _, s := range []swa.Store{ring, linear} {
				s.Stage(p, k[p*19:(p+1)*19], v[p*19:(p+1)*19])
				s.Commit()
			}
		}
		spans, q := []swa.Span{{Lo: n - 9, Hi: n}}, stored(a, 8, 19)
		var outs [2][]float32
		for i, s := range []swa.Store{ring, linear} {
			p, o := make([]float32, 9), make([]float32, 19)
			a.Scores(p, q, s.Keys(), spans)
			a.Softmax(p, spans)
			a.Mix(o, p, s.Values(), spans)
			outs[i] = append(p, o...)
		}
		require.Equal(t, outs[0], outs[1])
	})
}

// hashOf runs every operation of a pinned mode on fixed inputs.
func hashOf(t *testing.T, name string) uint64 {
	a, h := mode(t, name), fnv.New64a()
	put := func(x []float32) {
		for _, v := range x {
			binary.Write(h, binary.LittleEndian, math.Float32bits(v))
		}
	}
	x, y := stored(a, 11, 7*61), make([]float32, 7*37)
	a.Linear(y, a.Weight(matrix(t, stored(a, 12, 37*61), 37, 61)), x, 7)
	put(y)
	for _, f := range []func(y, x []float32){a.Exp, a.Tanh, a.GELU,
		func(y, x []float32) { a.RMSNorm(y, x, x[:61], 61, 1e-6) },
		func(y, x []float32) { a.VNorm(y, x, 61, 1e-6) },
		func(y, x []float32) { a.SoftCap(y, x, 30) },
		func(y, x []float32) { copy(y, x); a.Softmax(y, []swa.Span{{Lo: 3, Hi: 3 + len(x)}}) }} {
		out := make([]float32, len(x))
		f(out, x)
		put(out)
	}
	cos, sin := make([]float32, 512), make([]float32, 512)
	for _, pos := range []int{1, 513, 2047, 100003} {
		a.RopeTable(cos, sin, pos, InvFreq(1e6, 512, 64))
		put(cos)
		put(sin)
	}
	return h.Sum64()
}

func TestPinnedModesHaveTheSameBitsEverywhere(t *testing.T) { // run also under arm64, purego and every kernel path
	require.Equal(t, uint64(pinnedHFBF16), hashOf(t, "hf-bf16"))
	require.Equal(t, uint64(pinnedANE), hashOf(t, "ane"))
}
