package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// decoded is the integers and scales of one input, in the order of inputs.
func decoded(d *Digits, i int) (n []int32, scales []float32) {
	for b := range d.blocks {
		block := d.block(i, b)
		scales = append(scales, getFloat(block), getFloat(block[4:]))
		for k := range digitCols {
			h, l := digits(block, k, octetOrder())
			n = append(n, h<<digitBits+l)
		}
	}
	return n, scales
}

func TestDigitsAreTheSameOnEveryPath(t *testing.T) { // invariant; and the digits give the input back to 22 bits
	r := rand.New(rand.NewPCG(17, 18))
	for _, n := range []int{1, 127, 128, 129, 300, 1536} {
		x := normal(r, 3*n)
		x[n/2] *= 1e4
		for i := range min(n, 128) {
			x[n+i], x[2*n+i] = 0, x[2*n+i]*1e-35 // a block of zeros, and one that counts as zeros
		}
		var first []int32
		var firstScales []float32
		onEveryPath(t, func(t *testing.T) {
			var d Digits
			d.Set(x, 3)
			var got []int32
			var scales []float32
			for i := range 3 {
				n, s := decoded(&d, i)
				got, scales = append(got, n...), append(scales, s...)
			}
			if first == nil {
				first, firstScales = got, scales
			}
			require.Equal(t, first, got, "n=%d", n)
			require.Equal(t, firstScales, scales, "n=%d", n)
			for i, v := range x[:n] {
				var peak float64
				for _, u := range x[i/digitCols*digitCols : min((i/digitCols+1)*digitCols, n)] {
					peak = max(peak, math.Abs(float64(u)))
				}
				require.InDelta(t, float64(v), float64(got[i])*float64(scales[i/digitCols*2+1]), peak/2.5e6)
			}
			require.Zero(t, scales[2*len(scales)/3])
		})
	}
}

func TestDigitsReachTheirBounds(t *testing.T) { // hand: sums of 64 extreme products stay inside 32 bits
	m, x := NewPalette4(64, 128), make([]float32, 128)
	for i := range m.LUT {
		m.LUT[i] = -1
	}
	m.Seal()
	for i := range x {
		x[i] = 1024.0 / digitLimit // low digit −1024, high digit 1
	}
	x[0], x[64] = 1, 1
	want := -(126*1024.0/digitLimit + 2)
	onEveryPath(t, func(t *testing.T) {
		var d Digits
		d.Set(x, 1)
		h, l := digits(d.block(0, 0), 5, octetOrder())
		require.Equal(t, []int32{1, -1024}, []int32{h, l})
		y := make([]float32, 64)
		Palette4Rows(y, m, &d, 0, 2)
		require.InEpsilon(t, want, y[63], 1e-4)
	})
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
		require.True(t, math.IsNaN(float64(inf[1])))
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
