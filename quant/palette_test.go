package quant

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// quarters is a table whose entry i is i/4.
func quarters(n int) []float32 {
	lut := make([]float32, n)
	for i := range lut {
		lut[i] = float32(i) / 4
	}
	return lut
}

func TestPaletteOfRows(t *testing.T) { // hand: groups of 2 rows; 7 columns, so rows start in mid-byte
	index := make([]byte, 28)
	for i := range index {
		index[i] = byte(i * 5 % 16)
	}
	p, err := NewPalette(4, 7, Encoding{DType: F16, Bits: 4, Group: 2}, Tables{LUT: quarters(32), Indices: Pack(index, 4)})
	require.NoError(t, err)
	for r, row := range rowsOf(p) {
		for c, x := range row {
			require.Equal(t, float32(int(index[7*r+c])+16*(r/2))/4, x, "row %d column %d", r, c)
		}
	}
	require.Equal(t, int64(14+2*32), p.Bytes())
	require.Equal(t, p.Bytes(), p.Encoding().Bytes(4, 7))
	require.Equal(t, "int4g2", p.Encoding().String())
	y := make([]float32, 4)
	p.MulVec(y, []float32{1, 0, 0, 0, 0, 0, 2})
	require.Equal(t, rowsOf(p)[3][0]+2*rowsOf(p)[3][6], y[3])
}

func TestPaletteOfColumns(t *testing.T) { // hand: columns 0–2 and 3–5 have tables
	p, err := NewPalette(2, 6, Encoding{DType: F32, Bits: 1, Group: 3, Axis: 1}, Tables{LUT: []float32{1, 2, 30, 40}, Indices: []byte{0b0101_0011, 0b1010}})
	require.NoError(t, err)
	require.Equal(t, [][]float32{{2, 2, 1, 30, 40, 30}, {2, 1, 1, 40, 30, 40}}, rowsOf(p))
	require.Equal(t, "int1c3", p.Encoding().String())
	require.Equal(t, int64(2+4*4), p.Bytes())
}

func TestPaletteOfVectors(t *testing.T) { // hand: an index is two elements, one below the other or side by side
	tables := Tables{LUT: []float32{1, -1, 2, -2, 3, -3, 4, -4}, Indices: Pack([]byte{0, 1, 2, 3, 2, 1}, 2)}
	rows, err := NewPalette(4, 3, Encoding{DType: F16, Bits: 2, Vector: 2}, tables)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{1, 2, 3}, {-1, -2, -3}, {4, 3, 2}, {-4, -3, -2}}, rowsOf(rows))
	columns, err := NewPalette(3, 4, Encoding{DType: F16, Bits: 2, Vector: 2, Axis: 1}, tables)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{1, -1, 2, -2}, {3, -3, 4, -4}, {3, -3, 2, -2}}, rowsOf(columns))
	require.Equal(t, "int2v2", columns.Encoding().String())
	require.Equal(t, columns.Bytes(), columns.Encoding().Bytes(3, 4))
}

func TestPaletteScalesRoundOnce(t *testing.T) { // hand: (1+2^-10)² = 1 + 2^-9 + 2^-20 is 1 + 2^-9 in fp16, exact in f32
	x := float32(1 + 1.0/1024)
	for _, dt := range []DType{F16, F32} {
		p, err := NewPalette(1, 2, Encoding{DType: dt, Bits: 1}, Tables{LUT: []float32{0.5, x}, Scale: []float32{x, 2}, Indices: []byte{0b01}})
		require.NoError(t, err)
		want := map[DType]float32{F16: 1 + 1.0/512, F32: x * x}[dt]
		require.Equal(t, [][]float32{{want, 1}}, rowsOf(p))
		require.Equal(t, []float32{0.5 * x, want, 1, 2 * x}, p.ScaledTables())
	}
	p, err := NewPalette(2, 2, Encoding{DType: F32, Bits: 1, Axis: 1}, Tables{LUT: []float32{1, 2}, Scale: []float32{10, 100}, Indices: []byte{0b0110}})
	require.NoError(t, err)
	require.Equal(t, [][]float32{{10, 20}, {200, 100}}, rowsOf(p), "along axis 1 a row has a scale")
}

func TestLongRowsOfEveryWidth(t *testing.T) { // invariant: rows longer than the buffer of indices, oracle Unpack
	r := rand.New(rand.NewPCG(3, 4))
	for _, bits := range []int{1, 2, 3, 4, 6, 8} {
		index := make([]byte, 3*515)
		for i := range index {
			index[i] = byte(r.UintN(1 << bits))
		}
		for axis := range 2 {
			p, err := NewPalette(3, 515, Encoding{DType: F32, Bits: bits, Axis: axis}, Tables{LUT: quarters(1 << bits), Indices: Pack(index, bits)})
			require.NoError(t, err)
			for row, line := range rowsOf(p) {
				for c, x := range line {
					require.Equal(t, float32(index[row*515+c])/4, x)
				}
			}
		}
	}
}

func TestNewPaletteRefuses(t *testing.T) {
	good := Tables{LUT: quarters(32), Indices: make([]byte, 14)}
	e := Encoding{DType: F16, Bits: 4, Group: 2}
	for want, c := range map[string]struct {
		e Encoding
		t Tables
	}{
		"16 entries, want 32":                 {e, Tables{LUT: good.LUT[:16], Indices: good.Indices}},
		"10 index bytes, want 14":             {e, Tables{LUT: good.LUT, Indices: good.Indices[:10]}},
		"3 scales, want 7":                    {e, Tables{LUT: good.LUT, Indices: good.Indices, Scale: make([]float32, 3)}},
		"not divisible into groups of 3":      {Encoding{DType: F16, Bits: 4, Group: 3}, good},
		"not divisible into vectors":          {Encoding{DType: F16, Bits: 4, Group: 2, Vector: 4}, good},
		"palette of 7 bits":                   {Encoding{DType: F16, Bits: 7}, good},
		"palette of 4 bits with bf16":         {Encoding{DType: BF16, Bits: 4}, good},
		"palette along axis 3":                {Encoding{DType: F16, Bits: 4, Axis: 3}, good},
		"palette of 16 bits with f16 entries": {DenseF16, good},
	} {
		_, err := NewPalette(4, 7, c.e, c.t)
		require.ErrorContains(t, err, want)
	}
	for _, shape := range [][2]int{{0, 7}, {7, -1}, {1 << 21, 1 << 20}, {math.MaxInt, math.MaxInt}} { // refused before anything is allocated
		_, err := NewPalette(shape[0], shape[1], e, Tables{})
		require.ErrorContains(t, err, "at most 2^40")
		_, err = NewLinear(shape[0], shape[1], LinearSpec{Integer: I8, Bits: 8, Scale: F16}, LinearParts{})
		require.ErrorContains(t, err, "at most 2^40")
		_, err = NewSparse(shape[0], shape[1], nil, Tensor{DType: F16})
		require.ErrorContains(t, err, "at most 2^40")
	}
}
