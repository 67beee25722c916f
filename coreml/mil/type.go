package mil

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind says which of the forms a Type takes.
type Kind uint8

// The kinds of types. Buffer appears only in texts that record placement: a tensor with its strides in memory.
const (
	Tensor Kind = iota + 1
	List
	Tuple
	Dictionary
	State
	Buffer
)

var kindNames = [...]string{Tensor: "tensor", List: "list", Tuple: "tuple", Dictionary: "dict", State: "state", Buffer: "tensor_buffer"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown kind"
}

// Dimensions that are no sizes.
const (
	Unknown  int64 = -1 // any size, known at run time
	Variadic int64 = -2 // any number of dimensions; the rank is unknown
)

// Type is the type of a value.
type Type struct {
	Kind  Kind
	DType DType       // of a tensor or buffer
	Shape []int64     // of a tensor or buffer; sizes, [Unknown] or [Variadic]
	Inner *Components // of the other kinds, and the memory layout of a buffer
}

// Components are what a type is made of.
type Components struct {
	Types      []Type  // a list's or state's one element type, a tuple's members, a dictionary's key and value
	Length     int64   // of a list; [Unknown] if open
	Strides    []int64 // of a buffer, in elements
	Interleave []int64 // of a buffer: interleave factors
}

// TensorOf is the type of a tensor; without a shape, of a scalar.
func TensorOf(d DType, shape ...int64) Type { return Type{Kind: Tensor, DType: d, Shape: shape} }

// StateOf is the type of a state that holds a tensor.
func StateOf(t Type) Type { return Type{Kind: State, Inner: &Components{Types: []Type{t}}} }

// ListOf is the type of a list; length may be [Unknown].
func ListOf(elem Type, length int64) Type {
	return Type{Kind: List, Inner: &Components{Types: []Type{elem}, Length: length}}
}

// TupleOf is the type of a tuple.
func TupleOf(members ...Type) Type { return Type{Kind: Tuple, Inner: &Components{Types: members}} }

// DictOf is the type of a dictionary.
func DictOf(key, value Type) Type {
	return Type{Kind: Dictionary, Inner: &Components{Types: []Type{key, value}}}
}

// Elem is component i of a list (0), state (0), dictionary (0 key, 1 value) or tuple; the zero Type if there is none.
func (t Type) Elem(i int) Type {
	if t.Inner == nil || i >= len(t.Inner.Types) {
		return Type{}
	}
	return t.Inner.Types[i]
}

// Length is the number of elements of a list type, [Unknown] if it is open.
func (t Type) Length() int64 {
	if t.Inner == nil {
		return Unknown
	}
	return t.Inner.Length
}

// AsTensor is the tensor that a state, buffer or tensor holds.
func (t Type) AsTensor() (Type, bool) {
	switch t.Kind {
	case Tensor:
		return t, true
	case Buffer:
		return Type{Kind: Tensor, DType: t.DType, Shape: t.Shape}, true
	case State:
		return t.Elem(0).AsTensor()
	}
	return Type{}, false
}

// IsScalar reports whether t is a tensor of rank 0.
func (t Type) IsScalar() bool { return t.Kind == Tensor && len(t.Shape) == 0 }

// Ranked reports whether the number of dimensions is known.
func (t Type) Ranked() bool { return !slices.Contains(t.Shape, Variadic) }

// Static reports whether every dimension is known.
func (t Type) Static() bool {
	return !slices.ContainsFunc(t.Shape, func(d int64) bool { return d < 0 })
}

// Count is the number of elements; ok is false if a dimension is open or the product does not fit in an int64.
func (t Type) Count() (n int64, ok bool) {
	n = 1
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/64/d { // 64: so that the number of bits fits too
			return 0, false
		}
		n *= d
	}
	return n, true
}

// ByteSize is the size of a tensor's packed bytes; ok is false if it is not known.
func (t Type) ByteSize() (bytes int64, ok bool) {
	n, ok := t.Count()
	return t.DType.Bytes(n), ok && t.DType.Bits() > 0
}

// Equal reports whether two types are the same, open dimensions being equal only to open dimensions.
func (t Type) Equal(o Type) bool {
	if t.Kind != o.Kind || t.DType != o.DType || !slices.Equal(t.Shape, o.Shape) || (t.Inner == nil) != (o.Inner == nil) {
		return false
	}
	return t.Inner == nil || t.Inner.equal(o.Inner)
}

func (c *Components) equal(o *Components) bool {
	return c.Length == o.Length && slices.Equal(c.Strides, o.Strides) && slices.Equal(c.Interleave, o.Interleave) &&
		slices.EqualFunc(c.Types, o.Types, Type.Equal)
}

// Compatible reports whether a value of one type can be one of the other: equal, where both sides are known.
func (t Type) Compatible(o Type) bool {
	if t.Kind != o.Kind || t.DType != o.DType || !CompatibleShapes(t.Shape, o.Shape) {
		return false
	}
	if t.Inner == nil || o.Inner == nil {
		return t.Inner == o.Inner
	}
	a, b := t.Inner, o.Inner
	return (a.Length == b.Length || a.Length < 0 || b.Length < 0) && slices.EqualFunc(a.Types, b.Types, Type.Compatible)
}

// CompatibleShapes reports whether two shapes agree wherever both are known.
func CompatibleShapes(a, b []int64) bool {
	if slices.Contains(a, Variadic) || slices.Contains(b, Variadic) {
		return true
	}
	return slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x < 0 || y < 0 })
}

// String writes the type for messages: tensor<fp16, [1, ?, 64]>, fp16 for a scalar.
func (t Type) String() string {
	switch t.Kind {
	case Tensor:
		if len(t.Shape) == 0 {
			return t.DType.String()
		}
		return fmt.Sprintf("tensor<%s, %s>", t.DType, ShapeString(t.Shape))
	case Buffer:
		return fmt.Sprintf("tensor_buffer<%s, %s>", t.DType, ShapeString(t.Shape))
	case List:
		return fmt.Sprintf("list<%s, %s>", t.Elem(0), dimString(t.Length()))
	case State, Tuple, Dictionary:
		var parts []string
		if t.Inner != nil {
			for _, e := range t.Inner.Types {
				parts = append(parts, e.String())
			}
		}
		return t.Kind.String() + "<" + strings.Join(parts, ", ") + ">"
	}
	return "no type"
}

// ShapeString writes a shape as [1, ?, 64].
func ShapeString(shape []int64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = dimString(d)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func dimString(d int64) string {
	switch d {
	case Unknown:
		return "?"
	case Variadic:
		return "..."
	}
	return strconv.FormatInt(d, 10)
}
