package interp

import (
	"math"

	"anelab/coreml/mil"
	"anelab/internal/half"
)

// casting changes element types.
var casting = family{"cast": cast, "quantize": quantize, "dequantize": dequantize}

// cast truncates towards zero from floats to integers; beyond the range of the type it saturates. To fp16 it rounds in every
// precision: here rounding is what the op is for.
func cast(c *call) {
	x, d := c.array("x"), c.declared(0).DType
	out := newArray(d, x.shape...)
	switch {
	case d.IsFloat():
		copy(out.floats, toFloats(x))
		if c.graph().Store(out.floats); d == mil.Float16 {
			c.halve(out.floats)
		}
	case d == mil.Bool:
		for i, v := range toFloats(x) {
			out.ints[i] = truth(v)
		}
	case x.isFloat():
		for i, v := range x.flat() {
			out.ints[i] = saturated(math.Trunc(float64(v)), d)
		}
	default:
		for i, v := range x.flatInts() {
			out.ints[i] = wrapped(v, d)
		}
	}
	c.yield(out)
}

// halve rounds to fp16 where the arithmetic has not.
func (c *call) halve(x []float32) {
	if c.Precision == FP16 || c.Precision == ANE {
		return
	}
	for i, v := range x {
		x[i] = half.RoundF16(v)
	}
}

func truth(x float32) int32 {
	if x != 0 {
		return 1
	}
	return 0
}

// span is the range of an integer type of up to 32 bits.
func span(d mil.DType) (lo, hi float64) {
	bits := min(d.Bits(), 32)
	if d.IsSigned() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	}
	return 0, math.Ldexp(1, bits) - 1
}

func saturated(x float64, d mil.DType) int32 {
	lo, hi := span(d)
	if x != x {
		return 0
	}
	return int32(int64(min(max(x, lo), hi)))
}

// wrapped keeps the low bits, as integer conversions do.
func wrapped(x int32, d mil.DType) int32 {
	bits := min(d.Bits(), 32)
	if d.IsSigned() {
		return x << (32 - bits) >> (32 - bits)
	}
	return int32(uint32(x) << (32 - bits) >> (32 - bits))
}

// scales are the scale and the zero point for every element of x.
func (c *call) scales(x *array) (scale, zero *array) {
	along := func(param string) *array {
		a := c.array(param)
		if a == nil {
			return newArray(mil.Int32).broadcast(x.shape)
		}
		if len(a.shape) == 1 {
			shape := ones(len(x.shape))
			shape[c.axis("axis", 0, len(x.shape))] = a.shape[0]
			a = a.reshape(shape...)
		}
		return a.broadcast(x.shape)
	}
	return along("scale"), along("zero_point")
}

func quantize(c *call) {
	x, d := c.array("input"), c.declared(0).DType
	scale, zero := c.scales(x)
	in, s, z, out := x.flat(), scale.flat(), zero.flatInts(), newArray(d, x.shape...)
	for i, v := range in {
		out.ints[i] = saturated(math.RoundToEven(float64(v/s[i]))+float64(z[i]), d)
	}
	c.yield(out)
}

func dequantize(c *call) {
	x := c.array("input")
	scale, zero := c.scales(x)
	s, z, out := scale.flat(), zero.flatInts(), newArray(c.declared(0).DType, x.shape...)
	for i, v := range x.flatInts() {
		out.floats[i] = s[i] * float32(v-z[i])
	}
	c.graph().Store(out.floats)
	c.yield(out)
}
