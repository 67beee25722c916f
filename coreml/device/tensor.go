package device

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"anelab/coreml/mil"
	"anelab/internal/half"
)

// Tensor is a value that goes into or comes out of a model, row-major: the fields of interp.Tensor, which converts to it.
type Tensor struct {
	DType  mil.DType
	Shape  []int     // empty for a scalar
	Floats []float32 // of floating types: numbers that DType can hold
	Ints   []int32   // of integers
}

// NewTensor is a tensor of zeros.
func NewTensor(d mil.DType, shape ...int) *Tensor {
	t := &Tensor{DType: d, Shape: slices.Clone(shape)}
	if d.IsFloat() {
		t.Floats = make([]float32, count(shape))
	} else {
		t.Ints = make([]int32, count(shape))
	}
	return t
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// sound reports whether there are as many elements as the shape says, in the slice that the type asks for.
func (t *Tensor) sound() bool {
	n := 1
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			return false
		}
		n *= d
	}
	if t.DType.IsFloat() {
		return len(t.Floats) == n && t.Ints == nil
	}
	return len(t.Ints) == n && t.Floats == nil
}

// arrayTypes are the element types of MLMultiArray, by their numbers there.
var arrayTypes = map[id]mil.DType{
	0x10000 | 16: mil.Float16, 0x10000 | 32: mil.Float32, 0x10000 | 64: mil.Float64, 0x20000 | 32: mil.Int32, 0x20000 | 8: mil.Int8,
}

// arrayType is the number of an element type, 0 if an array cannot have it.
func arrayType(d mil.DType) id {
	for number, known := range arrayTypes {
		if known == d {
			return number
		}
	}
	return 0
}

// layout is where the elements of an array lie: padded rows are normal on an IOSurface.
type layout struct {
	dtype   mil.DType
	shape   []int
	strides []int // in elements
}

// bytes is the least memory that holds the last element.
func (l layout) bytes() (int, error) {
	if len(l.strides) != len(l.shape) {
		return 0, fmt.Errorf("%d strides for shape %v", len(l.strides), l.shape)
	}
	last := 0
	for i, n := range l.shape {
		if n == 0 {
			return 0, nil
		}
		if n < 0 || l.strides[i] < 0 {
			return 0, fmt.Errorf("shape %v with strides %v", l.shape, l.strides)
		}
		last += (n - 1) * l.strides[i]
	}
	return int(l.dtype.Bytes(int64(last + 1))), nil
}

// walk calls f for every element in row-major order with its place in memory, counted in elements.
func (l layout) walk(f func(i, at int)) {
	index, at, n := make([]int, len(l.shape)), 0, count(l.shape)
	for i := range n {
		f(i, at)
		for d := len(l.shape) - 1; d >= 0; d-- {
			index[d]++
			at += l.strides[d]
			if index[d] < l.shape[d] {
				break
			}
			at -= index[d] * l.strides[d]
			index[d] = 0
		}
	}
}

// encode writes the elements of t to the memory of an array.
func (l layout) encode(memory []byte, t *Tensor) {
	le := binary.LittleEndian
	switch l.dtype {
	case mil.Float16:
		l.walk(func(i, at int) { le.PutUint16(memory[2*at:], half.F32ToF16(t.Floats[i])) })
	case mil.Float32:
		l.walk(func(i, at int) { le.PutUint32(memory[4*at:], math.Float32bits(t.Floats[i])) })
	case mil.Float64:
		l.walk(func(i, at int) { le.PutUint64(memory[8*at:], math.Float64bits(float64(t.Floats[i]))) })
	case mil.Int32:
		l.walk(func(i, at int) { le.PutUint32(memory[4*at:], uint32(t.Ints[i])) })
	case mil.Int8:
		l.walk(func(i, at int) { memory[at] = byte(t.Ints[i]) })
	}
}

// decode reads the elements of an array.
func (l layout) decode(memory []byte) *Tensor {
	t, le := NewTensor(l.dtype, l.shape...), binary.LittleEndian
	switch l.dtype {
	case mil.Float16:
		l.walk(func(i, at int) { t.Floats[i] = half.F16ToF32(le.Uint16(memory[2*at:])) })
	case mil.Float32:
		l.walk(func(i, at int) { t.Floats[i] = math.Float32frombits(le.Uint32(memory[4*at:])) })
	case mil.Float64:
		l.walk(func(i, at int) { t.Floats[i] = float32(math.Float64frombits(le.Uint64(memory[8*at:]))) })
	case mil.Int32:
		l.walk(func(i, at int) { t.Ints[i] = int32(le.Uint32(memory[4*at:])) })
	case mil.Int8:
		l.walk(func(i, at int) { t.Ints[i] = int32(int8(memory[at])) })
	}
	return t
}
