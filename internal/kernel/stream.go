package kernel

import (
	"encoding/binary"
	"math"

	"anelab/internal/half"
)

// EncodeF16 narrows to fp16, ties to even.
func EncodeF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	n := len(dst) &^ 15
	if n > 0 && !encodeF16Fast(dst[:n], src[:n]) {
		n = 0
	}
	for i := n; i < len(dst); i++ {
		dst[i] = half.F32ToF16(src[i])
	}
}

// WidenF16 is the float32 value of fp16 numbers.
func WidenF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	n := len(dst) &^ 15
	if n > 0 && !widenFast(decodeF16, dst[:n], src[:n]) {
		n = 0
	}
	table := half.F16Table()
	for i := n; i < len(dst); i++ {
		dst[i] = table[src[i]]
	}
}

// WidenBF16 is the float32 value of bf16 numbers.
func WidenBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	n := len(dst) &^ 15
	if n > 0 && !widenFast(decodeBF16, dst[:n], src[:n]) {
		n = 0
	}
	for i := n; i < len(dst); i++ {
		dst[i] = half.BF16ToF32(src[i])
	}
}

// Axpy4 is y[i] += p[0]·x₀[i] + … + p[3]·x₃[i], added in this order; the rows of x start stride apart.
func Axpy4(y, x []float32, stride int, p *[4]float32) {
	if len(x) < 3*stride+len(y) {
		panic("kernel: Axpy4: rows reach beyond x")
	}
	n := len(y) &^ 15
	if n > 0 && !axpy4Fast(y[:n], x, stride, p) {
		n = 0
	}
	for i := n; i < len(y); i++ {
		s := y[i]
		for r, w := range p {
			s += float32(w * x[r*stride+i])
		}
		y[i] = s
	}
}

// ExpShift is y[i] = e^(x[i]−m) in float32 arithmetic, relative error below 3e-7; y may be x. A result depends on its own operand
// only: the last few elements go through the same code as the others.
func ExpShift(y, x []float32, m float32) {
	y = y[:len(x)]
	n := len(x) &^ 15
	if n > 0 && !expShiftFast(y[:n], x[:n], m) {
		n = 0
	}
	var tail [16]float32
	if copy(tail[:], x[n:]) > 0 && len(x)-n < len(tail) && expShiftFast(tail[:], tail[:], m) {
		copy(y[n:], tail[:])
		return
	}
	for i := n; i < len(x); i++ {
		y[i] = float32(math.Exp(float64(x[i] - m)))
	}
}

// GELUMul is y[i] = gelu(x[i])·z[i] with the tanh form of GELU in float32 arithmetic; y may be an operand. As with ExpShift, a
// result depends on its own operands only.
func GELUMul(y, x, z []float32) {
	y, z = y[:len(x)], z[:len(x)]
	n := len(x) &^ 15
	if n > 0 && !geluMulFast(y[:n], x[:n], z[:n]) {
		n = 0
	}
	var a, b [16]float32
	if copy(b[:], z[n:]); copy(a[:], x[n:]) > 0 && len(x)-n < len(a) && geluMulFast(a[:], a[:], b[:]) {
		copy(y[n:], a[:])
		return
	}
	for i := n; i < len(x); i++ {
		v := float64(x[i])
		y[i] = float32(v/(1+math.Exp(-2*rootTwoOverPi*(v+0.044715*v*v*v)))) * z[i]
	}
}

const rootTwoOverPi = 0x1.9884533d43651p-1

// expConstants are what the vector exponential reads: 1/ln 2, ln 2 in two parts, coefficients from r⁶ down to r², the range, one,
// the two constants of GELU, and what SoftCap needs: −2, the border below which a polynomial serves, its coefficients.
var expConstants = [20]float32{
	0x1.715476p+0, 0x1.62e4p-1, 0x1.7f7d1cp-20,
	1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2,
	-104, 88.7, 1,
	-2 * rootTwoOverPi, -2 * rootTwoOverPi * 0.044715,
	-2, 0.35, -1382.0 / 155925, 62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3,
}

// digitConstants are the greatest integer, the weight of a high digit, the bits of the least peak, and the order of an octet's
// words as a shuffle of bytes.
func digitConstants() *[32]byte {
	if active == avx512 {
		return &digitConstantsPairs
	}
	return &digitConstantsSplit
}

var digitConstantsPairs, digitConstantsSplit = newDigitConstants(&pairsOrder), newDigitConstants(&splitOrder)

func newDigitConstants(order *[8]uint8) (b [32]byte) {
	putFloat(b[0:], digitLimit)
	putFloat(b[4:], 1<<digitBits)
	binary.LittleEndian.PutUint32(b[8:], digitLeast)
	for i, place := range order {
		b[16+2*place], b[17+2*place] = byte(2*i), byte(2*i+1)
	}
	return b
}

func putFloat(b []byte, v float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(v)) }

func getFloat(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
