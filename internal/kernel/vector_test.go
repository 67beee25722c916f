package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

func TestLanesAddInTheCanonicalOrder(t *testing.T) { // hand: number i of a sum that begins at first is added to lane (first+i) mod 8
	r := rand.New(rand.NewPCG(31, 32))
	onEveryPath(t, func(t *testing.T) {
		for n := range 41 {
			for first := range 9 {
				x := normal(r, n)
				var got, want Lanes
				for i, v := range x {
					want[(first+i)%8] += float64(v)
				}
				got.AddLanes(x, first)
				require.Equal(t, want, got, "%d numbers from %d", n, first)
			}
		}
	})
}

func TestDot64IsTheSameOnEveryPath(t *testing.T) { // oracle: the plain loop over lanes
	r := rand.New(rand.NewPCG(33, 34))
	onEveryPath(t, func(t *testing.T) {
		for n := range 70 {
			x, y := normal(r, n), normal(r, n)
			var l Lanes
			for i := range x {
				l[i%8] += float64(x[i]) * float64(y[i])
			}
			require.Equal(t, l.Sum(), Dot64(x, y), "n=%d", n)
		}
	})
}

func TestElementwiseLoops(t *testing.T) { // oracle: one float32 operation after the other
	r := rand.New(rand.NewPCG(35, 36))
	onEveryPath(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 15, 16, 33, 61} {
			x, g, gained, divided := normal(r, n), normal(r, n), make([]float32, n), make([]float32, n)
			MulGain(gained, x, g, 0.3)
			Divide(divided, x, 0.7)
			greatest := float32(math.Inf(-1))
			for i, v := range x {
				require.Equal(t, float32(v*0.3)*g[i], gained[i])
				require.Equal(t, v/0.7, divided[i])
				greatest = max(greatest, v)
			}
			require.Equal(t, greatest, Max(x))
			bytes, decoded := make([]byte, n), make([]float32, n)
			for i := range bytes {
				bytes[i] = byte(i * 37)
			}
			DecodeI8(decoded, bytes, 0.1)
			for i, b := range bytes {
				require.Equal(t, float32(int8(b))*0.1, decoded[i])
			}
		}
	})
}

func TestSoftCap(t *testing.T) { // oracle: float64 math; invariants: odd, its own operand only, NaN stays
	onEveryPath(t, func(t *testing.T) {
		var x []float32
		for v := float32(-400); v < 400; v += 0.37 {
			x = append(x, v, v/1000)
		}
		y := make([]float32, len(x))
		SoftCap(y, x, 30)
		for i, v := range x {
			want := 30 * math.Tanh(float64(v/30))
			require.InDelta(t, want, y[i], 5e-7*math.Abs(want), "%v", v)
			one := []float32{-v}
			SoftCap(one, one, 30)
			require.Equal(t, -y[i], one[0], "%v", v)
		}
		SoftCap(y[:17], []float32{float32(math.NaN()), float32(math.Inf(1)), 16: 0}, 30)
		require.True(t, math.IsNaN(float64(y[0])))
		require.Equal(t, []float32{30, 0, 0}, []float32{y[1], y[2], y[16]})
	})
}

func TestMixHalves(t *testing.T) { // oracle: float64 sums; invariant: a column of a head is the same in any company
	r := rand.New(rand.NewPCG(37, 38))
	onEveryPath(t, func(t *testing.T) {
		for _, c := range []Mixing{{1, 1, 1, 1, 1, 1}, {3, 12, 12, 5, 5, 12}, {8, 64, 70, 9, 7, 80}, {17, 48, 48, 6, 6, 50}, {5, 32, 32, 3, 2, 32}} {
			o, p, v := normal(r, c.Heads*c.Width), normal(r, c.Heads*c.Positions), make([]uint16, c.Rows*c.Stride)
			EncodeF16(v, normal(r, len(v)))
			got := append([]float32{}, o...)
			MixHalves(got, p, v, c)
			for h := range c.Heads {
				for k := range c.Width {
					want := float64(o[h*c.Width+k])
					for i := range c.Rows {
						if k < c.Columns {
							want += float64(p[h*c.Positions+i]) * float64(half.F16ToF32(v[i*c.Stride+k]))
						}
					}
					require.InDelta(t, want, got[h*c.Width+k], 1e-5, "%+v: head %d column %d", c, h, k)
				}
			}
			alone, one := append([]float32{}, o[:c.Width]...), c
			one.Heads = 1
			for i := range c.Rows { // row by row
				one.Rows = 1
				MixHalves(alone, p[i:], v[i*c.Stride:], one)
			}
			require.Equal(t, alone, got[:c.Width], "%+v", c)
		}
		require.Panics(t, func() { MixHalves(make([]float32, 4), make([]float32, 4), make([]uint16, 3), Mixing{1, 4, 4, 4, 1, 4}) })
	})
}

func BenchmarkMixHalves(b *testing.B) {
	const heads, d, n = 8, 512, 2048
	m := Mixing{Heads: heads, Columns: d, Width: d, Positions: n, Rows: n, Stride: d}
	o, p, v := make([]float32, heads*d), make([]float32, heads*n), make([]uint16, n*d)
	for b.Loop() {
		MixHalves(o, p, v, m)
	}
	b.ReportMetric(float64(b.N)*2*heads*d*n/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
