package quant

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/half"
)

// tensor encodes values as dt in shape [rows, cols].
func tensor(t testing.TB, dt DType, rows, cols int, v []float32) Tensor {
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

func TestEncodingText(t *testing.T) {
	for _, s := range []string{"f32", "f16", "bf16", "int4g32", "int8", "int2g8", "int4c32", "int3g8v2"} {
		e, err := ParseEncoding(s)
		require.NoError(t, err)
		require.Equal(t, s, e.String())
	}
	for s, want := range map[string]string{"int4g23x": "did you mean", "int5g32": "no palette of 5 bits", "int4g0": "want", "int4v1": "want", "": "want"} {
		_, err := ParseEncoding(s)
		require.ErrorContains(t, err, want, s)
	}
	require.Equal(t, int64(201_588_736), Int4G32.Bytes(262144, 1536)) // hand: the LM head of spec §8.2
	require.Equal(t, int64(2*7*3), DenseF16.Bytes(7, 3))
	require.Equal(t, int64(12+3*4*2), Encoding{DType: F16, Bits: 2, Group: 4, Axis: 1}.Bytes(4, 12)) // hand: three tables of 4 fp16
	require.Equal(t, int64(6+4*4), Encoding{DType: F32, Bits: 1, Vector: 2}.Bytes(8, 12))            // hand: 48 indices, two pairs of f32
	require.Equal(t, int64(42+7*3*2), Encoding{DType: I8, Bits: 4, Group: 4}.Bytes(7, 12))           // hand: three scales a row
	require.Equal(t, "linear4b4", Encoding{DType: U8, Bits: 4, Group: 4}.String())
}
