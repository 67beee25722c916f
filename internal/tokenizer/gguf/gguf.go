package gguf

import (
	"fmt"
	"math"

	"anelab/internal/format"
)

// Magic begins every GGUF file.
const Magic = "GGUF"

// alignmentKey is the one key that the container itself obeys.
const (
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	mostAlignment    = 1 << 16
)

// File is the directory of a GGUF file.
type File struct {
	Path    string
	Version int
	Tensors []Tensor

	values map[string]Value
}

// Parse reads the directory of data; path is used in errors. The values are views of data.
func Parse(path string, data []byte) (*File, error) {
	r := &reader{path: path, data: data, field: "header"}
	f := &File{Path: path, values: map[string]Value{}}
	tensors, keys := r.header(f)
	for i := uint64(0); i < keys && r.err == nil; i++ {
		r.field = fmt.Sprintf("key %d", i)
		f.add(r)
	}
	for i := uint64(0); i < tensors && r.err == nil; i++ {
		r.field = fmt.Sprintf("tensor %d", i)
		f.Tensors = append(f.Tensors, r.tensor())
	}
	if r.err == nil {
		r.layOut(f)
	}
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

// Has reports whether the file has a key.
func (f *File) Has(key string) bool {
	_, ok := f.values[key]
	return ok
}

// least bytes of one entry: an empty name, its type, the smallest value; a tensor without dimensions.
const (
	leastKeyBytes    = 8 + 4 + 1
	leastTensorBytes = 8 + 4 + 4 + 8
)

// header reads what comes first and returns the two counts.
func (r *reader) header(f *File) (tensors, keys uint64) {
	if magic := r.take(len(Magic)); r.err == nil && string(magic) != Magic {
		r.fail(fmt.Sprintf("%q", magic), `"GGUF"`, "is this a GGUF file?")
	}
	version := r.u32()
	switch {
	case r.err != nil:
	case version == 2 || version == 3:
	case version != 0 && version&0xFFFF == 0:
		r.fail("a big-endian file", "little-endian", "convert the model on the machine that reads it")
	default:
		r.fail(fmt.Sprintf("version %d", version), "2 or 3", "convert the model again with a newer tool")
	}
	f.Version = int(version)
	tensors, keys = r.u64(), r.u64()
	r.count("tensors", tensors, leastTensorBytes)
	r.count("keys", keys, leastKeyBytes)
	return tensors, keys
}

// add reads one key and its value.
func (f *File) add(r *reader) {
	key := r.str()
	if r.err != nil {
		return
	}
	if key == "" {
		r.fail("an empty key", "a name", "")
		return
	}
	r.field = key
	v := r.value()
	if r.err != nil {
		return
	}
	if _, twice := f.values[key]; twice {
		r.fail("the key twice", "once", "")
		return
	}
	f.values[key] = v
}

// reader walks over the bytes; after the first fault everything it returns is zero.
type reader struct {
	path  string
	field string // where it is
	data  []byte
	pos   int
	err   error
}

func (r *reader) left() int { return len(r.data) - r.pos }

func (r *reader) fail(got, want, fix string) {
	if r.err == nil {
		r.err = &format.Error{Path: r.path, Field: r.field, Got: got, Want: want, Fix: fix}
	}
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.left() {
		r.fail(fmt.Sprintf("end of file at byte %d", len(r.data)), fmt.Sprintf("%d bytes more", n-r.left()), "the file is cut off: fetch it again")
		return nil
	}
	b := r.data[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// count refuses a number of entries that the rest of the file cannot hold.
func (r *reader) count(what string, n uint64, least int) {
	if r.err == nil && n > uint64(r.left()/least) {
		r.fail(fmt.Sprintf("%d %s", n, what), fmt.Sprintf("at most %d in the %d bytes left", r.left()/least, r.left()), "the file is damaged or cut off")
	}
}

func (r *reader) u32() uint32 { return uint32(little(r.take(4))) }

func (r *reader) u64() uint64 { return little(r.take(8)) }

// str reads a length and that many bytes.
func (r *reader) str() string { return string(r.bytes()) }

func (r *reader) bytes() []byte {
	n := r.u64()
	r.count("bytes of text", n, 1)
	if r.err != nil {
		return nil
	}
	return r.take(int(n))
}

// little is a little-endian number of up to 8 bytes.
func little(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// product multiplies sizes that come from the file; ok is false when it does not fit an int64.
func product(factors ...uint64) (n uint64, ok bool) {
	n = 1
	for _, f := range factors {
		if f != 0 && n > math.MaxInt64/f {
			return 0, false
		}
		n *= f
	}
	return n, true
}
