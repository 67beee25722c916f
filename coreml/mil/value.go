package mil

import (
	"fmt"
	"math"
)

// Value is a constant: a type and what it holds.
type Value struct {
	Type    Type
	Content Content
}

// Content is what a value holds. It is one of [Raw], [Strings], [Items], [Pairs], or a [Data]: bytes that are elsewhere, or that
// are made when they are asked for.
type Content any

// Raw is the packed bytes of a tensor, kept as a string because nobody may change them.
type Raw string

// Strings are the elements of a tensor of strings.
type Strings []string

// Items are the elements of a list or tuple.
type Items []*Value

// Pairs are the entries of a dictionary, in file order.
type Pairs []Pair

// Pair is one entry of a dictionary.
type Pair struct{ Key, Value *Value }

// Data yields the packed bytes of a tensor. They must not be written to, and are valid until what they come from is closed.
// A writer asks once and lets go; if the Data is also an [io.WriterTo] it is streamed instead, and need never be whole in memory.
type Data interface {
	Bytes() ([]byte, error)
}

// Blob is a tensor that lies in a weights file.
type Blob struct {
	File   string // as the program names it: @model_path/weights/weight.bin
	Offset uint64 // of the blob's metadata in the file
	Source Data   // nil if the file is not at hand
}

// Bytes reads the blob.
func (b *Blob) Bytes() ([]byte, error) {
	if b.Source == nil {
		return nil, fmt.Errorf("%s, offset %d: the weights file is not open", b.File, b.Offset)
	}
	return b.Source.Bytes()
}

// Bytes are the packed bytes of a tensor. Bytes of a Blob are those of the mapped file, not a copy.
func (v *Value) Bytes() ([]byte, error) {
	switch c := v.Content.(type) {
	case Raw:
		return []byte(c), nil
	case Data:
		return c.Bytes()
	}
	return nil, fmt.Errorf("a value of type %s has no bytes", v.Type)
}

// Blob is the blob that holds v, nil if v is given in place.
func (v *Value) Blob() *Blob {
	b, _ := v.Content.(*Blob)
	return b
}

// Text is the string that a scalar of strings, or a tensor of one string, holds.
func (v *Value) Text() (string, bool) {
	if s, ok := v.Content.(Strings); ok && len(s) == 1 {
		return s[0], true
	}
	return "", false
}

// smallCount bounds what [Value.Ints] and [Value.Floats] decode: parameters of ops, not weights.
const smallCount = 4096

// Ints decodes the elements of a small tensor of integers or bools given in place or in a blob; ok is false for anything else.
func (v *Value) Ints() (elements []int64, ok bool) {
	if !v.Type.DType.IsInt() && v.Type.DType != Bool {
		return nil, false
	}
	bytes, n, ok := v.small()
	if !ok {
		return nil, false
	}
	elements = make([]int64, n)
	for i := range elements {
		elements[i] = Element(v.Type.DType, bytes, int64(i))
	}
	return elements, true
}

// Int is the one element of an integer or bool tensor.
func (v *Value) Int() (int64, bool) {
	if e, ok := v.Ints(); ok && len(e) == 1 {
		return e[0], true
	}
	return 0, false
}

// Floats decodes the elements of a small tensor of floating-point numbers; ok is false for anything else.
func (v *Value) Floats() (elements []float64, ok bool) {
	if !v.Type.DType.IsFloat() {
		return nil, false
	}
	bytes, n, ok := v.small()
	if !ok {
		return nil, false
	}
	elements = make([]float64, n)
	for i := range elements {
		elements[i] = Float(v.Type.DType, bytes, int64(i))
	}
	return elements, true
}

// Float is the one element of a floating-point tensor.
func (v *Value) Float() (float64, bool) {
	if e, ok := v.Floats(); ok && len(e) == 1 {
		return e[0], true
	}
	return 0, false
}

func (v *Value) small() (bytes []byte, n int64, ok bool) {
	size, known := v.Type.ByteSize()
	n, _ = v.Type.Count()
	if v.Type.Kind != Tensor || !known || n > smallCount {
		return nil, 0, false
	}
	bytes, err := v.Bytes()
	return bytes, n, err == nil && int64(len(bytes)) == size
}

// F16 is the bit pattern of a half-precision number, for [Scalar] and [Vector].
type F16 uint16

// Literalable are the Go types that [Scalar] and [Vector] turn into values.
type Literalable interface {
	bool | string | F16 | float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// Scalar is a value of rank 0.
func Scalar[T Literalable](x T) *Value {
	v := Vector(x)
	v.Type.Shape = nil
	return v
}

// Vector is a value of rank 1.
func Vector[T Literalable](xs ...T) *Value {
	var zero T
	d, _ := scalarBits(zero)
	var raw []byte
	var text Strings
	for _, x := range xs {
		if s, ok := any(x).(string); ok {
			text = append(text, s)
			continue
		}
		_, bits := scalarBits(x)
		raw = appendBits(raw, d, bits)
	}
	v := &Value{Type: TensorOf(d, int64(len(xs))), Content: Raw(raw)}
	if d == String {
		v.Content = text
	}
	return v
}

// TensorValue is a tensor of given packed bytes; it panics if their number is not what the type needs.
func TensorValue(t Type, packed []byte) *Value {
	if n, ok := t.ByteSize(); !ok || n != int64(len(packed)) {
		panic(panicBytes)
	}
	return &Value{Type: t, Content: Raw(packed)}
}

const panicBytes = "mil: the bytes of a tensor do not fit its type"

// scalarBits are the element type and the bit pattern of a Go value.
func scalarBits(x any) (DType, uint64) {
	switch x := x.(type) {
	case F16:
		return Float16, uint64(x)
	case float32:
		return Float32, uint64(math.Float32bits(x))
	case float64:
		return Float64, math.Float64bits(x)
	case int8:
		return Int8, uint64(x)
	case int16:
		return Int16, uint64(x)
	case int32:
		return Int32, uint64(x)
	case int64:
		return Int64, uint64(x)
	case uint8:
		return UInt8, uint64(x)
	case uint16:
		return UInt16, uint64(x)
	case uint32:
		return UInt32, uint64(x)
	case uint64:
		return UInt64, x
	case string:
		return String, 0
	case bool:
		if x {
			return Bool, 1
		}
	}
	return Bool, 0
}
