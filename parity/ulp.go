package parity

import (
	"math"

	"anelab/internal/half"
	"anelab/quant"
)

// ULPs counts the steps between two numbers on the grid of a storage type: how many times one must go to the neighbouring
// number to get from a to b. Both zeros are one point of the grid. Numbers between grid points are rounded first. A number that
// is not finite is at distance 0 from itself and math.MaxInt64 from anything else.
func ULPs(a, b float32, storage quant.DType) int64 {
	if a == b || a != a && b != b {
		return 0
	}
	if !finite(float64(a)) || !finite(float64(b)) {
		return math.MaxInt64
	}
	n := rank(a, storage) - rank(b, storage)
	return max(n, -n)
}

// rank is the number of grid points between 0 and x, negative below 0.
func rank(x float32, storage quant.DType) int64 {
	magnitude := int64(0)
	switch storage {
	case quant.F16:
		magnitude = int64(half.F32ToF16(x) &^ 0x8000)
	case quant.BF16:
		magnitude = int64(half.F32ToBF16(x) &^ 0x8000)
	case quant.F32:
		magnitude = int64(math.Float32bits(x) &^ (1 << 31))
	default:
		panic("parity: ULPs are counted in f32, f16 or bf16")
	}
	if math.Signbit(float64(x)) {
		return -magnitude
	}
	return magnitude
}

// step is the distance from |x| to the next greater number of the storage type.
func step(x float32, storage quant.DType) float64 {
	x = float32(math.Abs(float64(x)))
	n := rank(x, storage)
	switch storage {
	case quant.F16:
		return float64(half.F16ToF32(uint16(n+1))) - float64(half.F16ToF32(uint16(n)))
	case quant.BF16:
		return float64(half.BF16ToF32(uint16(n+1))) - float64(half.BF16ToF32(uint16(n)))
	default:
		return float64(math.Float32frombits(uint32(n+1))) - float64(x)
	}
}
