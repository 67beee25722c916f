package quant

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// tensor encodes values as dt in shape [rows, cols].
func tensor(t *testing.T, dt DType, rows, cols int, v []float32) Tensor {
	t.Helper()
	var b []byte
	for _, x := range v {
		switch dt {
		case F32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		case F16:
			b = binary.LittleEndian.AppendUint16(b, half.F32ToF16(x))
		case BF16:
			b = binary.LittleEndian.AppendUint16(b, half.F32ToBF16(x))
		}
	}
	return Tensor{Name: "w", DType: dt, Shape: []int{rows, cols}, Data: b}
}

func TestDenseRowsAndProduct(t *testing.T) { // hand: small integers are exact in all three types
	v := []float32{1, -2, 3, 4, 5, -6}
	for _, dt := range []DType{F32, F16, BF16} {
		t.Run(dt.String(), func(t *testing.T) {
			m, err := Dense(tensor(t, dt, 2, 3, v))
			require.NoError(t, err)
			row := make([]float32, 3)
			m.Row(row, 1)
			require.Equal(t, []float32{4, 5, -6}, row)
			y := make([]float32, 2)
			m.MulVec(y, []float32{1, 10, 100})
			require.Equal(t, []float32{281, -546}, y)
			require.Equal(t, int64(6*dt.Size()), m.Bytes())
			require.Equal(t, dt.String(), m.Encoding().String())
		})
	}
}

func TestDenseRefuses(t *testing.T) {
	for name, bad := range map[string]Tensor{
		"one axis":    {Name: "w", DType: F32, Shape: []int{2}, Data: make([]byte, 8)},
		"integers":    {Name: "w", DType: I32, Shape: []int{1, 2}, Data: make([]byte, 8)},
		"short bytes": {Name: "w", DType: F16, Shape: []int{1, 2}, Data: make([]byte, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dense(bad)
			require.ErrorContains(t, err, "tensor w")
		})
	}
}

func TestStorageViews(t *testing.T) { // hand: 1+2^-8 is halfway between two bf16, 65536 has no fp16
	v := []float32{1, 1 + 1.0/256, 65536, -0.25}
	src, err := Dense(tensor(t, F32, 1, 4, v))
	require.NoError(t, err)
	row := make([]float32, 4)
	AsBF16(src).Row(row, 0)
	require.Equal(t, []float32{1, 1, 65536, -0.25}, row)
	AsF16(AsBF16(src)).Row(row, 0)
	require.Equal(t, []float32{1, 1, float32(math.Inf(1)), -0.25}, row)
	require.Equal(t, 1, Overflows(AsF16(AsBF16(src))))
	require.Zero(t, Overflows(AsBF16(src)))
	bf, err := Dense(tensor(t, BF16, 1, 4, v))
	require.NoError(t, err)
	require.Same(t, bf, AsBF16(bf), "a matrix already in the storage type is not copied")
}

func TestGrouped4(t *testing.T) { // hand: 3 rows in groups of 2; 7 columns, so rows start in mid-byte
	lut := make([]uint16, 32)
	for i := range lut {
		lut[i] = half.F32ToF16(float32(i) / 4)
	}
	packed := make([]byte, 11)
	for i := range 21 {
		packed[i/2] |= byte(i*5%16) << (4 * (i % 2))
	}
	m, err := NewGrouped4([2]int{3, 7}, 2, lut, packed)
	require.NoError(t, err)
	row := make([]float32, 7)
	for r := range 3 {
		m.Row(row, r)
		for i := range row {
			require.Equal(t, float32((r*7+i)*5%16+16*(r/2))/4, row[i], "row %d column %d", r, i)
		}
	}
	require.Equal(t, int64(11+2*32), m.Bytes())
	_, err = NewGrouped4([2]int{3, 7}, 2, lut[:16], packed)
	require.ErrorContains(t, err, "16 entries, want 32")
	_, err = NewGrouped4([2]int{3, 7}, 2, lut, packed[:10])
	require.ErrorContains(t, err, "10 index bytes, want 11")
}

func TestUniform4ReproducesItsOwnGrid(t *testing.T) { // invariant: weights on the grid come back exactly
	v := make([]float32, 5*16)
	for i := range v {
		v[i] = float32(i*7%16)/8 - 1 + float32(i/32) // another offset in every group of two rows
	}
	src, err := Dense(tensor(t, F32, 5, 16, v))
	require.NoError(t, err)
	m := Uniform4(src, 2)
	row := make([]float32, 16)
	for r := range 5 {
		m.Row(row, r)
		require.Equal(t, v[r*16:][:16], row)
	}
}

func TestEncodingText(t *testing.T) {
	for _, s := range []string{"f32", "f16", "bf16", "int4g32", "int8", "int2g8"} {
		e, err := ParseEncoding(s)
		require.NoError(t, err)
		require.Equal(t, s, e.String())
	}
	for s, want := range map[string]string{"int4g23x": "did you mean", "int5g32": "no palette of 5 bits", "int4g0": "want", "": "want"} {
		_, err := ParseEncoding(s)
		require.ErrorContains(t, err, want, s)
	}
	require.Equal(t, int64(201_588_736), Int4G32.Bytes(262144, 1536)) // hand: the LM head of spec §8.2
	require.Equal(t, int64(2*7*3), DenseF16.Bytes(7, 3))
}
