package interp

import (
	"fmt"
	"math"
	"slices"

	"anelab/coreml/mil"
	"anelab/internal/half"
	"anelab/quant"
)

// Tensor is a value that goes into or comes out of a program, row-major. Floats or Ints holds the elements, the other is nil.
type Tensor struct {
	DType  mil.DType
	Shape  []int     // empty for a scalar
	Floats []float32 // of floating types: numbers that DType can hold
	Ints   []int32   // of integers, and of bools as 0 and 1
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

// F16 is an fp16 tensor; elements are rounded to fp16.
func F16(floats []float32, shape ...int) *Tensor {
	t := &Tensor{DType: mil.Float16, Shape: slices.Clone(shape), Floats: make([]float32, len(floats))}
	for i, x := range floats {
		t.Floats[i] = half.RoundF16(x)
	}
	return t
}

// I32 is an int32 tensor.
func I32(ints []int32, shape ...int) *Tensor {
	return &Tensor{DType: mil.Int32, Shape: slices.Clone(shape), Ints: slices.Clone(ints)}
}

// Len is the number of elements.
func (t *Tensor) Len() int { return count(t.Shape) }

// Clone is a copy that shares nothing.
func (t *Tensor) Clone() *Tensor {
	return &Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Floats: slices.Clone(t.Floats), Ints: slices.Clone(t.Ints)}
}

// Type is the type of the tensor in a program.
func (t *Tensor) Type() mil.Type { return mil.TensorOf(t.DType, sizes(t.Shape)...) }

// sound reports whether there are as many elements as the shape says, in the slice that the type asks for.
func (t *Tensor) sound() bool {
	n := 1
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt32*64/d {
			return false
		}
		n *= d
	}
	if t.DType.IsFloat() {
		return len(t.Floats) == n && t.Ints == nil
	}
	return t.DType.Known() && t.DType != mil.String && len(t.Ints) == n && t.Floats == nil
}

var fromQuant = map[quant.DType]mil.DType{
	quant.F16: mil.Float16, quant.F32: mil.Float32, quant.BF16: mil.BFloat16, quant.F64: mil.Float64, quant.I8: mil.Int8, quant.U8: mil.UInt8,
	quant.I32: mil.Int32, quant.I64: mil.Int32, quant.Bool: mil.Bool,
}

// FromStored copies a tensor of a file, such as safetensors. 64-bit integers must fit in 32 bits.
func FromStored(q quant.Tensor) (*Tensor, error) {
	d, ok := fromQuant[q.DType]
	if !ok {
		return nil, fmt.Errorf("tensor %s: no tensor of a program has elements of type %s", q.Name, q.DType)
	}
	t := &Tensor{DType: d, Shape: slices.Clone(q.Shape)}
	if d.IsFloat() {
		var err error
		t.Floats, err = q.Floats()
		return t, err
	}
	wide, err := q.Float64s()
	if err != nil {
		return nil, err
	}
	t.Ints = make([]int32, len(wide))
	for i, x := range wide {
		if x < math.MinInt32 || x > math.MaxInt32 {
			return nil, fmt.Errorf("tensor %s: element %d is %.0f, beyond 32 bits", q.Name, i, x)
		}
		t.Ints[i] = int32(x)
	}
	return t, nil
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// sizes is a shape as the program has it.
func sizes(shape []int) []int64 {
	s := make([]int64, len(shape))
	for i, d := range shape {
		s[i] = int64(d)
	}
	return s
}

func shapeOf(s []int64) []int {
	shape := make([]int, len(s))
	for i, d := range s {
		shape[i] = int(d)
	}
	return shape
}
