package gguf

import (
	"fmt"
	"math"

	"anelab/internal/format"
)

// Type is the type of a value, by its number in the file.
type Type uint32

// Types of values.
const (
	Uint8 Type = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

var typeNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}

// widths are the bytes of a scalar, 0 for what has a length of its own.
var widths = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Value is one value as it lies in the file.
type Value struct {
	Type Type
	Elem Type // of an array
	Len  int  // elements of an array
	raw  []byte
}

// value reads a type and a value of it.
func (r *reader) value() Value {
	v := Value{Type: Type(r.u32())}
	if r.err != nil {
		return v
	}
	if int(v.Type) >= len(widths) {
		r.fail(v.Type.String(), "a type of 0 to 12", "")
		return v
	}
	switch v.Type {
	case String:
		v.raw = r.bytes()
	case Array:
		r.array(&v)
	default:
		v.raw = r.take(widths[v.Type])
	}
	return v
}

// array walks over the elements of an array. Arrays of arrays have no use in a model and are refused, so there is no recursion
// that a file could deepen.
func (r *reader) array(v *Value) {
	v.Elem = Type(r.u32())
	n := r.u64()
	switch {
	case r.err != nil:
		return
	case v.Elem == Array:
		r.fail("an array of arrays", "an array of numbers or strings", "")
		return
	case int(v.Elem) >= len(widths):
		r.fail("an array of "+v.Elem.String(), "a type of 0 to 12", "")
		return
	}
	least := max(widths[v.Elem], 1)
	if v.Elem == String {
		least = 8
	}
	r.count("elements", n, least)
	if r.err != nil {
		return
	}
	v.Len = int(n)
	start := r.pos
	if v.Elem != String {
		r.take(v.Len * widths[v.Elem])
	} else {
		for i := 0; i < v.Len && r.err == nil; i++ {
			r.bytes()
		}
	}
	v.raw = r.data[start:r.pos]
}

// get returns the value of a key that must be of one of the types.
func (f *File) get(key string, want ...Type) (Value, error) {
	v, ok := f.values[key]
	if !ok {
		return v, &format.Error{Path: f.Path, Field: key, Got: "no such key", Want: want[0].String()}
	}
	for _, t := range want {
		if v.Type == t {
			return v, nil
		}
	}
	return v, &format.Error{Path: f.Path, Field: key, Got: v.Type.String(), Want: want[0].String()}
}

// elements returns an array of one of the types.
func (f *File) elements(key string, want ...Type) (Value, error) {
	v, err := f.get(key, Array)
	if err != nil {
		return v, err
	}
	for _, t := range want {
		if v.Elem == t {
			return v, nil
		}
	}
	return v, &format.Error{Path: f.Path, Field: key, Got: "an array of " + v.Elem.String(), Want: "an array of " + want[0].String()}
}

// Text is the string of a key.
func (f *File) Text(key string) (string, error) {
	v, err := f.get(key, String)
	return string(v.raw), err
}

// Flag is the bool of a key.
func (f *File) Flag(key string) (bool, error) {
	v, err := f.get(key, Bool)
	if err != nil {
		return false, err
	}
	if v.raw[0] > 1 {
		return false, &format.Error{Path: f.Path, Field: key, Got: fmt.Sprintf("byte %d", v.raw[0]), Want: "0 or 1"}
	}
	return v.raw[0] == 1, nil
}

// Uint32 is the number of a key. Only the type that the format prescribes is taken: another one means another meaning.
func (f *File) Uint32(key string) (uint32, error) {
	v, err := f.get(key, Uint32)
	return uint32(little(v.raw)), err
}

// Strings are the elements of an array of strings.
func (f *File) Strings(key string) ([]string, error) {
	v, err := f.elements(key, String)
	if err != nil {
		return nil, err
	}
	all := make([]string, v.Len)
	rest := v.raw
	for i := range all {
		n := little(rest[:8])
		all[i], rest = string(rest[8:8+n]), rest[8+n:]
	}
	return all, nil
}

// Int32s are the elements of an array of int32 or uint32.
func (f *File) Int32s(key string) ([]int32, error) {
	v, err := f.elements(key, Int32, Uint32)
	if err != nil {
		return nil, err
	}
	all := make([]int32, v.Len)
	for i := range all {
		all[i] = int32(little(v.raw[4*i : 4*i+4]))
	}
	return all, nil
}

// Float32s are the elements of an array of float32.
func (f *File) Float32s(key string) ([]float32, error) {
	v, err := f.elements(key, Float32)
	if err != nil {
		return nil, err
	}
	all := make([]float32, v.Len)
	for i := range all {
		all[i] = math.Float32frombits(uint32(little(v.raw[4*i : 4*i+4])))
	}
	return all, nil
}
