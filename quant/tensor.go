package quant

import (
	"encoding/binary"
	"fmt"
	"math"

	"anelab/internal/half"
)

// DType is the element type of stored bytes.
type DType uint8

// Element types that checkpoints and goldens use. F16 is IEEE binary16, BF16 the upper half of a float32.
const (
	F32 DType = iota + 1
	F16
	BF16
	F64
	I8
	U8
	I32
	I64
	Bool
)

var dtypes = map[DType]struct {
	name string
	size int
}{
	F32: {"f32", 4}, F16: {"f16", 2}, BF16: {"bf16", 2}, F64: {"f64", 8},
	I8: {"i8", 1}, U8: {"u8", 1}, I32: {"i32", 4}, I64: {"i64", 8}, Bool: {"bool", 1},
}

// Size is the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

func (d DType) String() string {
	if t, ok := dtypes[d]; ok {
		return t.name
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Float reports whether the type holds floating-point numbers.
func (d DType) Float() bool { return d == F32 || d == F16 || d == BF16 || d == F64 }

// Tensor is named bytes of a checkpoint: little-endian, row-major, often part of a mapped file and then read-only.
type Tensor struct {
	Name  string
	DType DType
	Shape []int  // outermost first; empty for a scalar
	Data  []byte // len = Len() · DType.Size()
}

// Len is the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Float64s returns a widened copy of a floating-point or integer tensor.
func (t Tensor) Float64s() ([]float64, error) {
	read, err := t.reader()
	if err != nil {
		return nil, err
	}
	x := make([]float64, t.Len())
	for i := range x {
		x[i] = read(i)
	}
	return x, nil
}

// Floats returns a copy as float32: exact for f16, bf16 and f32, rounded to nearest for f64 and wide integers.
func (t Tensor) Floats() ([]float32, error) {
	read, err := t.reader()
	if err != nil {
		return nil, err
	}
	x := make([]float32, t.Len())
	for i := range x {
		x[i] = float32(read(i))
	}
	return x, nil
}

// reader returns a function that widens element i to float64.
func (t Tensor) reader() (func(i int) float64, error) {
	d, le := t.Data, binary.LittleEndian
	switch t.DType {
	case F32:
		return func(i int) float64 { return float64(math.Float32frombits(le.Uint32(d[4*i:]))) }, nil
	case F16:
		return func(i int) float64 { return float64(half.F16ToF32(le.Uint16(d[2*i:]))) }, nil
	case BF16:
		return func(i int) float64 { return float64(half.BF16ToF32(le.Uint16(d[2*i:]))) }, nil
	case F64:
		return func(i int) float64 { return math.Float64frombits(le.Uint64(d[8*i:])) }, nil
	case I64:
		return func(i int) float64 { return float64(int64(le.Uint64(d[8*i:]))) }, nil
	case I32:
		return func(i int) float64 { return float64(int32(le.Uint32(d[4*i:]))) }, nil
	case I8:
		return func(i int) float64 { return float64(int8(d[i])) }, nil
	case U8, Bool:
		return func(i int) float64 { return float64(d[i]) }, nil
	}
	return nil, fmt.Errorf("quant: tensor %s: no numbers in a %s", t.Name, t.DType)
}
