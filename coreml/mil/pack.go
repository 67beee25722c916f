package mil

import (
	"encoding/binary"
	"math"

	"anelab/internal/half"
)

// Pack writes the low bits of each code as one packed element: element i takes bits [i·n, (i+1)·n) of the stream, least
// significant first, so that the first of two 4-bit elements is the low nibble. Bits above the width are dropped.
func Pack(d DType, codes []int64) []byte {
	n := d.Bits()
	if n == 0 || n > 64 {
		panic(panicNoWidth)
	}
	out := make([]byte, d.Bytes(int64(len(codes))))
	for i, c := range codes {
		SetBits(d, out, int64(i), uint64(c))
	}
	return out
}

// SetBits puts the low bits of a pattern into element i of packed elements, whose bits must be zero.
func SetBits(d DType, packed []byte, i int64, pattern uint64) {
	setBits(packed, int(i)*d.Bits(), d.Bits(), pattern)
}

const panicNoWidth = "mil: elements of this type have no width"

// setBits ors the low n bits of x into out at a bit position.
func setBits(out []byte, at, n int, x uint64) {
	if n < 64 {
		x &= 1<<n - 1
	}
	for n > 0 {
		shift := at % 8
		out[at/8] |= byte(x << shift)
		taken := min(8-shift, n)
		x >>= taken
		at += taken
		n -= taken
	}
}

func appendBits(raw []byte, d DType, bits uint64) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	return append(raw, b[:d.Bits()/8]...)
}

// Bits is the bit pattern of element i of packed elements.
func Bits(d DType, packed []byte, i int64) uint64 {
	n := d.Bits()
	switch n {
	case 8:
		return uint64(packed[i])
	case 16:
		return uint64(binary.LittleEndian.Uint16(packed[2*i:]))
	case 32:
		return uint64(binary.LittleEndian.Uint32(packed[4*i:]))
	case 64:
		return binary.LittleEndian.Uint64(packed[8*i:])
	}
	at := int(i) * n
	word := uint64(packed[at/8])
	if at%8+n > 8 {
		word |= uint64(packed[at/8+1]) << 8
	}
	return word >> (at % 8) & (1<<n - 1)
}

// Element is element i of packed integers or bools.
func Element(d DType, packed []byte, i int64) int64 {
	bits, n := Bits(d, packed, i), d.Bits()
	if d.IsSigned() {
		return int64(bits<<(64-n)) >> (64 - n)
	}
	return int64(bits)
}

// Float is element i of packed floating-point numbers, exact.
func Float(d DType, packed []byte, i int64) float64 {
	bits := Bits(d, packed, i)
	switch d {
	case Float16:
		return float64(half.F16ToF32(uint16(bits)))
	case BFloat16:
		return float64(half.BF16ToF32(uint16(bits)))
	case Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case Float64:
		return math.Float64frombits(bits)
	case F8E4M3FN:
		return float8(byte(bits), 4, 7)
	case F8E5M2:
		return float8(byte(bits), 5, 15)
	}
	panic(panicNoFloat)
}

const panicNoFloat = "mil: elements of this type are no floating-point numbers"

// float8 widens an 8-bit number with the given exponent width and bias. E4M3FN has no infinities: only all ones is a NaN.
func float8(b byte, exponentBits, bias int) float64 {
	mantissaBits := 7 - exponentBits
	sign := 1 - 2*float64(b>>7)
	exponent := int(b>>mantissaBits) & (1<<exponentBits - 1)
	mantissa := float64(b & (1<<mantissaBits - 1))
	one := float64(int(1) << mantissaBits)
	switch all := 1<<exponentBits - 1; {
	case exponent == all && exponentBits == 5 && mantissa == 0:
		return math.Inf(int(sign))
	case exponent == all && (exponentBits == 5 || mantissa == one-1):
		return math.NaN()
	case exponent == 0:
		return sign * math.Ldexp(mantissa/one, 1-bias)
	}
	return sign * math.Ldexp(1+mantissa/one, exponent-bias)
}
