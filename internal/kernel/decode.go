package kernel

import (
	"encoding/binary"

	"anelab/internal/half"
)

// DecodeBF16 widens little-endian bf16 numbers: dst[i] = src[2i:].
func DecodeBF16(dst []float32, src []byte) {
	n := fastPart(decodeBF16, dst, src)
	for i := n; i < len(dst); i++ {
		dst[i] = half.BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// DecodeF16 widens little-endian fp16 numbers.
func DecodeF16(dst []float32, src []byte) {
	n, table := fastPart(decodeF16, dst, src), half.F16Table()
	for i := n; i < len(dst); i++ {
		dst[i] = table[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

// DecodeBF16AsF16 reads bf16 numbers as the nearest fp16: what a bf16 weight is to arithmetic that stores fp16.
func DecodeBF16AsF16(dst []float32, src []byte) {
	n, table := fastPart(decodeBF16AsF16, dst, src), half.BF16AsF16Table()
	for i := n; i < len(dst); i++ {
		dst[i] = table[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

// format is what a decoder reads.
type format uint8

const (
	decodeBF16 format = iota
	decodeF16
	decodeBF16AsF16
)

// fastPart lets an assembly decoder do what it can and returns how much that was.
func fastPart(f format, dst []float32, src []byte) int {
	if len(src) != 2*len(dst) {
		panic("kernel: Decode: want two bytes per number")
	}
	n := len(dst) &^ 15
	if n == 0 || !decodeFast(f, dst[:n], src[:2*n]) {
		return 0
	}
	return n
}
