package interp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/arith"
	"anelab/internal/half"
	"anelab/quant"
	"anelab/swa"

	"github.com/stretchr/testify/require"
)

// random fp16 numbers about zero.
func random(seed uint64, n int, width float32) []float32 {
	r, x := rand.New(rand.NewPCG(seed, 7)), make([]float32, n)
	for i := range x {
		x[i] = half.RoundF16((r.Float32() - 0.5) * width)
	}
	return x
}

// invariant: what a graph writes with several ops is, bit for bit, what the ane mode of the model computes (design.md D1).
func TestGraphAndModelMeetInANE(t *testing.T) {
	a := arith.NewANE(arith.ANERules{}, 2)
	const heads, d, rows = 3, 26, 41
	t.Run("RMSNorm", func(t *testing.T) {
		g := &graph{builder: newBuilder(), hidden: d}
		x := g.input("x", mil.TensorOf(mil.Float16, 1, heads, d))
		y := g.norm(x, d, -1)
		in, gain := random(1, heads*d, 300), make([]float32, d)
		for i := range gain {
			gain[i] = 1 + float32(i%9)/32
		}
		want := make([]float32, len(in))
		a.RMSNorm(want, in, gain, d, 1e-6)
		require.Equal(t, want, g.run(t, interp.ANE, map[string]*interp.Tensor{"x": interp.F16(in, 1, heads, d)}, y)[y].Floats)
	})
	t.Run("RoPE", func(t *testing.T) {
		g := &graph{builder: newBuilder()}
		x := g.input("x", mil.TensorOf(mil.Float16, 1, 1, 1, d))
		g.input("cos_s", mil.TensorOf(mil.Float16, 1, 1, 1, d))
		g.input("sin_s", mil.TensorOf(mil.Float16, 1, 1, 1, d))
		y := g.rope(x, d, "s")
		in, cos, sin := random(2, d, 20), make([]float32, d), make([]float32, d)
		a.RopeTable(cos, sin, 513, arith.InvFreq(1e4, d, d/2))
		want := append([]float32{}, in...)
		a.RoPE(want, cos, sin)
		got := g.run(t, interp.ANE, map[string]*interp.Tensor{"x": interp.F16(in, 1, 1, 1, d), "cos_s": interp.F16(cos, 1, 1, 1, d), "sin_s": interp.F16(sin, 1, 1, 1, d)}, y)
		require.Equal(t, want, got[y].Floats)
	})
	t.Run("attention", func(t *testing.T) {
		g := &graph{builder: newBuilder(), heads: heads}
		q, k, v := g.input("q", mil.TensorOf(mil.Float16, 1, heads, 1, d)), g.input("k", mil.TensorOf(mil.Float16, 1, 1, rows, d)), g.input("v", mil.TensorOf(mil.Float16, 1, 1, rows, d))
		y := g.attention(q, k, v, g.input("mask", mil.TensorOf(mil.Float16, 1, 1, 1, rows)), rows, d)
		qs, ks, vs := random(3, heads*d, 2), random(4, rows*d, 2), random(5, rows*d, 2)
		store := swa.NewLinear(swa.Shape{KVHeads: 1, HeadDim: d, Elem: swa.Float16}, rows)
		store.Stage(0, ks, vs)
		store.Commit()
		spans, p, want := []swa.Span{{Hi: rows}}, make([]float32, heads*rows), make([]float32, heads*d)
		a.Scores(p, qs, store.Keys(), spans)
		for h := range heads {
			a.Softmax(p[h*rows:(h+1)*rows], spans)
		}
		a.Mix(want, p, store.Values(), spans)
		got := g.run(t, interp.ANE, map[string]*interp.Tensor{"q": interp.F16(qs, 1, heads, 1, d), "k": interp.F16(ks, 1, 1, rows, d), "v": interp.F16(vs, 1, 1, rows, d),
			"mask": interp.NewTensor(mil.Float16, 1, 1, 1, rows)}, y)
		require.Equal(t, want, got[y].Floats)
	})
	t.Run("palette", func(t *testing.T) {
		w := &weights{rand.New(rand.NewPCG(1, 2)), map[string]*quant.Palette{}}
		for _, places := range []int{1, 3, 9} { // one token takes another path than many
			g := &graph{builder: newBuilder(), w: w}
			x := g.input("x", mil.TensorOf(mil.Float16, 1, 128, 1, int64(places)))
			y := g.conv(x, "w", 96, 128)
			in := random(6, 128*places, 4)
			byRows, want := make([]float32, len(in)), make([]float32, 96*places)
			for i, v := range in {
				byRows[i%places*128+i/places] = v
			}
			a.Linear(want, w.named["w"], byRows, places)
			got := g.run(t, interp.ANE, map[string]*interp.Tensor{"x": interp.F16(in, 1, 128, 1, places)}, y)[y].Floats
			for i, v := range got {
				require.Equal(t, want[i%places*96+i/places], v)
			}
		}
	})
	t.Run("GELU and soft-cap", func(t *testing.T) {
		b := newBuilder()
		x := b.input("x", mil.TensorOf(mil.Float16, 999))
		gelu := b.one("gelu", "x", x, "mode", mil.Scalar("TANH_APPROXIMATION"))
		capped := b.one("mul", "x", b.one("tanh", "x", b.one("real_div", "x", x, "y", f16(30))), "y", f16(30))
		in := random(8, 999, 90)
		want := make([]float32, len(in))
		got := b.run(t, interp.ANE, map[string]*interp.Tensor{"x": interp.F16(in, 999)}, gelu, capped)
		a.GELU(want, in)
		require.Equal(t, want, got[gelu].Floats)
		a.SoftCap(want, in, 30)
		require.Equal(t, want, got[capped].Floats)
	})
}

// hand: 300·300 is beyond fp16.
func TestOverflow(t *testing.T) {
	for p, want := range map[interp.Precision]float32{interp.ANE: 65504, interp.FP16: float32(math.Inf(1)), interp.Exact: 90000, interp.Fast: 90000} {
		b := newBuilder()
		x := b.input("x", mil.TensorOf(mil.Float16, 1))
		y := b.one("mul", "x", x, "y", x)
		require.Equal(t, want, b.run(t, p, map[string]*interp.Tensor{"x": interp.F16([]float32{300}, 1)}, y)[y].Floats[0], p.String())
	}
}

// hand: a tensor that the program declares fp32 is not rounded to fp16, in any precision.
func TestFP32TensorsStayWide(t *testing.T) {
	for _, p := range []interp.Precision{interp.ANE, interp.FP16, interp.Exact, interp.Fast} {
		b := newBuilder()
		x := b.input("x", mil.TensorOf(mil.Float32, 1))
		y := b.one("add", "x", x, "y", mil.Scalar(float32(1)))
		z := b.one("cast", "x", y, "dtype", mil.Scalar("fp16"))
		got := b.run(t, p, map[string]*interp.Tensor{"x": {DType: mil.Float32, Shape: []int{1}, Floats: []float32{0x1p-12}}}, y, z)
		require.Equal(t, float32(1+0x1p-12), got[y].Floats[0], p.String())
		require.Equal(t, float32(1), got[z].Floats[0], p.String())
	}
}

func TestParsePrecision(t *testing.T) { // hand
	for _, p := range []interp.Precision{interp.ANE, interp.FP16, interp.Exact, interp.Fast} {
		got, err := interp.ParsePrecision(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	_, err := interp.ParsePrecision("fp61")
	require.ErrorContains(t, err, `did you mean "fp16"?`)
}
