package kernel

import (
	"encoding/binary"

	"anelab/internal/half"
)

// DecodeBF16 widens little-endian bf16 numbers: dst[i] = src[2i:].
func DecodeBF16(dst []float32, src []byte) {
	n := fastPart(active.decodeBF16, dst, src)
	for i := n; i < len(dst); i++ {
		dst[i] = half.BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// DecodeF16 widens little-endian fp16 numbers.
func DecodeF16(dst []float32, src []byte) {
	n, table := fastPart(active.decodeF16, dst, src), half.F16Table()
	for i := n; i < len(dst); i++ {
		dst[i] = table[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

// DecodeBF16AsF16 reads bf16 numbers as the nearest fp16: what a bf16 weight is to arithmetic that stores fp16.
func DecodeBF16AsF16(dst []float32, src []byte) {
	n, table := fastPart(active.decodeBF16AsF16, dst, src), half.BF16AsF16Table()
	for i := n; i < len(dst); i++ {
		dst[i] = table[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

// fastPart lets an assembly decoder do what it can and returns how much that was.
func fastPart(f func(dst []float32, src []byte), dst []float32, src []byte) int {
	if len(src) != 2*len(dst) {
		panic("kernel: Decode: want two bytes per number")
	}
	n := len(dst) &^ 15
	if f == nil || n == 0 {
		return 0
	}
	f(dst[:n], src[:2*n])
	return n
}
