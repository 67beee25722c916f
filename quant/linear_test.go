package quant

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantizeByHand(t *testing.T) { // hand
	row := func(v ...float32) Matrix { return matrix(t, F32, 1, len(v), func(_, c int) float32 { return v[c] }) }
	for _, c := range []struct {
		name     string
		m        Matrix
		spec     LinearSpec
		symmetry Symmetry
		data     []byte
		scale    []float32
		offset   []int16
	}{
		{"int4 loses −8", row(-7, 3.5, 7, -3.25), LinearSpec{Integer: I8, Bits: 4}, Symmetric, []byte{0x49, 0xd7}, []float32{1}, nil}, // 3.5 → 4 to even, −3.25 → −3
		{"uint4 has its zero at 7", row(-7, 0, 7, 1), LinearSpec{Integer: U8, Bits: 4}, Symmetric, []byte{0x70, 0x8e}, []float32{1}, []int16{7}},
		{"int8 fits the range", row(0, 127.5, 255, 64), LinearSpec{Integer: I8, Bits: 8}, Asymmetric, []byte{0x80, 0, 127, 0xc0}, []float32{1}, []int16{-128}},
		{"uint8 reaches to zero", row(10, 255, 20, 11), LinearSpec{Integer: U8, Bits: 8}, Asymmetric, []byte{10, 255, 20, 11}, []float32{1}, []int16{0}},
		{"blocks", row(7, 1, 14, 2), LinearSpec{Integer: I8, Bits: 4, Granularity: PerBlock, Block: 2}, Symmetric, []byte{0x17, 0x17}, []float32{1, 2}, nil},
		{"zeros", row(0, 0), LinearSpec{Integer: I8, Bits: 8, Granularity: PerRow}, Asymmetric, []byte{0, 0}, []float32{0}, []int16{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := Quantize(c.m, c.spec, c.symmetry)
			require.NoError(t, err)
			require.Equal(t, LinearParts{Data: c.data, Scale: c.scale, Offset: c.offset}, q.Parts())
			report, err := Compare(c.m, q)
			require.NoError(t, err)
			require.LessOrEqual(t, report.MaxAbs, float64(c.scale[0])/2)
			again, err := NewLinear(1, c.m.Cols(), q.Spec(), q.Parts())
			require.NoError(t, err)
			require.Equal(t, rowsOf(q), rowsOf(again))
		})
	}
}

func TestLinearSizes(t *testing.T) { // hand
	m := gauss(t, BF16, 6, 520)
	for _, c := range []struct {
		spec  LinearSpec
		bytes int64
		text  string
	}{
		{LinearSpec{Integer: I8, Bits: 8}, 6*520 + 2, "linear8"},
		{LinearSpec{Integer: I8, Bits: 4, Granularity: PerRow}, 3*520 + 6*2, "linear4"},
		{LinearSpec{Integer: U8, Bits: 4, Granularity: PerBlock, Block: 40}, 3*520 + 6*13*2 + 39, "linear4b40"},
	} {
		q, err := Quantize(m, c.spec, Symmetric)
		require.NoError(t, err)
		require.Equal(t, c.bytes, q.Bytes())
		require.Equal(t, c.text, q.Encoding().String())
		require.Equal(t, F16, q.Spec().Scale, "bf16 is fp16 to a package")
		report, err := Compare(m, q)
		require.NoError(t, err)
		require.Greater(t, report.SNR(), 15.0)
		y := make([]float32, 6)
		q.MulVec(y, make([]float32, 520))
		require.Equal(t, make([]float32, 6), y)
	}
}

func TestLinearRefuses(t *testing.T) {
	parts := LinearParts{Data: make([]byte, 12), Scale: make([]float32, 3)}
	spec := LinearSpec{Integer: I8, Bits: 8, Granularity: PerRow, Scale: F32}
	for want, c := range map[string]struct {
		s LinearSpec
		p LinearParts
	}{
		"11 bytes, want 12":              {spec, LinearParts{Data: parts.Data[:11], Scale: parts.Scale}},
		"2 scales and 0 offsets, want 3": {spec, LinearParts{Data: parts.Data, Scale: parts.Scale[:2]}},
		"3 scales and 1 offsets, want 3": {spec, LinearParts{Data: parts.Data, Scale: parts.Scale, Offset: make([]int16, 1)}},
		"linear of 3-bit":                {LinearSpec{Integer: I8, Bits: 3, Scale: F32}, parts},
		"i32":                            {LinearSpec{Integer: I32, Bits: 8, Scale: F32}, parts},
		"blocks of 3":                    {LinearSpec{Integer: I8, Bits: 8, Granularity: PerBlock, Block: 3, Scale: F16}, parts},
		"blocks of 0":                    {LinearSpec{Integer: I8, Bits: 8, Granularity: PerBlock, Scale: F16}, parts},
	} {
		_, err := NewLinear(3, 4, c.s, c.p)
		require.ErrorContains(t, err, want)
	}
	_, err := Quantize(matrix(t, F16, 1, 2, func(_, c int) float32 { return 60000 * float32(2*c-1) }), LinearSpec{Integer: I8, Bits: 8}, Asymmetric)
	require.ErrorContains(t, err, "a range that fp16 can hold")
	_, err = Quantize(gauss(t, F16, 2, 3), LinearSpec{Integer: I8, Bits: 8, Granularity: PerBlock, Block: 2}, Symmetric)
	require.ErrorContains(t, err, "blocks of 2")
}

func TestCompare(t *testing.T) { // hand
	a := matrix(t, F32, 2, 2, func(r, c int) float32 { return []float32{3, 4, 0, 1}[2*r+c] })
	b := matrix(t, F32, 2, 2, func(r, c int) float32 { return []float32{3, 2, 0, 1}[2*r+c] })
	r, err := Compare(a, b)
	require.NoError(t, err)
	require.Equal(t, 2.0, r.MaxAbs)
	require.Equal(t, 4.0, r.SSE)
	require.Equal(t, 1.0, r.RMS)
	require.InDelta(t, math.Sqrt(26.0/4), r.Signal, 1e-15)
	require.InDelta(t, 10*math.Log10(6.5), r.SNR(), 1e-12)
	require.InDelta(t, 18/math.Sqrt(26*14), r.Cosine, 1e-15)
	require.Equal(t, 0, r.WorstRow)
	require.InDelta(t, 17/(5*math.Sqrt(13)), r.WorstCosine, 1e-15)
	require.Equal(t, int64(16), r.Bytes)
	require.Contains(t, r.String(), "max 2, cosine 0.94")
	same, err := Compare(a, a)
	require.NoError(t, err)
	require.True(t, math.IsInf(same.SNR(), 1))
	_, err = Compare(a, gauss(t, F32, 2, 3))
	require.ErrorContains(t, err, "[2, 3] with [2, 2]")

	zero := matrix(t, F32, 2, 2, func(int, int) float32 { return 0 })
	r, err = Compare(zero, zero)
	require.NoError(t, err)
	require.Equal(t, 1.0, r.Cosine)
	r, err = Compare(a, zero)
	require.NoError(t, err)
	require.Zero(t, r.WorstCosine)
	require.Error(t, Gate{WorstCosine: 0.1}.Check(r))
	nan := matrix(t, F32, 2, 2, func(r, _ int) float32 { return float32(math.Log(float64(r) - 0.5)) })
	r, err = Compare(a, nan)
	require.NoError(t, err)
	require.Error(t, Gate{}.Check(r), "no number is not good enough")
}
