package half

import (
	"math"
	"sync"

	"github.com/x448/float16"
)

// MaxF16 is the largest finite fp16 number.
const MaxF16 = 65504

// F16ToF32 widens one fp16 bit pattern; exact.
func F16ToF32(b uint16) float32 { return float16.Frombits(b).Float32() }

// F32ToF16 rounds to the nearest fp16, ties to even; values of magnitude 65520 and above become ±Inf.
func F32ToF16(x float32) uint16 { return float16.Fromfloat32(x).Bits() }

// BF16ToF32 widens one bf16 bit pattern; exact, also for subnormals and NaN.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 rounds to the nearest bf16, ties to even. A NaN stays a NaN with its sign, whatever its payload.
func F32ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// RoundF16 is the float32 value of the nearest fp16.
func RoundF16(x float32) float32 { return F16Table()[F32ToF16(x)] }

// RoundF16Saturate is RoundF16 with finite overflow clamped to ±65504, as the ANE is reported to do (spec forward.md §5.2).
// True infinities stay infinite: a mask of −Inf must keep its meaning.
func RoundF16Saturate(x float32) float32 {
	if math.IsInf(float64(x), 0) {
		return x
	}
	return RoundF16(min(max(x, -MaxF16), MaxF16))
}

// RoundBF16 is the float32 value of the nearest bf16.
func RoundBF16(x float32) float32 { return BF16ToF32(F32ToBF16(x)) }

// F16Table returns the float32 value of every fp16 bit pattern; 256 KiB, built once.
func F16Table() *[1 << 16]float32 { return f16Table() }

var f16Table = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = F16ToF32(uint16(i))
	}
	return t
})

// BF16AsF16Table returns, for every bf16 bit pattern, the float32 value of its nearest fp16: how a bf16 checkpoint
// looks to arithmetic that stores weights in fp16. 256 KiB, built once.
func BF16AsF16Table() *[1 << 16]float32 { return bf16AsF16Table() }

var bf16AsF16Table = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = RoundF16(BF16ToF32(uint16(i)))
	}
	return t
})
