package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestRowsRefuseRowsBeyondTheEnd(t *testing.T) {
	require.Panics(t, func() { Rows32(make([]float32, 4), make([]float32, 3), make([]float32, 1), 1) })
}
