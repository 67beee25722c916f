package parity

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
	"anelab/quant"
)

var (
	nan32 = float32(math.NaN())
	inf32 = float32(math.Inf(1))
)

func TestCompareCounts(t *testing.T) { // hand
	got := []float32{1, 2, 3.5, -4, 0, 10}
	want := []float32{1, 2, 3, -4, float32(math.Copysign(0, -1)), 12}
	d := Compare(got, want, Options{RowLen: 3})
	require.Equal(t, 6, d.Elements)
	require.Equal(t, 4, d.Equal, "−0 equals +0")
	require.Equal(t, 2.0, d.MaxAbs)
	require.Equal(t, 5, d.WorstAt)
	require.Equal(t, 12.0, d.Peak)
	require.InDelta(t, 2.0/12, d.PeakRel(), 1e-15)
	require.Equal(t, int64(1<<21), d.MaxULP, "3 to 3.5 is 2^21 steps of 2^-22, 10 to 12 is 2^21 steps of 2^-20")
	require.InDelta(t, math.Sqrt((0.25+4)/(1+4+9+16+144)), d.RelRMS, 1e-15)
	require.InDelta(t, (1+4+10.5+16+120)/math.Sqrt(1+4+12.25+16+100)/math.Sqrt(1+4+9+16+144), d.Cosine, 1e-15)
	require.InDelta(t, math.Sqrt(116.0/160), d.NormRatio[0], 1e-15, "second row, 16+0+100 over 16+0+144")
	require.InDelta(t, math.Sqrt(17.25/14), d.NormRatio[1], 1e-15)
	require.Equal(t, Argmax{Rows: 2, Agree: 2, MinMargin: 1, FirstRow: -1}, d.Argmax)
}

func TestULPs(t *testing.T) { // hand
	for name, c := range map[string]struct {
		a, b    float32
		storage quant.DType
		want    int64
	}{
		"same":                {3, 3, quant.F32, 0},
		"next":                {1, math.Nextafter32(1, 2), quant.F32, 1},
		"zeros":               {0, float32(math.Copysign(0, -1)), quant.F32, 0},
		"across zero":         {math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, quant.F32, 2},
		"f16 step at 25":      {25, 25.015625, quant.F16, 1},
		"f16 rounds first":    {25, 25.004, quant.F16, 0},
		"f16 greatest":        {65504, 65472, quant.F16, 1},
		"bf16 step at 1":      {1, 1.0078125, quant.BF16, 1},
		"bf16 step below 1":   {1, 0.99609375, quant.BF16, 1},
		"f16 least subnormal": {0, 5.9604645e-08, quant.F16, 1},
		"NaN and number":      {nan32, 1, quant.F32, math.MaxInt64},
		"NaN and NaN":         {nan32, nan32, quant.F32, 0},
		"infinite and finite": {inf32, 65504, quant.F16, math.MaxInt64},
		"infinities":          {inf32, -inf32, quant.F32, math.MaxInt64},
		"the same infinity":   {-inf32, -inf32, quant.BF16, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, ULPs(c.a, c.b, c.storage))
			require.Equal(t, c.want, ULPs(c.b, c.a, c.storage))
		})
	}
}

func TestStepIsOneULP(t *testing.T) { // invariant
	for _, storage := range []quant.DType{quant.F32, quant.F16, quant.BF16} {
		for _, x := range []float32{0, 1, -1, 25, 0.375, 12288} {
			s := float32(step(x, storage))
			require.Positive(t, s)
			require.Equal(t, int64(1), ULPs(x, x+float32(math.Copysign(float64(s), float64(x))), storage), "%v in %s", x, storage)
		}
	}
}

func TestNotFinite(t *testing.T) { // hand
	for name, c := range map[string]struct {
		got, want  float32
		equal, non int
	}{
		"NaN for a number":    {nan32, 2, 1, 1},
		"a number for NaN":    {2, nan32, 1, 1},
		"NaN on both sides":   {nan32, nan32, 2, 0},
		"inf for a number":    {inf32, 2, 1, 1},
		"inf on both sides":   {inf32, inf32, 2, 0},
		"inf of another sign": {inf32, -inf32, 1, 1},
		"NaN for inf":         {nan32, inf32, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := Compare([]float32{1, c.got}, []float32{1, c.want}, Options{})
			require.Equal(t, c.equal, d.Equal)
			require.Equal(t, c.non, d.NonFinite)
			loose := Tolerance{Abs: 1e30, PeakRel: 1e9, Rel: 1e9, MaxULP: math.MaxInt64}
			if c.non == 0 {
				require.NoError(t, loose.Check(d))
				require.Zero(t, d.MaxAbs)
				return
			}
			require.True(t, math.IsInf(d.MaxAbs, 1))
			require.ErrorContains(t, loose.Check(d), "first [1]", "no tolerance admits what is not a number")
		})
	}
	d := Compare([]float32{nan32, 1}, []float32{nan32, 1}, Options{RowLen: 2})
	require.Zero(t, d.Argmax.Agree, "a row with NaN chooses nothing")
	require.Contains(t, d.String(), "1 NaN on both sides")
}

// parReference has mean 0.43 in [0, 1], 256 rows of 31.
func parReference() []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 256*31)
	for i := range x {
		x[i] = float32(0.43 + 0.3*(r.Float64()-0.5))
	}
	return x
}

func TestPAR01CosineHidesMagnitude(t *testing.T) { // hand: the candidates of the case; a cosine alone would pass three of them
	want := parReference()
	tol := Tolerance{PeakRel: 1e-2, MinCosine: 0.999, RowNorm: 0.01}
	change := func(f func(i int, x float32) float32) []float32 {
		got := make([]float32, len(want))
		for i, x := range want {
			got[i] = f(i, x)
		}
		return got
	}
	for name, c := range map[string]struct {
		got    []float32
		cosine float64 // at least
	}{
		"brighter":      {change(func(_ int, x float32) float32 { return x + 0.05 }), 0.999},
		"more contrast": {change(func(_ int, x float32) float32 { return 1.5 * x }), 0.9999999},
		"three long rows": {change(func(i int, x float32) float32 {
			if i/31 == 3 || i/31 == 7 || i/31 == 200 {
				return 1000 * x
			}
			return x
		}), 0},
		"negated": {change(func(_ int, x float32) float32 { return -x }), -1.0000001},
		"zero":    {make([]float32, len(want)), math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			d := Compare(c.got, want, Options{RowLen: 31})
			require.True(t, d.Cosine >= c.cosine || math.IsNaN(c.cosine) && math.IsNaN(d.Cosine), "cosine %v", d.Cosine)
			require.Error(t, tol.Check(d))
			if name != "negated" {
				require.ErrorContains(t, Tolerance{Abs: 1e9, RowNorm: 0.01}.Check(d), "norm of a row", "the row norms alone see it too")
			}
		})
	}
	require.NoError(t, tol.Check(Compare(want, want, Options{RowLen: 31})))
}

func TestPAR01ZeroNormFails(t *testing.T) { // hand
	zero := make([]float32, 5)
	err := Tolerance{Abs: 1, MinCosine: 0.5}.Check(Compare(zero, zero, Options{}))
	require.ErrorContains(t, err, "cosine NaN")
	err = Tolerance{Abs: 9, MaxRelRMS: 0.5}.Check(Compare([]float32{1, 1}, []float32{0, 0}, Options{}))
	require.ErrorContains(t, err, "relative rms +Inf")
}

func TestPAR03LengthMismatchIsNoAgreement(t *testing.T) { // hand
	long := make([]float32, 256)
	for i := range long[:64] {
		long[i] = float32(i + 1)
	}
	loose := Tolerance{Abs: 1e9}
	require.ErrorContains(t, loose.Check(Compare(long[:64], long, Options{})), "64 elements, want 256")
	require.ErrorContains(t, loose.Check(Compare(long, long[:64], Options{})), "256 elements, want 64")
	require.ErrorContains(t, loose.Check(Compare(nil, nil, Options{})), "nothing to compare")
}

func TestPAR05TiesAndMargins(t *testing.T) { // hand: 25 and 25.004 are one fp16 number, 24 is far away
	want := []float32{3, 25.004, 25, 24, 3, 25, 24, 24.5, 1, 2, 2, 0}
	got := []float32{3, 25, 25.004, 24, 3, 24, 25, 24.5, 1, 2, 2, 0}
	d := Compare(got, want, Options{Storage: quant.F16, RowLen: 4})
	require.Equal(t, Argmax{Rows: 3, Agree: 1, Ties: 1, FirstRow: 1, Got: 2, Want: 1, Margin: 1}, withMinMargin(d.Argmax, 0))
	require.Zero(t, d.Argmax.MinMargin, "the two 2s of the last row")
	require.Contains(t, d.String(), "argmax 1/3 + 1 ties (row 1: got 2, want 1, margin 1)")
	require.ErrorContains(t, Tolerance{Abs: 2, MinArgmax: 1}.Check(d), "argmax agrees in 1 of 3 rows (1 more tie)")

	d = Compare(got[:4], want[:4], Options{RowLen: 4})
	require.Zero(t, d.Argmax.Ties, "in float32 0.004 is no tie")
	require.InDelta(t, 0.004, d.Argmax.Margin, 1e-6)
}

func TestPAR05ChoicesAddUp(t *testing.T) { // hand
	agreed := Argmax{Rows: 3, Agree: 2, Ties: 1, MinMargin: 0.25, FirstRow: -1}
	parted := Argmax{Rows: 2, Agree: 1, MinMargin: 0.5, FirstRow: 1, Got: 7, Want: 5, Margin: 1.5}
	require.Equal(t, Argmax{Rows: 5, Agree: 3, Ties: 1, MinMargin: 0.25, FirstRow: 4, Got: 7, Want: 5, Margin: 1.5}, agreed.Add(parted))
	require.Equal(t, Argmax{Rows: 5, Agree: 3, Ties: 1, MinMargin: 0.25, FirstRow: 1, Got: 7, Want: 5, Margin: 1.5}, parted.Add(agreed))
	require.Equal(t, parted, Argmax{}.Add(parted))
	require.Equal(t, parted, parted.Add(Argmax{}))
}

func withMinMargin(a Argmax, m float64) Argmax { a.MinMargin = m; return a }

func TestZeroToleranceIsEquality(t *testing.T) { // hand
	want := []float32{1, 2, 4, 8, 16, 32, 64}
	require.NoError(t, Tolerance{}.Check(Compare(want, want, Options{})))
	got := append([]float32(nil), want...)
	got[5] = math.Nextafter32(32, 0)
	d := Compare(got, want, Options{Storage: quant.BF16})
	require.Zero(t, d.MaxULP, "both round to the same bf16")
	require.ErrorContains(t, Tolerance{}.Check(d), "1 of 7 elements differ, first [5]: got 31.999998, want 32")
	require.NoError(t, Tolerance{MaxULP: 1}.Check(d))
	require.ErrorContains(t, Tolerance{MaxULP: 1, MinEqual: 0.9}.Check(d), "0.8571 of elements equal, want 0.9")
	require.NoError(t, Tolerance{MaxULP: 1, MaxUnequal: 1}.Check(d))
	got[3] = math.Nextafter32(8, 0)
	require.ErrorContains(t, Tolerance{Abs: 1, MaxUnequal: 1}.Check(Compare(got, want, Options{})), "2 elements differ, at most 1")
}

func TestElementBounds(t *testing.T) { // hand
	want := []float32{100, 1, 0.01}
	got := []float32{101, 1.1, 0.11}
	d := Compare(got, want, Options{})
	for _, c := range []struct {
		tol Tolerance
		bad int
	}{
		{Tolerance{Abs: 0.105}, 1},
		{Tolerance{Rel: 0.0105}, 2},
		{Tolerance{PeakRel: 0.0105}, 0},
		{Tolerance{Abs: 0.1, Rel: 0.01}, 0},
		{Tolerance{Abs: 0.05, Rel: 0.01}, 2},
	} {
		err := c.tol.Check(d)
		if c.bad == 0 {
			require.NoError(t, err, "%+v", c.tol)
			continue
		}
		require.Equal(t, c.bad, err.(*Disagreement).Bad, "%+v", c.tol)
	}
}

func TestFP16NoiseIsMeasuredInItsOwnSteps(t *testing.T) { // invariant
	want := parReference()
	for i := range want {
		want[i] = half.RoundF16(want[i])
	}
	got := append([]float32(nil), want...)
	for i := range got {
		got[i] = half.F16ToF32(half.F32ToF16(got[i]) + uint16(i%2)) // every second one step up
	}
	d := Compare(got, want, Options{Storage: quant.F16, RowLen: 31})
	require.Equal(t, int64(1), d.MaxULP)
	require.Equal(t, len(want)/2, d.Equal)
	require.NoError(t, Tolerance{MaxULP: 1, MinEqual: 0.5, RowNorm: 1e-3, MinCosine: 0.999999, MaxRelRMS: 1e-3}.Check(d))
}

func TestDetailShowsNeighbours(t *testing.T) { // hand
	want := make([]float32, 24)
	for i := range want {
		want[i] = float32(i)
	}
	got := append([]float32(nil), want...)
	got[16] = 17.5
	err := Tolerance{Abs: 1}.Check(Compare(got, want, Options{RowLen: 12}))
	require.EqualError(t, err, "1 of 24 elements exceed 1 absolute, first [1 4]: got 17.5, want 16 "+
		"(max abs 1.5 (0.0652 of peak 23) at [1 4], 786432 ulp f32, cosine 0.99975801, rel rms 0.0228, 23/24 equal, argmax 2/2)")
	detail := err.(*Disagreement).Detail()
	require.Contains(t, detail, "\n  [0 4]                        4               4           0      0\n  ...\n  [1 2]")
	require.Contains(t, detail, "\n> [1 4]                     17.5              16         1.5 786432\n  [1 5]")
	require.NotContains(t, detail, "[1 7]")
}

func BenchmarkCompare(b *testing.B) {
	x := make([]float32, 262144)
	for i := range x {
		x[i] = float32(i%977) / 31
	}
	y := append([]float32(nil), x...)
	y[7] = 3
	b.SetBytes(int64(8 * len(x)))
	for b.Loop() {
		Compare(x, y, Options{RowLen: len(x)})
	}
}
