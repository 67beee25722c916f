package half

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNUM10SubnormalHalvesDecodeExactly(t *testing.T) { // hand: m·2^-24 below 0x0400
	for _, c := range []struct {
		bits uint16
		want float64
	}{
		{0x0001, 0x1p-24}, {0x03ff, 1023 * 0x1p-24}, {0x0400, 0x1p-14}, {0x8001, -0x1p-24},
		{0x7bff, 65504}, {0xfc00, math.Inf(-1)}, {0x3c00, 1},
	} {
		require.Equal(t, c.want, float64(F16ToF32(c.bits)), "%#04x", c.bits)
	}
}

func TestNUM11BF16RoundTripIsIdentity(t *testing.T) {
	for b := range 1 << 16 {
		x := BF16ToF32(uint16(b))
		if math.IsNaN(float64(x)) {
			require.True(t, math.IsNaN(float64(RoundBF16(x))), "%#04x", b)
			continue
		}
		require.Equal(t, uint16(b), F32ToBF16(x), "%#04x", b)
	}
	require.True(t, math.IsInf(float64(BF16AsF16Table()[0x4780]), 1), "65536 has no finite fp16")
	require.Equal(t, float32(65280), BF16AsF16Table()[0x477f])
}

func TestF16RoundTripIsIdentity(t *testing.T) {
	for b := range 1 << 16 {
		x := F16Table()[b]
		if math.IsNaN(float64(x)) {
			continue
		}
		require.Equal(t, uint16(b), F32ToF16(x), "%#04x", b)
	}
}

// Oracle: nearest fp16 found by search in float64 over the exactly known grid.
func TestRoundF16TiesToEven(t *testing.T) {
	tab := F16Table()
	for b := uint16(0); b < 0x7bff; b += 7 {
		lo, hi := float64(tab[b]), float64(tab[b+1])
		mid := float32((lo + hi) / 2) // exact: one more bit than fp16 has
		want := b
		if b&1 == 1 {
			want = b + 1
		}
		require.Equal(t, want, F32ToF16(mid), "tie above %#04x", b)
		require.Equal(t, b, F32ToF16(math.Nextafter32(mid, 0)))
		require.Equal(t, b+1, F32ToF16(math.Nextafter32(mid, 1e9)))
	}
}

func TestNUM01OverflowAndSaturation(t *testing.T) { // hand
	require.Equal(t, float32(65504), RoundF16(65519))
	require.True(t, math.IsInf(float64(RoundF16(65520)), 1))
	require.True(t, math.IsInf(float64(RoundF16(60000+8000)), 1))
	require.Equal(t, float32(65504), RoundF16Saturate(92580))
	require.Equal(t, float32(-65504), RoundF16Saturate(-92580))
	require.True(t, math.IsInf(float64(RoundF16Saturate(float32(math.Inf(-1)))), -1))
	require.True(t, math.IsNaN(float64(RoundF16Saturate(float32(math.NaN())))))
}

func TestNUM15FiniteSentinelsSaturateInfinitiesStay(t *testing.T) { // hand: coremltools' cast of a mask constant
	inf := float32(math.Inf(1))
	in := []float32{-3.4028e38, 0, 1e5, -1e5, inf, -inf}
	want := []float32{-65504, 0, 65504, -65504, inf, -inf}
	for i := range in {
		require.Equal(t, want[i], RoundF16Saturate(in[i]))
	}
}
