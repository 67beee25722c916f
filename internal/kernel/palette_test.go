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

func TestPalette4Rows(t *testing.T) { // oracle: float64 sums of the decoded rows; invariant: every path and batch gives the same bits
	r := rand.New(rand.NewPCG(13, 14))
	for _, shape := range [][2]int{{64, 128}, {70, 150}, {129, 61}, {96, 1536}} {
		const batch = 9
		m, x := randomPalette4(r, shape[0], shape[1]), normal(r, batch*shape[1])
		x[3] *= 50 // an outlier takes precision from its block only
		want := make([]float32, batch*m.Rows)
		onPath(generic, func() {
			var d Digits
			d.Set(x, batch)
			Palette4Rows(want, m, &d, 0, m.Groups())
		})
		requireNear(t, m, x[:shape[1]], want)
		onEveryPath(t, func(t *testing.T) {
			for n := 1; n <= batch; n++ {
				var d Digits
				d.Set(x[:n*m.Cols], n)
				got := make([]float32, n*m.Rows)
				Palette4Rows(got, m, &d, 0, m.Groups()-2)
				Palette4Rows(got, m, &d, m.Groups()-2, m.Groups())
				require.Equal(t, want[:len(got)], got, "%d inputs of %v", n, shape)
			}
		})
	}
}

// requireNear compares the first input's results with float64 sums, relative to the greatest. What shows is the outlier times entries
// that are small beside their palette's greatest, which 16 bits hold to 2^-17 of that.
func requireNear(t *testing.T, m *Palette4, x, got []float32) {
	t.Helper()
	row, want, peak := make([]float32, m.Cols), make([]float64, m.Rows), 0.0
	for i := range want {
		m.Row(row, i)
		want[i] = Dot64(row, x)
		peak = max(peak, math.Abs(want[i]))
	}
	for i := range want {
		require.InDelta(t, want[i]/peak, float64(got[i])/peak, 3e-5, "row %d of %d", i, m.Rows)
	}
}

func TestPalette4Wide(t *testing.T) { // invariant: Dot64 of the decoded row, on every path
	r := rand.New(rand.NewPCG(15, 16))
	for _, shape := range [][2]int{{64, 128}, {70, 150}, {96, 1536}} {
		m, x := randomPalette4(r, shape[0], shape[1]), normal(r, shape[1])
		wide, row := make([]float64, m.Blocks()*BlockCols), make([]float32, m.Cols)
		for i, v := range x {
			wide[i] = float64(v)
		}
		onEveryPath(t, func(t *testing.T) {
			y := make([]float64, m.Groups()*GroupRows)
			Palette4Wide(y, m, wide, row, [2]int{0, m.Groups()})
			for i := range m.Rows {
				m.Row(row, i)
				require.Equal(t, Dot64(row, x), y[i], "row %d of %v", i, shape)
			}
		})
	}
}

func TestDigitsOfZeros(t *testing.T) {
	var d Digits
	d.Set(make([]float32, 130), 1)
	m := randomPalette4(rand.New(rand.NewPCG(1, 1)), 64, 130)
	y := make([]float32, 64)
	Palette4Rows(y, m, &d, 0, 2)
	require.Equal(t, make([]float32, 64), y)
}

func BenchmarkPalette4Wide(b *testing.B) {
	m := NewPalette4(512, 1536)
	m.Seal()
	x, row, y := make([]float64, 1536), make([]float32, 1536), make([]float64, 512)
	b.SetBytes(int64(len(m.Packed)))
	for b.Loop() {
		Palette4Wide(y, m, x, row, [2]int{0, m.Groups()})
	}
}

func BenchmarkPalette4(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name              string
		rows, cols, batch int
	}{{"L1/t=1", 64, 768, 1}, {"L2/t=1", 512, 1536, 1}, {"DRAM/t=1", 393216, 1536, 1}, {"L2/t=64", 512, 1536, 64}} {
		m := NewPalette4(c.rows, c.cols)
		for i := range m.LUT {
			m.LUT[i] = float32(r.NormFloat64())
		}
		for i := range m.Packed {
			m.Packed[i] = byte(i * 37)
		}
		m.Seal()
		var d Digits
		d.Set(normal(r, c.batch*c.cols), c.batch)
		y := make([]float32, c.batch*m.Rows)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(m.Packed)))
			for b.Loop() {
				Palette4Rows(y, m, &d, 0, m.Groups())
			}
			b.ReportMetric(float64(b.N)*2*float64(c.rows*c.cols*c.batch)/b.Elapsed().Seconds()/1e9, "GFLOPS")
		})
	}
}
