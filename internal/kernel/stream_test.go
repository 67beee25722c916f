package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

func TestDigitsAreTheSameOnEveryPath(t *testing.T) { // invariant; and the digits give the input back to 24 bits
	r := rand.New(rand.NewPCG(17, 18))
	for _, n := range []int{1, 127, 128, 129, 300, 1536} {
		x := normal(r, 3*n)
		x[n/2] *= 1e4
		for i := range min(n, 128) {
			x[n+i] = 0 // a block of zeros
		}
		var want Digits
		before := active
		active = generic
		want.Set(x, 3)
		active = before
		for i, v := range x[:n] {
			block := want.block(0, i/BlockCols)
			k := i % BlockCols
			at := headBytes + k/8*octetBytes + k%2*4 + k%8/2
			got := float64(int8(block[at]))*65536 + float64(int8(block[at+8]))*256 + float64(int8(block[at+16]))
			got *= float64(getFloat(block[16:])) / 256
			var peak float64
			for _, u := range x[i/BlockCols*BlockCols : min((i/BlockCols+1)*BlockCols, n)] {
				peak = max(peak, math.Abs(float64(u)))
			}
			require.InDelta(t, float64(v), got, peak/6e6)
		}
		onEveryPath(t, func(t *testing.T) {
			var d Digits
			d.Set(x, 3)
			require.Equal(t, want.data, d.data, "n=%d", n)
		})
	}
}

func TestNotFiniteInputsStayVisible(t *testing.T) { // NUM-01: a NaN must not become a number
	m := randomPalette4(rand.New(rand.NewPCG(1, 1)), 64, 256)
	onEveryPath(t, func(t *testing.T) {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			x := make([]float32, 256)
			x[5], x[200] = 1, float32(bad)
			var d Digits
			d.Set(x, 1)
			y := make([]float32, 64)
			Palette4Rows(y, m, &d, 0, 2)
			for _, v := range y {
				require.False(t, v-v == 0, "%v gave %v", bad, v)
			}
		}
	})
}

func TestHalfStreams(t *testing.T) { // oracle: the scalar conversions
	r := rand.New(rand.NewPCG(19, 20))
	onEveryPath(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 15, 16, 17, 61} {
			x, h, f, b := normal(r, n), make([]uint16, n), make([]float32, n), make([]float32, n)
			EncodeF16(h, x)
			WidenF16(f, h)
			WidenBF16(b, h)
			for i := range x {
				require.Equal(t, half.F32ToF16(x[i]), h[i])
				require.Equal(t, half.RoundF16(x[i]), f[i])
				require.Equal(t, half.BF16ToF32(h[i]), b[i])
			}
		}
	})
}

func TestAxpy4(t *testing.T) { // hand: float64 sums
	r := rand.New(rand.NewPCG(21, 22))
	onEveryPath(t, func(t *testing.T) {
		for _, n := range []int{1, 16, 19, 64} {
			y, x, p := normal(r, n), normal(r, 4*(n+2)), [4]float32{0.5, -1.25, 3, 0.1}
			want := make([]float64, n)
			for i := range want {
				want[i] = float64(y[i])
				for k, w := range p {
					want[i] += float64(w) * float64(x[k*(n+2)+i])
				}
			}
			Axpy4(y, x, n+2, &p)
			for i := range want {
				require.InDelta(t, want[i], y[i], 3e-6)
			}
		}
	})
}

func TestExpShiftAndGELUMul(t *testing.T) { // oracle: float64 math
	onEveryPath(t, func(t *testing.T) {
		var x []float32
		for v := float32(-110); v < 12; v += 0.0137 {
			x = append(x, v)
		}
		y, z := make([]float32, len(x)), make([]float32, len(x))
		ExpShift(y, x, 1.5)
		for i, v := range x {
			want := math.Exp(float64(v - 1.5)) // the difference is a float32
			require.InDelta(t, want, y[i], 4e-7*want+1e-44, "exp(%v)", v-1.5)
			z[i] = 2
		}
		GELUMul(y, x, z)
		for i, v := range x {
			u := rootTwoOverPi * (float64(v) + 0.044715*math.Pow(float64(v), 3))
			want := float64(v) * (1 + math.Tanh(u))
			require.InDelta(t, want, y[i], 3e-6*math.Max(math.Abs(want), 1e-6), "gelu(%v)", v) // in the tail the exponent's rounding shows
		}
		inf := []float32{float32(math.Inf(-1)), float32(math.NaN())}
		inf = append(inf, make([]float32, 14)...)
		ExpShift(inf, inf, 0)
		require.Zero(t, inf[0])
	})
}

func TestElementsDoNotDependOnTheirPlace(t *testing.T) { // invariant: the same operand gives the same bits anywhere in a slice
	onEveryPath(t, func(t *testing.T) {
		x := normal(rand.New(rand.NewPCG(23, 24)), 41)
		e, g := make([]float32, 41), make([]float32, 41)
		ExpShift(e, x, 0.5)
		GELUMul(g, x, x)
		for i := range x {
			one := []float32{x[i]}
			ExpShift(one, one, 0.5)
			require.Equal(t, e[i], one[0])
			GELUMul(one, x[i:i+1], x[i:i+1])
			require.Equal(t, g[i], one[0])
		}
	})
}

func TestReadRateReadsEverything(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		j := &readJob{memory: make([]byte, readBlock)}
		for i := range j.memory {
			j.memory[i] = byte(i)
		}
		j.Run(0, 1)
		require.NotZero(t, j.sums[0])
		require.Positive(t, SharedPool(2).ReadRate(make([]byte, 2*readBlock), 1))
	})
}
