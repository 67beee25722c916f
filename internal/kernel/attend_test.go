package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStrided(t *testing.T) { // invariants: canonical sums on every path; independent of the number of rows
	onEveryPath(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, n := range []int{1, 7, 16, 24, 61} {
			stride := n + 3
			w, x := normal(r, 11*stride), normal(r, n)
			for rows := range 11 {
				s32, s64, one := make([]float32, rows), make([]float64, rows), make([]float32, 1)
				Strided32(s32, w, stride, x)
				Strided64(s64, w, stride, x)
				for i := range rows {
					require.Equal(t, Dot64(w[i*stride:i*stride+n], x), s64[i])
					Strided32(one, w[i*stride:], stride, x)
					require.Equal(t, one[0], s32[i])
					require.InDelta(t, s64[i], s32[i], 1e-4)
				}
			}
		}
	})
}

func TestAxpy(t *testing.T) { // hand: the same sums in float64, exact products
	onEveryPath(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for n := range 70 {
			x, y32, y64 := normal(r, n), random(r, n), make([]float64, n)
			want, before := make([]float64, n), append([]float32(nil), y32...)
			for i := range y64 {
				y64[i] = float64(y32[i])
				want[i] = y64[i] + float64(float64(float32(0.3))*float64(x[i]))
			}
			Axpy64(y64, x, 0.3)
			require.Equal(t, want, y64)
			Axpy(y32, x, 0.3)
			for i := range y32 {
				require.InDelta(t, float64(before[i])+0.3*float64(x[i]), y32[i], 1e-6)
			}
		}
	})
}

func TestStridedRefusesRowsBeyondTheEnd(t *testing.T) {
	require.Panics(t, func() { Strided32(make([]float32, 2), make([]float32, 9), 5, make([]float32, 5)) })
	require.Panics(t, func() { Rows32(make([]float32, 4), make([]float32, 3), make([]float32, 1), 1) })
}
