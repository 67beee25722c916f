package quant

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var background = context.Background()

// matrix is a dense matrix of the given values.
func matrix(t testing.TB, dt DType, rows, cols int, value func(r, c int) float32) Matrix {
	t.Helper()
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = value(i/cols, i%cols)
	}
	m, err := Dense(tensor(t, dt, rows, cols, v))
	require.NoError(t, err)
	return m
}

// gauss are normally distributed weights.
func gauss(t testing.TB, dt DType, rows, cols int) Matrix {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	return matrix(t, dt, rows, cols, func(int, int) float32 { return float32(r.NormFloat64() * 0.02) })
}

func rowsOf(m Matrix) [][]float32 {
	out := make([][]float32, m.Rows())
	for r := range out {
		out[r] = make([]float32, m.Cols())
		m.Row(out[r], r)
	}
	return out
}

func TestUniformReproducesItsOwnGrid(t *testing.T) { // invariant: weights on the grid come back exactly
	m := matrix(t, F32, 6, 16, func(r, c int) float32 { return float32((16*r+c)*7%16)/8 - 1 + float32(r/2) }) // another offset in every group
	p, err := Palettize(background, m, Options{Mode: Uniform, Bits: 4, Group: 2}, nil)
	require.NoError(t, err)
	require.Equal(t, rowsOf(m), rowsOf(p))
}

// Invariant: what is cut along an axis is cut along the other for the transposed weights.
func TestAxesAreTransposes(t *testing.T) {
	m := gauss(t, F16, 12, 15)
	rows := rowsOf(m)
	turned := matrix(t, F16, 15, 12, func(r, c int) float32 { return rows[c][r] })
	for _, o := range []Options{
		{Mode: KMeans, Bits: 3, Group: 4}, {Mode: Uniform, Bits: 2, Group: 3}, {Mode: Unique, Bits: 8, Group: 1},
		{Mode: KMeans, Bits: 1, Group: 2, Vector: 2}, {Mode: KMeans, Bits: 2, Group: 6, ChannelScale: true},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			p, err := Palettize(background, m, o, nil)
			require.NoError(t, err)
			o.Axis = 1
			q, err := Palettize(background, turned, o, nil)
			require.NoError(t, err)
			require.Equal(t, 1, q.Encoding().Axis)
			if o.Vector > 1 { // starting points are drawn in another order; the result is as good
				here, err := Compare(m, p)
				require.NoError(t, err)
				there, err := Compare(turned, q)
				require.NoError(t, err)
				require.InEpsilon(t, here.SSE, there.SSE, 0.02)
				return
			}
			back := rowsOf(q)
			for r, row := range rowsOf(p) {
				for c, x := range row {
					require.Equal(t, x, back[c][r], "row %d column %d", r, c)
				}
			}
		})
	}
}

func TestQNT13OutputIndependentOfWorkers(t *testing.T) { // invariant; groups of 7·11 three-bit indices end in mid-byte
	for _, o := range []Options{{Bits: 3, Group: 7}, {Bits: 4, Group: 11, Axis: 1}, {Bits: 2, Group: 14, Vector: 2}, {Mode: Unique, Group: 7}} {
		m := gauss(t, BF16, 42, 11)
		if o.Mode == Unique {
			m = matrix(t, BF16, 42, 11, func(r, c int) float32 { return float32((r*r + c) % 13) })
		}
		var first *Palette
		for _, n := range []int{1, 2, 8} {
			old := runtime.GOMAXPROCS(n)
			p, err := Palettize(background, m, o, nil)
			runtime.GOMAXPROCS(old)
			require.NoError(t, err)
			if first == nil {
				first = p
			}
			require.Equal(t, first, p, "%d workers", n)
		}
	}
}

func TestQNT07UniqueValuesCountPerGroup(t *testing.T) { // hand
	seventeen := matrix(t, F16, 2, 17, func(r, c int) float32 { return float32(c) })
	_, err := Palettize(background, seventeen, Options{Mode: Unique, Bits: 4}, nil)
	require.ErrorContains(t, err, "group 0 of 1: 17 distinct values, want at most 16 in a table")
	p, err := Palettize(background, seventeen, Options{Mode: Unique}, nil)
	require.NoError(t, err)
	require.Equal(t, 6, p.Encoding().Bits, "there is no palette of 5 bits")
	require.Equal(t, rowsOf(seventeen), rowsOf(p))

	groups := matrix(t, F16, 64, 16, func(r, c int) float32 { return float32(16*(r/2) + c) }) // 512 values, 16 in each of 32 groups
	p, err = Palettize(background, groups, Options{Mode: Unique, Group: 2}, nil)
	require.NoError(t, err)
	require.Equal(t, 4, p.Encoding().Bits)
	require.Equal(t, rowsOf(groups), rowsOf(p))
	_, err = Palettize(background, groups, Options{Mode: Unique}, nil)
	require.ErrorContains(t, err, "512 distinct values, want at most 256")
}

func TestQNT06NonFiniteWeightsAreNamed(t *testing.T) { // hand: a mask with −Inf above the diagonal
	mask := func(low float32) Matrix {
		return matrix(t, F16, 64, 64, func(r, c int) float32 {
			if c > r {
				return low
			}
			return 0
		})
	}
	for _, o := range []Options{{Bits: 4, Group: 32}, {Mode: Uniform, Bits: 4, Group: 32}, {Mode: Unique, Group: 32}, {Bits: 4, Group: 32, Vector: 2}} {
		_, err := Palettize(background, mask(float32(math.Inf(-1))), o, nil)
		require.ErrorContains(t, err, "infinite or undefined f16 weights", o)
	}
	_, err := Quantize(mask(float32(math.Inf(-1))), LinearSpec{Integer: I8, Bits: 8}, Symmetric)
	require.ErrorContains(t, err, "infinite or undefined")
	_, err = Palettize(background, mask(float32(math.NaN())), Options{Bits: 2}, nil)
	require.ErrorContains(t, err, "2016 infinite or undefined")
	p, err := Palettize(background, mask(-1e4), Options{Bits: 1}, nil)
	require.NoError(t, err)
	require.Equal(t, rowsOf(mask(-1e4)), rowsOf(p))
	_, err = Palettize(background, matrix(t, BF16, 1, 2, func(_, c int) float32 { return 65536 * float32(c) }), Options{Bits: 1}, nil)
	require.ErrorContains(t, err, "1 infinite", "bf16 65536 has no fp16")
}

func TestQNT02ScaleFoldsIntoEntries(t *testing.T) { // invariant: one table per column decodes to the same bits as scaled tables
	p, err := Palettize(background, gauss(t, F16, 8, 5), Options{Bits: 4, Group: 4, ChannelScale: true}, nil)
	require.NoError(t, err)
	require.Len(t, p.Scale(), 5)
	tables, plain := p.ScaledTables(), *p
	require.Len(t, tables, 2*5*16)
	plain.scale = nil
	index := make([]byte, 40)
	Unpack(index, p.Indices(), 4, 0)
	for r, row := range rowsOf(p) {
		for c, x := range row {
			require.Equal(t, x, tables[16*(5*(r/4)+c)+int(index[5*r+c])])
		}
	}
	require.Equal(t, plain.lut, plain.ScaledTables())
}

func TestQNT03AndQNT05GatesSeeTheWorstRow(t *testing.T) {
	// Row r is 100^(r/31) times larger than row 0, so one table of 16 entries for all leaves the first rows at nothing.
	m := matrix(t, F16, 32, 64, func(r, c int) float32 { return float32(math.Sin(float64(r*64+c)) * math.Pow(100, float64(r)/31) / 100) })
	one, err := Palettize(background, m, Options{Bits: 4}, nil)
	require.NoError(t, err)
	each, err := Palettize(background, m, Options{Bits: 4, Group: 1}, nil)
	require.NoError(t, err)
	bad, err := Compare(m, one)
	require.NoError(t, err)
	good, err := Compare(m, each)
	require.NoError(t, err)
	gate := Gate{Cosine: 0.98, WorstCosine: 0.98}
	require.NoError(t, gate.Check(good), good)
	require.Greater(t, bad.Cosine, 0.99, "the mean does not see it")
	require.Less(t, bad.WorstCosine, 0.9)
	require.ErrorContains(t, gate.Check(bad), fmt.Sprintf("row %d: cosine", bad.WorstRow))
	require.ErrorContains(t, Gate{Cosine: 1}.Check(good), "cosine")
}

func TestPalettizeReports(t *testing.T) {
	m := gauss(t, BF16, 24, 10)
	var seen []int
	_, err := Palettize(background, m, Options{Bits: 4, Group: 2}, func(done, total int) {
		require.Equal(t, 12, total)
		seen = append(seen, done)
	})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, seen)

	ctx, cancel := context.WithCancel(background)
	groups := 0
	_, err = Palettize(ctx, m, Options{Bits: 4, Group: 2}, func(done, total int) { groups = done; cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, groups, 12)
	_, err = Palettize(ctx, m, Options{Mode: Unique}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPalettizeRefuses(t *testing.T) {
	m := gauss(t, F16, 6, 10)
	for want, o := range map[string]Options{
		"5 bits":                           {Bits: 5},
		"0 bits":                           {},
		"not divisible into groups of 4":   {Bits: 4, Group: 4},
		"not divisible into groups of 3":   {Bits: 4, Group: 3, Axis: 1},
		"axis 2":                           {Bits: 4, Axis: 2},
		"not divisible into vectors of 2":  {Bits: 4, Group: 3, Vector: 2},
		"vectors in mode uniform":          {Mode: Uniform, Bits: 4, Vector: 2},
		"axis -1 of a matrix, want 0 or 1": {Bits: 4, Axis: -1, ChannelScale: true},
	} {
		_, err := Palettize(background, m, o, nil)
		require.ErrorContains(t, err, want)
	}
	_, err := Palettize(background, matrix(t, F16, 1, 2, func(_, c int) float32 { return 60000 * float32(2*c-1) }), Options{Mode: Uniform, Bits: 1}, nil)
	require.ErrorContains(t, err, "from -60000 to 60000") // hand: the span overflows fp16
	_, err = ParseMode("kmean")
	require.ErrorContains(t, err, `did you mean "kmeans"?`)
}

// Of two faults the first group's is reported, whoever meets one first.
func TestFirstFaultIsReported(t *testing.T) {
	for range 20 {
		m := matrix(t, F16, 64, 3, func(r, c int) float32 {
			if r >= 40 {
				return float32(math.Inf(1))
			}
			return 1
		})
		_, err := Palettize(background, m, Options{Bits: 2, Group: 8}, nil)
		require.ErrorContains(t, err, "group 5 of 8")
	}
	require.Equal(t, "x", inGroup(errors.New("x"), 1, 2).Error())
}

func TestNonDenseWeightsCanBePalettized(t *testing.T) { // invariant: a palette of 16 entries fits into 16 entries
	p, err := Palettize(background, gauss(t, F16, 6, 40), Options{Bits: 4, Group: 3}, nil)
	require.NoError(t, err)
	for _, o := range []Options{{Bits: 4, Group: 3}, {Mode: Unique, Bits: 4, Group: 3}, {Mode: Unique, Group: 20, Axis: 1}} {
		again, err := Palettize(background, p, o, nil)
		require.NoError(t, err)
		require.Equal(t, rowsOf(p), rowsOf(again))
	}
}

func TestConstantAndZeroGroups(t *testing.T) { // hand
	for _, x := range []float32{0, 0.5} {
		m := matrix(t, F16, 4, 3000, func(int, int) float32 { return x })
		for _, o := range []Options{{Bits: 4}, {Bits: 2, Group: 1}, {Mode: Uniform, Bits: 3}, {Mode: Unique}, {Bits: 1, Vector: 2}, {Bits: 4, ChannelScale: true}} {
			p, err := Palettize(background, m, o, nil)
			require.NoError(t, err)
			require.Equal(t, rowsOf(m), rowsOf(p), "%v", o)
		}
	}
}

// Oracle: numpy.unique of rows keeps this zero of [0, 1, -0, …]: the sort swaps the ends of a run of equals.
func TestUniqueKeepsTheZeroThatNumpyKeeps(t *testing.T) {
	order := numpyOrder(make([]float32, 17))
	require.Equal(t, []int32{0, 14, 13, 12, 11, 10}, order[:6], "numpy 2.3: zeros(17) as records, argsort")
	require.Equal(t, []int32{0, 72, 71, 70, 69, 68}, numpyOrder(make([]float32, 100))[:6])
	require.True(t, slices.IsSorted(numpyOrder(make([]float32, 16))))
	negative := matrix(t, F32, 1, 4, func(int, int) float32 { return float32(math.Copysign(0, -1)) })
	p, err := Palettize(background, negative, Options{Mode: Unique}, nil)
	require.NoError(t, err)
	require.True(t, math.Signbit(float64(p.Table(0)[0])))
}

func BenchmarkPalettize(b *testing.B) {
	for _, cols := range []int{256, 1536, 6144} {
		for _, bits := range []int{2, 4, 8} {
			b.Run(fmt.Sprintf("cols=%d/bits=%d", cols, bits), func(b *testing.B) {
				m := gauss(b, BF16, 256, cols)
				for b.Loop() {
					_, err := Palettize(background, m, Options{Bits: bits, Group: 32}, nil)
					require.NoError(b, err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(256*cols), "ns/weight")
			})
		}
	}
}
