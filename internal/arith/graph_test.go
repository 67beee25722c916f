package arith

import (
	"math"
	"math/rand/v2"
	"testing"

	"anelab/internal/half"

	"github.com/stretchr/testify/require"
)

// storedValues are fp16 numbers, special ones among them; n is no multiple of any kernel's width.
func storedValues(seed uint64, n int) []float32 {
	r, x := rand.New(rand.NewPCG(seed, 1)), make([]float32, n)
	for i := range x {
		x[i] = half.F16ToF32(uint16(r.Uint32()))
	}
	return x
}

// same compares bits, NaNs by being NaN.
func same(t *testing.T, want, got []float32, name string) {
	t.Helper()
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) && (want[i] == want[i] || got[i] == got[i]) {
			t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], want[i])
		}
	}
}

// invariant: a graph's bulk operations give the bits of the mode's own, one value at a time.
func TestGraphHasTheBitsOfItsMode(t *testing.T) {
	for mode, a := range map[GraphMode]Arithmetic{GraphANE: NewANE(ANERules{}, 1), GraphFP16: NewANE(ANERules{Overflow: OverflowInfinite}, 1)} {
		g := NewGraph(mode, 2)
		x, y := storedValues(3, 70001), storedValues(5, 70001)
		want, got := make([]float32, len(x)), make([]float32, len(x))
		for name, op := range map[string]func(a Primitives, out []float32){
			"add": func(a Primitives, out []float32) { a.Add(out, x, y) }, "sub": func(a Primitives, out []float32) { a.Sub(out, x, y) },
			"mul": func(a Primitives, out []float32) { a.Mul(out, x, y) }, "div": func(a Primitives, out []float32) { a.Div(out, x, y) },
		} {
			op(a, want)
			op(g, got)
			same(t, want, got, name)
		}
		copy(want, x)
		for i := range want {
			want[i] *= 3.7
		}
		copy(got, want)
		a.Store(want)
		g.Store(got)
		same(t, want, got, "store")
	}
}

// invariant: ops with a rounding at their end are those of the mode where they coincide.
func TestGraphNormsAndProductsAreThoseOfTheMode(t *testing.T) {
	a, g := NewANE(ANERules{}, 1), NewGraph(GraphANE, 2)
	const rows, n = 5, 37
	x := make([]float32, rows*n)
	for i := range x {
		x[i] = half.RoundF16(float32(i%23)*0.37 - 3)
	}
	want, got := make([]float32, len(x)), make([]float32, len(x))
	for r := range rows {
		a.LayerNorm(want[r*n:(r+1)*n], x[r*n:(r+1)*n], 1e-6)
	}
	g.LayerNormRows(got, x, n, 1e-6, Affine{})
	same(t, want, got, "layer norm")

	w, wt := make([]float32, n*11), make([]float32, n*11) // [n, 11], and its transpose
	for i := range w {
		w[i] = half.RoundF16(float32(i%17)*0.21 - 1.3)
		wt[i%11*n+i/11] = w[i]
	}
	want, got = make([]float32, rows*11), make([]float32, rows*11)
	a.Linear(want, matrix(t, wt, 11, n), x, rows)
	g.Matmul(got, x, matrix(t, w, n, 11), rows)
	same(t, want, got, "matmul against linear of the transpose")
	g.LinearBias(got, matrix(t, wt, 11, n), x, rows, make([]float32, 11))
	same(t, want, got, "a bias of zeros changes nothing")
}

// hand: Σ = 2048 + 1 with bias −1 is 2048 rounded once; rounded twice it would be 2047.
func TestGraphAddsTheBiasBeforeRounding(t *testing.T) {
	g, y := NewGraph(GraphFP16, 1), make([]float32, 1)
	g.LinearBias(y, matrix(t, []float32{2048, 1}, 1, 2), []float32{1, 1}, 1, []float32{-1})
	require.Equal(t, float32(2048), y[0])
	g.Linear(y, matrix(t, []float32{2048, 1}, 1, 2), []float32{1, 1}, 1)
	require.Equal(t, float32(2048), y[0], "2049 is a tie, to even")
	g.LinearBias(y, matrix(t, []float32{2048, 1}, 1, 2), []float32{1, 1}, 1, []float32{2})
	require.Equal(t, float32(2052), y[0], "2051 is a tie, to even; 2048 + 2 would be 2050")
}
