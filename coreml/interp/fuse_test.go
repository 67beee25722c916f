package interp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/half"

	"github.com/stretchr/testify/require"
)

// precisionsAll is every rounding.
var precisionsAll = []interp.Precision{interp.Exact, interp.FP16, interp.ANE, interp.Fast}

// sameBits compares floats by their bits: zeros by sign, NaN with NaN.
func sameBits(t *testing.T, want, got *interp.Tensor, text string) {
	t.Helper()
	require.Equal(t, want.Shape, got.Shape, text)
	for i, w := range want.Floats {
		g := got.Floats[i]
		if math.Float32bits(w) != math.Float32bits(g) && !(w != w && g != g) {
			t.Fatalf("%s: element %d is %x, want %x", text, i, math.Float32bits(g), math.Float32bits(w))
		}
	}
}

// invariant: a sum of two products is the same bits whether its ops are tapped, and so run one by one, or not; for masked writes and
// rotations, with zeros of both signs, infinities and NaN, above and below the size from which cores share the work.
func TestSumOfProductsIsItsOps(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), 65504, -65504, 6e-8, 1}
	for _, rows := range []int{5, 131} {
		const d = 514
		b := newBuilder()
		cache := b.input("cache", mil.TensorOf(mil.Float16, 1, 1, int64(rows), d))
		row := b.input("row", mil.TensorOf(mil.Float16, 1, 1, 1, d))
		mask := b.input("mask", mil.TensorOf(mil.Float16, 1, 1, int64(rows), 1))
		cos := b.input("cos", mil.TensorOf(mil.Float16, 1, 1, 1, d))
		old := b.one("mul", "x", cache, "y", b.one("sub", "x", f16(1), "y", mask))
		written := b.one("add", "x", old, "y", b.one("mul", "x", b.one("tile", "x", row, "reps", ints(1, 1, int32(rows), 1)), "y", mask))
		turned := b.one("add", "x", b.one("mul", "x", cache, "y", cos), "y", b.one("mul", "x", row, "y", cos))
		p := b.program(written, turned)
		r := rand.New(rand.NewPCG(3, uint64(rows)))
		inputs := map[string]*interp.Tensor{}
		for _, in := range p.Functions[0].Inputs {
			shape := make([]int, 4)
			for i, n := range in.Type.Shape {
				shape[i] = int(n)
			}
			x := interp.NewTensor(mil.Float16, shape...)
			for i := range x.Floats {
				if x.Floats[i] = half.RoundF16(r.Float32()*8 - 4); in.Name != "mask" && r.IntN(5) == 0 {
					x.Floats[i] = special[r.IntN(len(special))]
				}
			}
			if in.Name == "mask" {
				clear(x.Floats)
				x.Floats[3], x.Floats[4] = 1, 0.5
			}
			inputs[in.Name] = x
		}
		for _, precision := range precisionsAll {
			m, err := interp.New(p, interp.Options{Precision: precision})
			require.NoError(t, err)
			seen := map[string]bool{}
			want, err := m.Run(context.Background(), "main", inputs, interp.Call{Tap: func(name string, _ *interp.Tensor) { seen[name] = true }})
			require.NoError(t, err)
			require.True(t, seen[old], "tapped ops run one by one")
			got, err := m.Run(context.Background(), "main", inputs, interp.Call{})
			require.NoError(t, err)
			for name := range want {
				sameBits(t, want[name], got[name], precision.String())
			}
		}
	}
}

// hand: products that somebody else uses, that go out, that are one and the same, or that are integers are not taken away.
func TestSumOfProductsLeavesWhatIsUsed(t *testing.T) {
	b := newBuilder()
	x := b.input("x", mil.TensorOf(mil.Float16, 3))
	n := b.input("n", mil.TensorOf(mil.Int32, 3))
	two, three := b.one("mul", "x", x, "y", f16(2)), b.one("mul", "x", x, "y", f16(3))
	five := b.one("add", "x", two, "y", three)
	four := b.one("add", "x", two, "y", two)
	squares := b.one("add", "x", b.one("mul", "x", n, "y", n), "y", b.one("mul", "x", n, "y", mil.Scalar(int32(2))))
	out := b.run(t, interp.FP16, map[string]*interp.Tensor{"x": interp.F16([]float32{1, 2, 5}, 3), "n": interp.I32([]int32{1, 2, 5}, 3)}, five, four, three, squares)
	require.Equal(t, []float32{5, 10, 25}, out[five].Floats)
	require.Equal(t, []float32{4, 8, 20}, out[four].Floats)
	require.Equal(t, []float32{3, 6, 15}, out[three].Floats)
	require.Equal(t, []int32{3, 8, 35}, out[squares].Ints)
}

// hand: two operands that both repeat one element have no row to take the length from.
func TestOperandsThatBothRepeat(t *testing.T) {
	b := newBuilder()
	x := b.input("x", mil.TensorOf(mil.Float16, 2, 1))
	wide := b.one("tile", "x", x, "reps", ints(1, 5))
	product := b.one("mul", "x", wide, "y", f16(3))
	both := b.one("sub", "x", wide, "y", wide)
	sum := b.one("add", "x", b.one("mul", "x", wide, "y", f16(2)), "y", b.one("mul", "x", wide, "y", x))
	for _, precision := range precisionsAll {
		out := b.run(t, precision, map[string]*interp.Tensor{"x": interp.F16([]float32{2, 5}, 2, 1)}, product, both, sum)
		require.Equal(t, []float32{6, 6, 6, 6, 6, 15, 15, 15, 15, 15}, out[product].Floats)
		require.Equal(t, make([]float32, 10), out[both].Floats)
		require.Equal(t, []float32{8, 8, 8, 8, 8, 35, 35, 35, 35, 35}, out[sum].Floats)
	}
}
