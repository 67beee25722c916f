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

// requireNear compares the first input's results with float64 sums, within what the arithmetic allows.
func requireNear(t *testing.T, m *Palette4, x, got []float32) {
	t.Helper()
	row := make([]float32, m.Cols)
	for i := range m.Rows {
		m.Row(row, i)
		require.InDelta(t, Dot64(row, x), float64(got[i]), errorBound(m, row, x, i/GroupRows), "row %d of %d", i, m.Rows)
	}
}

// errorBound is how far a row's result may be from the exact sum Σ w·x, with u = 2^-24 the rounding of float32:
//
//	inputs    |w|·(scale/2 + 4u·|x|)           22 bits of the block's greatest; the inverse, its product, the scale and its product round
//	palette   S/2·|x|                          entries that are no multiple of S = 2^-15 of the group's power of two
//	sums      (blocks+4)·u·|w|·(|x|+2048·scale) two exact sums a block become floats, are scaled and added; a low digit has up to 1024
func errorBound(m *Palette4, w, x []float32, group int) float64 {
	const u = 0x1p-24
	step := float64(getFloat(m.tables[group*groupTable+32:]))
	bound := 0.0
	for b := 0; b < len(x); b += digitCols {
		block, peak := x[b:min(b+digitCols, len(x))], 0.0
		for _, v := range block {
			peak = max(peak, math.Abs(float64(v)))
		}
		scale := peak / digitLimit
		for k, v := range block {
			weight, input := math.Abs(float64(w[b+k])), math.Abs(float64(v))
			bound += weight * (scale/2 + 4*u*input)
			if math.Mod(weight, step) != 0 {
				bound += step / 2 * input
			}
			bound += float64(len(x)/digitCols+5) * u * weight * (input + 2048*scale)
		}
	}
	return bound * (1 + 0x1p-10) // products of errors
}

// hand: 64 weights of 1 and inputs of 1. A palette of 1, ½ … is exact; one scale is 1/(1023·2048).
func TestErrorBound(t *testing.T) {
	m := NewPalette4(64, 64)
	m.LUT[0], m.LUT[1] = 1, 0x1p-20 // the second is below the step of 2^-14
	m.Seal()
	ones, tiny := make([]float32, 64), make([]float32, 64)
	for i := range ones {
		ones[i], tiny[i] = 1, 0x1p-20
	}
	scale := 1.0 / (1023 * 2048)
	require.InEpsilon(t, 64*(scale/2+0x1p-22+6*0x1p-24*(1+2048*scale))*(1+0x1p-10), errorBound(m, ones, ones, 0), 1e-12)
	require.InEpsilon(t, 64*0x1p-15, errorBound(m, tiny, ones, 0), 2e-2, "a weight that is lost")
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
