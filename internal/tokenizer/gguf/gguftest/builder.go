package gguftest

import (
	"encoding/binary"
	"math"
	"slices"
)

// Builder collects the parts of a file. The zero value is an empty file of version 3.
type Builder struct {
	Version uint32 // 0 = 3
	// Counts that the header claims, where they are not the true ones.
	ClaimKeys, ClaimTensors uint64

	keys    []entry
	tensors [][]byte
	data    []byte
}

type entry struct {
	name  string
	value []byte // with its type
}

var le = binary.LittleEndian

// String is a length and bytes.
func String(s string) []byte { return append(le.AppendUint64(nil, uint64(len(s))), s...) }

// Raw adds a key with the bytes of its type and value.
func (b *Builder) Raw(key string, value []byte) *Builder {
	b.keys = append(b.keys, entry{key, value})
	return b
}

// Remove forgets a key.
func (b *Builder) Remove(key string) *Builder {
	b.keys = slices.DeleteFunc(b.keys, func(e entry) bool { return e.name == key })
	return b
}

// Text adds a string.
func (b *Builder) Text(key, value string) *Builder {
	return b.Raw(key, append(le.AppendUint32(nil, 8), String(value)...))
}

// Uint32 adds a number.
func (b *Builder) Uint32(key string, value uint32) *Builder {
	return b.Raw(key, le.AppendUint32(le.AppendUint32(nil, 4), value))
}

// Flag adds a bool by its byte.
func (b *Builder) Flag(key string, value byte) *Builder {
	return b.Raw(key, append(le.AppendUint32(nil, 7), value))
}

// Array is the type and the head of an array of n elements.
func Array(elem uint32, n uint64) []byte {
	return le.AppendUint64(le.AppendUint32(le.AppendUint32(nil, 9), elem), n)
}

// Strings adds an array of strings.
func (b *Builder) Strings(key string, values []string) *Builder {
	raw := Array(8, uint64(len(values)))
	for _, v := range values {
		raw = append(raw, String(v)...)
	}
	return b.Raw(key, raw)
}

// Int32s adds an array of int32.
func (b *Builder) Int32s(key string, values []int32) *Builder {
	raw := Array(5, uint64(len(values)))
	for _, v := range values {
		raw = le.AppendUint32(raw, uint32(v))
	}
	return b.Raw(key, raw)
}

// Float32s adds an array of float32.
func (b *Builder) Float32s(key string, values []float32) *Builder {
	raw := Array(6, uint64(len(values)))
	for _, v := range values {
		raw = le.AppendUint32(raw, math.Float32bits(v))
	}
	return b.Raw(key, raw)
}

// Tensor is an entry of the list of tensors; NDims is the true number of Dims unless it is set.
type Tensor struct {
	Name   string
	NDims  uint32
	Dims   []uint64
	Type   uint32
	Offset uint64
}

// Tensor adds an entry to the list.
func (b *Builder) Tensor(t Tensor) *Builder {
	raw := String(t.Name)
	n := uint32(len(t.Dims))
	if t.NDims != 0 {
		n = t.NDims
	}
	raw = le.AppendUint32(raw, n)
	for _, d := range t.Dims {
		raw = le.AppendUint64(raw, d)
	}
	b.tensors = append(b.tensors, le.AppendUint64(le.AppendUint32(raw, t.Type), t.Offset))
	return b
}

// Data adds tensor data behind the padding.
func (b *Builder) Data(data []byte) *Builder {
	b.data = append(b.data, data...)
	return b
}

// Bytes is the file, its data at a multiple of 32.
func (b *Builder) Bytes() []byte {
	version, tensors, keys := b.Version, b.ClaimTensors, b.ClaimKeys
	if version == 0 {
		version = 3
	}
	if tensors == 0 {
		tensors = uint64(len(b.tensors))
	}
	if keys == 0 {
		keys = uint64(len(b.keys))
	}
	out := le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), version), tensors), keys)
	for _, e := range b.keys {
		out = append(append(out, String(e.name)...), e.value...)
	}
	for _, t := range b.tensors {
		out = append(out, t...)
	}
	if len(b.tensors) > 0 {
		out = append(out, make([]byte, -len(out)&31)...)
	}
	return append(out, b.data...)
}
