package view

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThreeSignificantDigits(t *testing.T) { // hand
	for want, x := range map[string]float64{
		"0": 0, "33.6": 33.629, "5.59": 5.593, "0.645": 0.6451, "0.0500": 0.05, "1142": 1141.5, "100": 99.96, "10.0": 9.996, "1.00": 0.9996,
		"+Inf": math.Inf(1), "1e-05": 1e-5, "1.23e+06": 1234567,
	} {
		require.Equal(t, want, sig(x), "%v", x)
	}
}

func TestSigned(t *testing.T) { // hand
	require.Equal(t, "+1.79", signed(1.79e-3))
	require.Equal(t, "−0.351", signed(-0.351e-3))
	require.Equal(t, "0", signed(-3.5e-18), "rounding of a sum is no difference")
	require.Equal(t, "−6.8%", plus("%+.1f%%", -6.84))
}

func TestShareSaysAllOnlyForAll(t *testing.T) { // hand
	require.Equal(t, "100%", share(7, 7))
	require.Equal(t, "99.99%", share(999999, 1000000))
	require.Equal(t, "0.00%", share(0, 3))
}
