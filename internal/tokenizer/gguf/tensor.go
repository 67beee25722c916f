package gguf

import (
	"fmt"

	"anelab/internal/format"
)

// mostDims is the rank that the format allows.
const mostDims = 4

// Tensor is an entry of the list of tensors. Dims[0] is the row length, as GGUF counts.
type Tensor struct {
	Name        string
	Dims        []uint64
	Type        uint32 // ggml's number
	OffsetBytes uint64 // in the tensor data
	SizeBytes   uint64 // 0 where the type is unknown
}

// blocks are the ggml types with their block length in elements and bytes. A type that is not listed is let through without a
// check of its size: the vocabulary of a file does not depend on it.
var blocks = map[uint32]struct{ elements, bytes uint64 }{
	0: {1, 4}, 1: {1, 2}, 2: {32, 18}, 3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 8: {32, 34}, 9: {32, 36},
	10: {256, 84}, 11: {256, 110}, 12: {256, 144}, 13: {256, 176}, 14: {256, 210}, 15: {256, 292},
	24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, 30: {1, 2},
}

// tensor reads one entry.
func (r *reader) tensor() Tensor {
	t := Tensor{Name: r.str()}
	if r.err == nil && t.Name != "" {
		r.field = fmt.Sprintf("tensor %q", clip(t.Name))
	}
	n := r.u32()
	if r.err == nil && (n == 0 || n > mostDims) {
		r.fail(fmt.Sprintf("%d dimensions", n), fmt.Sprintf("1 to %d", mostDims), "the file is damaged")
	}
	for i := uint32(0); i < n && r.err == nil; i++ {
		t.Dims = append(t.Dims, r.u64())
	}
	t.Type, t.OffsetBytes = r.u32(), r.u64()
	if r.err == nil {
		r.size(&t)
	}
	return t
}

// size checks the shape and computes the bytes.
func (r *reader) size(t *Tensor) {
	for _, d := range t.Dims {
		if d == 0 {
			r.fail(fmt.Sprintf("shape %d", t.Dims), "dimensions of at least 1", "the file is damaged")
			return
		}
	}
	elements, ok := product(t.Dims...)
	block, known := blocks[t.Type]
	if ok && known {
		if t.Dims[0]%block.elements != 0 {
			r.fail(fmt.Sprintf("rows of %d", t.Dims[0]), fmt.Sprintf("a multiple of the block of %d elements", block.elements), "the file is damaged")
			return
		}
		t.SizeBytes, ok = product(elements/block.elements, block.bytes)
	}
	if !ok {
		r.fail(fmt.Sprintf("shape %d", t.Dims), "a size of less than 2^63", "the file is damaged")
	}
}

// layOut checks that every tensor lies in the file, on the alignment that the file asks for.
func (r *reader) layOut(f *File) {
	r.field = alignmentKey
	alignment := uint64(defaultAlignment)
	if f.Has(alignmentKey) {
		a, err := f.Uint32(alignmentKey)
		if err != nil {
			r.err = err
			return
		}
		alignment = uint64(a)
	}
	if alignment < 8 || alignment > mostAlignment || alignment&(alignment-1) != 0 {
		r.fail(fmt.Sprint(alignment), fmt.Sprintf("a power of two from 8 to %d", mostAlignment), "the file is damaged")
		return
	}
	start := (uint64(r.pos) + alignment - 1) / alignment * alignment
	names := map[string]bool{}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if err := t.check(uint64(len(r.data)), start, alignment); err != nil {
			err.Path, r.err = f.Path, err
			return
		}
		if names[t.Name] {
			r.field = fmt.Sprintf("tensor %q", clip(t.Name))
			r.fail("the name twice", "once", "")
			return
		}
		names[t.Name] = true
	}
}

// check compares the place of the tensor with a file of so many bytes whose tensor data begin at start.
func (t *Tensor) check(file, start, alignment uint64) *format.Error {
	e := &format.Error{Field: fmt.Sprintf("tensor %q", clip(t.Name)), Fix: "the file is damaged or cut off"}
	switch {
	case t.OffsetBytes%alignment != 0:
		e.Got, e.Want = fmt.Sprintf("offset %d", t.OffsetBytes), fmt.Sprintf("a multiple of %d", alignment)
	case start > file || t.OffsetBytes > file-start || t.SizeBytes > file-start-t.OffsetBytes:
		e.Got, e.Want = fmt.Sprintf("%d bytes at %d of the data", t.SizeBytes, t.OffsetBytes), fmt.Sprintf("them inside a file of %d bytes", file)
	default:
		return nil
	}
	return e
}

// clip shortens a name for a message.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
