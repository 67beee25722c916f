package arith

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// relative error in units of 2^-53.
func relULP(got, want float64) float64 {
	if want == 0 {
		return math.Abs(got) / 0x1p-1074
	}
	return math.Abs(got-want) / math.Abs(want) / 0x1p-53
}

func TestElementaryAgainstMath(t *testing.T) { // oracle: Go's math, whose results are within one ulp
	for x := -30.0; x < 30; x += 0.0137 {
		require.Less(t, relULP(Exp64(x), math.Exp(x)), 6.0, "exp %v", x)
		require.Less(t, relULP(Tanh64(x), math.Tanh(x)), 8.0, "tanh %v", x)
	}
	for x := 1e-3; x < 1e7; x *= 1.0173 {
		require.InDelta(t, math.Log(x), Log64(x), 4e-16*math.Max(1, math.Abs(math.Log(x))), "log %v", x)
	}
	for x := -131072.0; x < 131072; x += 17.31 {
		sin, cos := SinCos64(float64(float32(x)))
		wantSin, wantCos := math.Sincos(float64(float32(x)))
		require.InDelta(t, wantSin, sin, 4e-16, "sin %v", x)
		require.InDelta(t, wantCos, cos, 4e-16, "cos %v", x)
	}
}

func TestElementaryEdges(t *testing.T) { // hand
	require.Equal(t, 1.0, Exp64(0))
	require.Zero(t, Exp64(-800))
	require.Zero(t, Exp64(math.Inf(-1)))
	require.True(t, math.IsInf(Exp64(800), 1))
	require.True(t, math.IsNaN(Exp64(math.NaN())))
	require.Equal(t, 1.0, Tanh64(40))
	require.Equal(t, -1.0, Tanh64(math.Inf(-1)))
	require.Zero(t, Tanh64(0))
	require.Equal(t, 1e-9, Tanh64(1e-9))
	sin, cos := SinCos64(0)
	require.Equal(t, []float64{0, 1}, []float64{sin, cos})
	require.InDelta(t, 0, Log64(1), 1e-16)
}

// Oracle: the exponential series in 200-bit arithmetic.
func TestExpAgainstBigFloat(t *testing.T) {
	for _, x := range []float64{-17.3, -3.25, -0.001, 0.3, 1, 9.7, 20.5} {
		sum, term := big.NewFloat(1).SetPrec(200), big.NewFloat(1).SetPrec(200)
		for n := 1; n < 120; n++ {
			term.Mul(term, big.NewFloat(x))
			term.Quo(term, big.NewFloat(float64(n)))
			sum.Add(sum, term)
		}
		want, _ := sum.Float64()
		require.LessOrEqual(t, relULP(Exp64(x), want), 3.0, "exp %v", x)
	}
}

func TestROPE02FrequencyDividesByHeadWidth(t *testing.T) { // hand: spec forward.md §2.6
	full := InvFreq(1e6, 512, 64)
	require.InDelta(t, 0.94746353, full[1], 3e-8)
	require.InDelta(t, 0.18768843, full[31], 1e-8)
	require.InDelta(t, 0.033376247, full[63], 1e-9)
	require.Zero(t, full[64])
	require.Zero(t, full[255])
	sliding := InvFreq(1e4, 256, 128)
	require.InDelta(t, 0.93057204, sliding[1], 3e-8)
	require.InDelta(t, 0.01, sliding[64], 1e-9)
	require.InDelta(t, 1.0746078e-4, sliding[127], 1e-11)
}
