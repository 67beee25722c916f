package kernel

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// random numbers that are multiples of 2^-7 below 4, so that sums of products are exact in any order.
func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(1025)-512) / 128
	}
	return x
}

func TestDotsAreExactOnExactData(t *testing.T) { // invariant: any order gives the same sum
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 67 {
		x, y, z := random(r, n), random(r, n), random(r, n)
		var want, wantZ float64
		for i := range x {
			want += float64(x[i]) * float64(y[i])
			wantZ += float64(x[i]) * float64(z[i])
		}
		require.Equal(t, want, Dot64(x, y), "n=%d", n)
		require.Equal(t, float32(want), Dot(x, y), "n=%d", n)
		a, b := DotPair(x, y, z)
		require.Equal(t, float32(want), a, "n=%d", n)
		require.Equal(t, float32(wantZ), b, "n=%d", n)
	}
}

func TestDotPairEqualsDot(t *testing.T) { // invariant, on data where order shows
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 3, 4, 7, 61, 257} {
		x := make([][]float32, 3)
		for i := range x {
			x[i] = make([]float32, n)
			for k := range x[i] {
				x[i][k] = float32(r.NormFloat64())
			}
		}
		a, b := DotPair(x[0], x[1], x[2])
		require.Equal(t, Dot(x[0], x[1]), a)
		require.Equal(t, Dot(x[0], x[2]), b)
	}
}

func TestDot64CanonicalOrder(t *testing.T) { // hand: 2^53 + 1 + 1 shows in which lane the ones were added
	big := float32(1 << 30)
	x, y := make([]float32, 19), make([]float32, 19)
	x[0], y[0] = big, 1<<23 // 2^53 in lane 0
	x[8], y[8] = 1, 1       // lane 0: lost, 2^53+1 rounds to even
	x[16], y[16] = 1, 1     // lane 0: lost again
	require.Equal(t, math.Ldexp(1, 53), Dot64(x, y))
	x[8], x[9], y[9] = 0, 1, 1 // lane 1: meets lane 0 only after both ones... one is lost in lane 0
	require.Equal(t, math.Ldexp(1, 53), Dot64(x, y))
	x[16], x[17], y[17] = 0, 1, 1 // both in lane 1: 2 survives
	require.Equal(t, math.Ldexp(1, 53)+2, Dot64(x, y))
}

type mark struct{ seen []atomic.Int32 }

func (m *mark) Run(lo, hi int) {
	for i := lo; i < hi; i++ {
		m.seen[i].Add(1)
	}
}

func TestPoolVisitsEveryRowOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		for _, n := range []int{0, 1, 7, 64, 101} {
			m := &mark{seen: make([]atomic.Int32, n)}
			SharedPool(threads).Do(n, 3, m)
			for i := range m.seen {
				require.Equal(t, int32(1), m.seen[i].Load(), "row %d of %d, %d threads", i, n, threads)
			}
		}
	}
}

func TestPoolAllocatesNothing(t *testing.T) {
	m, p := &mark{seen: make([]atomic.Int32, 64)}, SharedPool(2)
	require.Zero(t, testing.AllocsPerRun(20, func() { p.Do(64, 4, m) }))
}

func BenchmarkDot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y, z := random(r, 1536), random(r, 1536), random(r, 1536)
	var sink float64
	b.Run("f32", func(b *testing.B) {
		for b.Loop() {
			sink += float64(Dot(x, y))
		}
	})
	b.Run("f32pair", func(b *testing.B) {
		for b.Loop() {
			p, q := DotPair(x, y, z)
			sink += float64(p + q)
		}
	})
	b.Run("f64", func(b *testing.B) {
		for b.Loop() {
			sink += Dot64(x, y)
		}
	})
}
