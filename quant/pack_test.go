package quant

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQNT09PackOrderAndSign(t *testing.T) { // hand
	negative := int8(-1)
	for _, c := range []struct {
		name   string
		bits   int
		values []byte
		want   []byte
	}{
		{"first of two in the low nibble", 4, []byte{1, 2}, []byte{0x21}},
		{"negative is masked before the shift", 4, []byte{byte(negative), 7}, []byte{0x7f}},
		{"negative high nibble", 4, []byte{7, byte(negative)}, []byte{0xf7}},
		{"odd length", 4, []byte{1, 2, 3, 4, 5}, []byte{0x21, 0x43, 0x05}},
		{"three bits across bytes", 3, []byte{1, 2, 7, 5}, []byte{0b11_010_001, 0b1011}},
		{"six bits across bytes", 6, []byte{1, 2, 3, 0x3f}, []byte{0x81, 0x30, 0xfc}},
		{"one bit", 1, []byte{1, 0, 0, 1, 0, 0, 0, 0, 1}, []byte{0b1001, 1}},
		{"two bits", 2, []byte{3, 0, 1, 2}, []byte{0b10_01_00_11}},
		{"whole bytes", 8, []byte{9, 255}, []byte{9, 255}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Pack(c.values, c.bits)) })
	}
	signed := make([]int8, 2)
	UnpackSigned(signed, []byte{0x7f}, 4, 0)
	require.Equal(t, []int8{-1, 7}, signed)
	UnpackSigned(signed, []byte{0x80, 0x7f}, 8, 0)
	require.Equal(t, []int8{-128, 127}, signed)
}

func TestQNT09PackRoundTrips(t *testing.T) { // invariant: any part of any length, also from the middle of a byte
	r := rand.New(rand.NewPCG(1, 2))
	for bits := 1; bits <= 8; bits++ {
		for n := range 600 / bits {
			values := make([]byte, n)
			for i := range values {
				values[i] = byte(r.UintN(1 << bits))
			}
			packed := Pack(values, bits)
			require.Len(t, packed, (n*bits+7)/8)
			for first := 0; first <= n; first += 1 + n/5 {
				part := make([]byte, (n-first+1)/2)
				Unpack(part, packed, bits, first)
				require.Equal(t, values[first:first+len(part)], part, "%d bits, %d of %d", bits, first, n)
			}
		}
	}
	long := make([]int8, 1000)
	UnpackSigned(long, Pack(make([]byte, 1000), 3), 3, 0)
	require.Equal(t, make([]int8, 1000), long)
}

func TestPackMisuse(t *testing.T) {
	require.Panics(t, func() { Pack([]byte{1}, 9) })
	require.Panics(t, func() { Unpack(make([]byte, 1), nil, 0, 0) })
	require.Panics(t, func() { Unpack(make([]byte, 3), []byte{1}, 4, 0) })
	require.Panics(t, func() { Unpack(make([]byte, 1), []byte{1}, 4, -1) })
}

func FuzzPack(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(3), uint16(1))
	f.Add([]byte{255, 0, 7, 9, 11}, uint8(4), uint16(3))
	f.Add([]byte{}, uint8(6), uint16(0))
	f.Fuzz(func(t *testing.T, values []byte, bits uint8, first uint16) {
		n := int(bits)%8 + 1
		packed, back := Pack(values, n), make([]byte, len(values))
		Unpack(back, packed, n, 0)
		for i, v := range values {
			require.Equal(t, v&(1<<n-1), back[i])
		}
		from := int(first) % (len(values) + 1)
		Unpack(back[from:], packed, n, from)
		require.Equal(t, packed, Pack(back, n), "a part is the part")
	})
}
