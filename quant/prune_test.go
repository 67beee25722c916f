package quant

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPruneByHand(t *testing.T) { // hand
	v := []float32{1, -2, 3, -4, 5, -6, 7, 0.5, -3, 2}
	m := matrix(t, F16, 2, 5, func(r, c int) float32 { return v[5*r+c] })
	at := PruneThreshold(m, 3)
	require.Equal(t, [][]float32{{0, 0, 0, -4, 5}, {-6, 7, 0, 0, 0}}, rowsOf(at))
	require.Equal(t, []byte{0b0111_1000, 0}, at.Mask())
	require.Equal(t, []int{4}, at.Values().Shape)
	require.Equal(t, int64(2+8), at.Bytes())
	require.Equal(t, DenseF16, at.Encoding())

	half, err := PruneMagnitude(m, 0.5) // the middle of ½ 1 2 2 3 3 4 5 6 7 lies between 3 and 3
	require.NoError(t, err)
	require.Equal(t, rowsOf(at), rowsOf(half))
	for share, left := range map[float64]int{0: 10, 1: 0, 0.1: 9, 0.99: 1} {
		p, err := PruneMagnitude(m, share)
		require.NoError(t, err)
		require.Equal(t, left, p.Values().Len(), share)
	}
	two, err := PruneNOfM(m, 1, 2)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{0, -2, 0, -4, 5}, {0, 7, 0, -3, 2}}, rowsOf(two), "the last is alone with a zero, which goes")

	ties, err := PruneNOfM(matrix(t, F32, 1, 8, func(int, int) float32 { return -1 }), 2, 4)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{0, 0, -1, -1, 0, 0, -1, -1}}, rowsOf(ties))
	y := make([]float32, 1)
	ties.MulVec(y, []float32{1, 1, 1, 1, 1, 1, 1, 10})
	require.Equal(t, []float32{-13}, y)
}

func TestPruneKeepsBitsOfLongRows(t *testing.T) { // invariant
	for _, dt := range []DType{F32, F16, BF16} {
		m := gauss(t, dt, 5, 700)
		s := PruneThreshold(m, 0.01)
		again, err := NewSparse(5, 700, s.Mask(), s.Values())
		require.NoError(t, err)
		back := rowsOf(again)
		p := newPruning(m)
		for r, row := range rowsOf(p.m) {
			for c, x := range row {
				if abs(x) <= p.narrow(0.01) {
					x = 0
				}
				require.Equal(t, x, back[r][c])
			}
		}
	}
}

func TestPruneRefuses(t *testing.T) {
	m := gauss(t, F16, 2, 6)
	for _, share := range []float64{-0.1, 1.1} {
		_, err := PruneMagnitude(m, share)
		require.ErrorContains(t, err, "want 0 to 1")
	}
	for _, nm := range [][2]int{{3, 2}, {1, 4}, {-1, 2}, {0, 0}} {
		_, err := PruneNOfM(m, nm[0], nm[1])
		require.ErrorContains(t, err, "at most half a row")
	}
	values := Tensor{DType: F16, Data: make([]byte, 4)}
	_, err := NewSparse(2, 4, []byte{0x11}, values)
	require.NoError(t, err)
	_, err = NewSparse(2, 4, []byte{0x13}, values)
	require.ErrorContains(t, err, "4 value bytes, want 6 for the 3 bits set")
	_, err = NewSparse(2, 4, []byte{1, 2}, values)
	require.ErrorContains(t, err, "2 mask bytes, want 1")
	_, err = NewSparse(2, 4, []byte{1}, Tensor{DType: I8})
	require.ErrorContains(t, err, "type i8")
}

// Oracle: numpy.percentile([0 … n−1], 50) in fp16 and in float32.
func TestPercentileHasTheWeightsType(t *testing.T) {
	for _, c := range []struct {
		dt   DType
		last int
		want float64
	}{{F16, 9, 4.5}, {F16, 4095, 2048}, {F32, 4095, 2047.5}, {F16, 99999, 49999.5}, {BF16, 4095, 2048}} {
		require.Equal(t, c.want, newPruning(gauss(t, c.dt, 1, 2)).position(0.5, c.last), "%s %d", c.dt, c.last)
	}
}
