package quant

// Elements of fewer than eight bits are stored as Core ML stores them (spec coreml.md §3): element i takes bits
// [i·n, (i+1)·n) of a little-endian stream of bits, so the first of two nibbles is the low one and elements of 3 and 6 bits
// lie across bytes. Rows are not padded.

// PackedLen is the number of bytes that n elements take.
func PackedLen(n, bits int) int { return int((int64(n)*int64(bits) + 7) / 8) }

// Pack stores the low bits of every value. Negative numbers are passed as the byte of their two's complement.
func Pack(values []byte, bits int) []byte {
	dst := make([]byte, PackedLen(len(values), bits))
	packAt(dst, 0, values, bits)
	return dst
}

// Unpack fills dst with the elements from number first on; the bits above an element are zero.
func Unpack(dst, packed []byte, bits, first int) {
	checkBits(bits)
	if first < 0 || len(packed) < PackedLen(first+len(dst), bits) {
		panic("quant: Unpack: packed is shorter than the elements asked for")
	}
	switch bits {
	case 8:
		copy(dst, packed[first:])
	case 4:
		unpackNibbles(dst, packed, first)
	default:
		unpackAny(dst, packed, bits, first)
	}
}

// UnpackSigned is Unpack for two's complement elements.
func UnpackSigned(dst []int8, packed []byte, bits, first int) {
	var chunk [256]byte
	for len(dst) > 0 {
		n := min(len(dst), len(chunk))
		Unpack(chunk[:n], packed, bits, first)
		for i, b := range chunk[:n] {
			dst[i] = int8(b<<(8-bits)) >> (8 - bits)
		}
		dst, first = dst[n:], first+n
	}
}

func checkBits(bits int) {
	if bits < 1 || bits > 8 {
		panic("quant: elements have 1 to 8 bits")
	}
}

func unpackNibbles(dst, packed []byte, first int) {
	i := 0
	if first&1 == 1 && len(dst) > 0 {
		dst[0], i = packed[first>>1]>>4, 1
	}
	src := packed[(first+i)>>1:]
	for ; i+1 < len(dst); i += 2 {
		dst[i], dst[i+1] = src[0]&15, src[0]>>4
		src = src[1:]
	}
	if i < len(dst) {
		dst[i] = src[0] & 15
	}
}

func unpackAny(dst, packed []byte, bits, first int) {
	mask := byte(1)<<bits - 1
	at := uint64(first) * uint64(bits)
	for i := range dst {
		b, shift := at>>3, at&7
		v := packed[b] >> shift
		if shift+uint64(bits) > 8 {
			v |= packed[b+1] << (8 - shift)
		}
		dst[i] = v & mask
		at += uint64(bits)
	}
}

// packAt stores values as elements first, first+1, … of dst, whose bits there are zero.
func packAt(dst []byte, first int, values []byte, bits int) {
	checkBits(bits)
	at := uint64(first) * uint64(bits)
	switch {
	case bits == 8:
		copy(dst[first:], values)
	case bits == 4 && at&7 == 0:
		packNibbles(dst[at>>3:], values)
	default:
		packAny(dst, at, values, bits)
	}
}

func packNibbles(dst, values []byte) {
	n := len(values) / 2
	dst = dst[:(len(values)+1)/2]
	for i := range dst[:n] {
		pair := values[2*i : 2*i+2]
		dst[i] = pair[0]&15 | pair[1]<<4
	}
	if n < len(dst) {
		dst[n] |= values[2*n] & 15
	}
}

func packAny(dst []byte, at uint64, values []byte, bits int) {
	mask := byte(1)<<bits - 1
	for _, v := range values {
		b, shift := at>>3, at&7
		v &= mask
		dst[b] |= v << shift
		if shift+uint64(bits) > 8 {
			dst[b+1] |= v >> (8 - shift)
		}
		at += uint64(bits)
	}
}
