package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// randomPalette4 is a matrix of random indices into normal palettes of fp16 entries.
func randomPalette4(r *rand.Rand, rows, cols int) *Palette4 {
	m := NewPalette4(rows, cols)
	for i := range m.LUT {
		m.LUT[i] = half.RoundF16(float32(r.NormFloat64()) / 16)
	}
	for row := range rows {
		for k := range cols {
			m.Set(row, k, byte(r.IntN(16)))
		}
	}
	m.Seal()
	return m
}

func TestPalette4Layout(t *testing.T) { // hand: row 33 is lane 1 of group 1; input 13 is nibble 5 of octet 1
	m := NewPalette4(70, 150)
	require.Equal(t, []int{4, 2, 4096}, []int{m.Groups(), m.Blocks(), m.Stride()})
	m.Set(33, 13, 0xb)
	require.Equal(t, byte(0xb0), m.Packed[4096+128+4+2])
	require.Equal(t, byte(0xb), m.Index(33, 13))
	m.Set(33, 13, 0x2)
	require.Equal(t, byte(0x20), m.Packed[4096+128+4+2])
}

func TestGemv4(t *testing.T) { // oracle: float64 sums of the decoded rows; invariant: every path gives the same bits
	r := rand.New(rand.NewPCG(13, 14))
	for _, shape := range [][2]int{{64, 128}, {70, 150}, {129, 61}, {96, 1536}} {
		m, x := randomPalette4(r, shape[0], shape[1]), normal(r, shape[1])
		x[3] *= 50 // an outlier takes precision from its block only
		var d Digits
		d.Set(x)
		want := make([]float32, m.Groups()*GroupRows)
		for g := 0; g < m.Groups(); g++ {
			gemv4Go(want[g*GroupRows:], m, &d, g)
		}
		row := make([]float32, shape[1])
		var peak float64
		for i := range shape[0] {
			m.Row(row, i)
			peak = max(peak, math.Abs(Dot64(row, x)))
		}
		for i := range shape[0] {
			m.Row(row, i)
			require.InDelta(t, Dot64(row, x)/peak, float64(want[i])/peak, 2e-5, "row %d of %v", i, shape)
		}
		onEveryPath(t, func(t *testing.T) {
			got := make([]float32, len(want))
			Gemv4(got, m, &d, 0, m.Groups())
			require.Equal(t, want, got)
			part := make([]float32, 2*GroupRows)
			Gemv4(part, m, &d, m.Groups()-2, m.Groups())
			require.Equal(t, want[len(want)-64:], part)
		})
	}
}

func TestDigitsOfZeros(t *testing.T) {
	var d Digits
	d.Set(make([]float32, 130))
	m := randomPalette4(rand.New(rand.NewPCG(1, 1)), 64, 130)
	y := make([]float32, 64)
	Gemv4(y, m, &d, 0, 2)
	require.Equal(t, make([]float32, 64), y)
}

func BenchmarkGemv4(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name       string
		rows, cols int
	}{{"L1", 64, 768}, {"L2", 512, 1536}, {"DRAM", 393216, 1536}} {
		m := NewPalette4(c.rows, c.cols)
		for i := range m.LUT {
			m.LUT[i] = float32(r.NormFloat64())
		}
		for i := range m.Packed {
			m.Packed[i] = byte(i * 37)
		}
		m.Seal()
		var d Digits
		d.Set(normal(r, c.cols))
		y := make([]float32, m.Groups()*GroupRows)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(m.Packed)))
			for b.Loop() {
				Gemv4(y, m, &d, 0, m.Groups())
			}
		})
	}
}
