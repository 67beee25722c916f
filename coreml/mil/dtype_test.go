package mil

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfTypesComeBack(t *testing.T) { // invariant
	n := 0
	for d := range DType(255) {
		if !d.Known() {
			continue
		}
		n++
		back, ok := ParseDType(d.String())
		require.True(t, ok)
		require.Equal(t, d, back)
	}
	require.Equal(t, 22, n)
	_, ok := ParseDType("fp17")
	require.False(t, ok)
}

func TestQNT09PackingPutsTheFirstElementInTheLowBits(t *testing.T) { // hand
	for _, c := range []struct {
		d     DType
		codes []int64
		want  []byte
	}{
		{UInt4, []int64{1, 2}, []byte{0x21}},
		{Int4, []int64{-1, 7}, []byte{0x7f}},
		{Int4, []int64{-8, 0, 5}, []byte{0x08, 0x05}},
		{UInt4, []int64{1, 2, 3, 4, 5}, []byte{0x21, 0x43, 0x05}},       // the last nibble is padding
		{UInt1, []int64{1, 0, 1, 1, 0, 0, 0, 0, 1}, []byte{0x0d, 0x01}}, // element 8 starts the second byte
		{UInt3, []int64{1, 2, 3}, []byte{0b11_010_001, 0b0}},            // 3 straddles the bytes: low bits 11, then 0
		{UInt6, []int64{0x3f, 0, 0x15}, []byte{0x3f, 0x50, 0x01}},
		{UInt4, []int64{0x12, 3}, []byte{0x32}}, // bits above the width are dropped
	} {
		t.Run(fmt.Sprint(c.d, c.codes), func(t *testing.T) { require.Equal(t, c.want, Pack(c.d, c.codes)) })
	}
}

func TestPackedElementsComeBack(t *testing.T) { // invariant
	for _, d := range []DType{UInt1, UInt2, UInt3, UInt4, UInt6, Int4, Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64} {
		for n := range 10 {
			var codes []int64
			for i := range n {
				code := int64(i*37+11) & (1<<min(d.Bits(), 40) - 1)
				if d.IsSigned() && i%2 == 1 {
					code = -(code % (1 << (d.Bits() - 1)))
				} else if d.IsSigned() {
					code %= 1 << (min(d.Bits(), 40) - 1)
				}
				codes = append(codes, code)
			}
			packed := Pack(d, codes)
			require.Len(t, packed, int(d.Bytes(int64(n))), d)
			for i, want := range codes {
				require.Equal(t, want, Element(d, packed, int64(i)), "%s: element %d of %d", d, i, n)
			}
		}
	}
}

func TestFloatsOfEveryWidth(t *testing.T) { // hand
	inf := math.Inf(1)
	for _, c := range []struct {
		d    DType
		raw  []byte
		want float64
	}{
		{Float16, []byte{0x11, 0x00}, 17 * 0x1p-24}, // 1e-6 as fp16
		{BFloat16, []byte{0x49, 0x40}, 3.140625},
		{Float32, []byte{0, 0, 0x80, 0x3e}, 0.25},
		{Float64, []byte{0, 0, 0, 0, 0, 0, 0xe0, 0xbf}, -0.5},
		{F8E5M2, []byte{0x3c}, 1}, {F8E5M2, []byte{0xbd}, -1.25}, {F8E5M2, []byte{0x01}, 0x1p-16}, {F8E5M2, []byte{0x7c}, inf}, {F8E5M2, []byte{0xfc}, -inf},
		{F8E4M3FN, []byte{0x38}, 1}, {F8E4M3FN, []byte{0x7e}, 448}, {F8E4M3FN, []byte{0x01}, 0x1p-9}, {F8E4M3FN, []byte{0x78}, 256},
	} {
		require.Equal(t, c.want, Float(c.d, c.raw, 0), "%s %x", c.d, c.raw)
	}
	require.True(t, math.IsNaN(Float(F8E4M3FN, []byte{0x7f}, 0)))
	require.True(t, math.IsNaN(Float(F8E5M2, []byte{0x7d}, 0)))
}

func TestValuesDecode(t *testing.T) { // hand
	ints, ok := Vector[int32](-1, 70000).Ints()
	require.True(t, ok)
	require.Equal(t, []int64{-1, 70000}, ints)
	f, ok := Scalar(F16(0x3c01)).Float()
	require.True(t, ok)
	require.Equal(t, 1+0x1p-10, f)
	n, ok := Scalar(true).Int()
	require.True(t, ok)
	require.Equal(t, int64(1), n)
	s, ok := Scalar("valid").Text()
	require.True(t, ok)
	require.Equal(t, "valid", s)
	_, ok = Scalar("valid").Int()
	require.False(t, ok)
	_, ok = Vector("a", "b").Text()
	require.False(t, ok)
	require.Equal(t, "tensor<uint8, [3]>", Vector[uint8](1, 2, 3).Type.String())
	require.PanicsWithValue(t, panicBytes, func() { TensorValue(TensorOf(UInt4, 5), make([]byte, 2)) })
	_, err := (&Value{Type: TensorOf(Float16, 2), Content: &Blob{File: "w", Offset: 64}}).Bytes()
	require.ErrorContains(t, err, "not open")
}

func TestTypes(t *testing.T) { // hand
	fp16 := TensorOf(Float16, 2, Unknown)
	require.True(t, fp16.Compatible(TensorOf(Float16, 2, 7)))
	require.False(t, fp16.Compatible(TensorOf(Float16, 3, 7)))
	require.False(t, fp16.Compatible(TensorOf(Float32, 2, 7)))
	require.False(t, fp16.Equal(TensorOf(Float16, 2, 7)))
	require.True(t, TensorOf(Float16, Variadic).Compatible(TensorOf(Float16, 2, 7)))
	require.True(t, StateOf(fp16).Compatible(StateOf(TensorOf(Float16, 2, 5))))
	require.False(t, StateOf(fp16).Compatible(fp16))
	require.True(t, ListOf(TensorOf(Int32), Unknown).Compatible(ListOf(TensorOf(Int32), 4)))
	require.Equal(t, "dict<string, list<tensor<int32, [2]>, ?>>", DictOf(TensorOf(String), ListOf(TensorOf(Int32, 2), Unknown)).String())
	_, ok := TensorOf(UInt8, 1<<40, 1<<40).Count()
	require.False(t, ok, "the product does not fit")
	n, ok := TensorOf(UInt3, 3, 5).ByteSize()
	require.True(t, ok)
	require.Equal(t, int64(6), n) // 45 bits
	_, ok = fp16.ByteSize()
	require.False(t, ok)
}

func TestFlexibleShapes(t *testing.T) { // hand
	ranges := Flexible{Default: []int64{1, 5}, Ranges: []Range{{1, 1}, {2, Unknown}}}
	require.True(t, ranges.Allows([]int64{1, 100}))
	require.False(t, ranges.Allows([]int64{1, 1}))
	require.False(t, ranges.Allows([]int64{2, 5}))
	require.False(t, ranges.Allows([]int64{1}))
	listed := Flexible{Default: []int64{1, 5}, Enumerated: [][]int64{{1, 7}}}
	require.True(t, listed.Allows([]int64{1, 5}))
	require.True(t, listed.Allows([]int64{1, 7}))
	require.False(t, listed.Allows([]int64{1, 6}))
}
