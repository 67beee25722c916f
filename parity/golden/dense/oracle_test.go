package dense

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gorgonia.org/tensor"

	"anelab/attention"
	"anelab/internal/arith"
	"anelab/internal/kernel"
	"anelab/parity"
	"anelab/quant"
	"anelab/swa"
)

// integers are n numbers from −9 to 9, exact in every storage type: sums of thousands of their products are exact in float32, in
// whatever order a library adds, so three authors must agree to the bit.
func integers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(19) - 9)
	}
	return x
}

func bytesOf(x []float32) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func mode(t *testing.T, name string) arith.Arithmetic {
	t.Helper()
	a, err := arith.New(name, 2)
	require.NoError(t, err)
	return a
}

// gorgoniaProduct is x [t, n] · wᵀ with w [m, n].
func gorgoniaProduct(t *testing.T, x, w []float32, rows, m, n int) []float32 {
	wt := New(w, m, n)
	require.NoError(t, wt.T())
	y, err := tensor.MatMul(New(x, rows, n), wt)
	require.NoError(t, err)
	values, _ := Contiguous(y.(*tensor.Dense))
	return values
}

// gonumProduct is the same in float64.
func gonumProduct(x, w []float32, rows, m, n int) []float32 {
	wide := func(v []float32) []float64 {
		out := make([]float64, len(v))
		for i := range v {
			out[i] = float64(v[i])
		}
		return out
	}
	var y mat.Dense
	y.Mul(mat.NewDense(rows, n, wide(x)), mat.NewDense(m, n, wide(w)).T())
	out := make([]float32, 0, rows*m)
	for i := range rows {
		for j := range m {
			out = append(out, float32(y.At(i, j)))
		}
	}
	return out
}

func TestLinearAgainstTwoLibraries(t *testing.T) { // oracle: gorgonia 0.9.24, gonum 0.17.0
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct{ rows, m, n int }{{1, 1, 1}, {1, 7, 3}, {3, 5, 17}, {2, 33, 64}, {5, 19, 130}, {8, 48, 257}} {
		x, w := integers(r, s.rows*s.n), integers(r, s.m*s.n)
		want := gonumProduct(x, w, s.rows, s.m, s.n)
		require.Equal(t, want, gorgoniaProduct(t, x, w, s.rows, s.m, s.n), "the libraries agree with each other")
		matrix, err := quant.Dense(quant.Tensor{Name: "w", DType: quant.F32, Shape: []int{s.m, s.n}, Data: bytesOf(w)})
		require.NoError(t, err)
		for _, name := range arith.Modes {
			a := mode(t, name)
			y := make([]float32, len(want))
			a.Linear(y, a.Weight(matrix), x, s.rows)
			rounded := append([]float32(nil), want...)
			a.Store(rounded) // the one rounding that the mode adds
			require.Equal(t, rounded, y, "%s %+v", name, s)
		}
		if s.rows == 1 && s.m == 1 {
			require.Equal(t, want[0], kernel.Dot(x, w))
		}
	}
}

func TestReductionsAgainstTwoLibraries(t *testing.T) { // oracle
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 7, 8, 9, 63, 257} {
		x, y := integers(r, n), integers(r, n)
		sum, err := New(x, n).Sum()
		require.NoError(t, err)
		largest, err := New(x, n).Max()
		require.NoError(t, err)
		for _, name := range arith.Modes {
			a := mode(t, name)
			require.Equal(t, sum.ScalarValue(), a.Sum(x), "%s n=%d", name, n)
			require.Equal(t, largest.ScalarValue(), a.Max(x), "%s n=%d", name, n)
		}
		want := gonumProduct(x, y, 1, 1, n)[0]
		require.Equal(t, want, kernel.Dot(x, y))
		require.Equal(t, float64(want), kernel.Dot64(x, y))
	}
}

func TestSoftmaxAgainstGorgonia(t *testing.T) { // oracle; theirs sums in float32 order and takes another exponential
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 13, 64, 515} {
		x := integers(r, n)
		want, err := tensor.SoftMax(New(append([]float32(nil), x...), 1, n), 1)
		require.NoError(t, err)
		got := append([]float32(nil), x...)
		mode(t, "f32").Softmax(got, []swa.Span{{Lo: 0, Hi: n}})
		d := parity.Compare(got, want.Data().([]float32), parity.Options{})
		require.NoError(t, parity.Tolerance{Rel: 3e-6}.Check(d), "n=%d", n)
	}
}

// TestAttentionAgainstGorgonia composes softmax(q·Kᵀ)·V out of another library's operations.
func TestAttentionAgainstGorgonia(t *testing.T) { // oracle
	r := rand.New(rand.NewPCG(7, 8))
	const heads, kvHeads, d, n = 6, 2, 5, 11
	store := swa.NewLinear(swa.Shape{KVHeads: kvHeads, HeadDim: d}, n)
	k, v, q := integers(r, n*kvHeads*d), integers(r, n*kvHeads*d), integers(r, heads*d)
	for i := range q {
		q[i] /= 16 // keeps the exponents in a range where several positions count
	}
	store.Stage(0, k, v)
	out := make([]float32, heads*d)
	attention.Attend(mode(t, "f32"), attention.Query{Pos: n - 1, Q: q, Out: out, HeadDim: d,
		Keys: store.Keys(), Values: store.Values(), Policy: attention.Full{}, Runs: attention.Runs(attention.Full{}, heads, kvHeads)}, new(attention.Scratch), nil)

	for h := range heads {
		g := h / (heads / kvHeads)
		scores := gorgoniaProduct(t, q[h*d:(h+1)*d], headRows(k, g, kvHeads, d), 1, n, d)
		p, err := tensor.SoftMax(New(scores, 1, n), 1)
		require.NoError(t, err)
		want, err := tensor.MatMul(p, New(headRows(v, g, kvHeads, d), n, d))
		require.NoError(t, err)
		diff := parity.Compare(out[h*d:(h+1)*d], want.Data().([]float32), parity.Options{})
		require.NoError(t, parity.Tolerance{PeakRel: 2e-6}.Check(diff), "head %d", h)
	}
}

// headRows picks KV head g out of rows [n, kvHeads, d].
func headRows(x []float32, g, kvHeads, d int) []float32 {
	var rows []float32
	for i := g * d; i < len(x); i += kvHeads * d {
		rows = append(rows, x[i:i+d]...)
	}
	return rows
}
