package torchpickle

import (
	"fmt"
	"math"
	"math/bits"

	"anelab/quant"
)

const maxRank = 32

// storage is the elements of one record.
type storage struct {
	dtype quant.DType
	data  []byte
}

// GoString keeps gopickle's messages from printing the elements.
func (s *storage) GoString() string { return "storage" }

func (s *storage) len() int { return len(s.data) / s.dtype.Size() }

// view is a tensor: element (i, j, …) is number offset + i·stride[0] + j·stride[1] + … of its storage, and inside it.
type view struct {
	storage       *storage
	offset        int
	shape, stride []int
}

// GoString is for gopickle's messages.
func (v *view) GoString() string { return "tensor" }

// newView checks that every element lies inside the storage, and that a copy would be no larger than it: a stride of 0 could
// repeat one element a billion times.
func newView(s *storage, offset int, shape, stride []int) (*view, error) {
	if len(shape) != len(stride) {
		return nil, fmt.Errorf("size %v with stride %v", shape, stride)
	}
	count, last, ok := 1, offset, true
	for i, n := range shape {
		count, ok = mul(count, n, ok)
		step := 0
		step, ok = mul(max(n-1, 0), stride[i], ok)
		last, ok = add(last, step, ok)
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("size %v with stride %v at offset %d: more elements than can be addressed", shape, stride, offset)
	case count > 0 && last >= s.len():
		return nil, fmt.Errorf("size %v with stride %v at offset %d reads element %d of a storage of %d", shape, stride, offset, last, s.len())
	case count > s.len():
		return nil, fmt.Errorf("size %v with stride %v repeats the %d elements of its storage", shape, stride, s.len())
	}
	return &view{s, offset, shape, stride}, nil
}

// mul is a·b for whole numbers; ok becomes false when the result is no int.
func mul(a, b int, ok bool) (int, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int(lo), ok && hi == 0 && lo <= math.MaxInt
}

// add is a+b for whole numbers; ok becomes false when the result is no int.
func add(a, b int, ok bool) (int, bool) {
	return a + b, ok && a <= math.MaxInt-b
}

// bytes returns the elements in row-major order: a part of the storage if they lie so, else a copy.
func (v *view) bytes() []byte {
	size, n := v.storage.dtype.Size(), v.len()
	if n == 0 || v.contiguous() {
		lo := v.offset * size
		if n == 0 {
			lo = 0
		}
		return v.storage.data[lo : lo+n*size : lo+n*size]
	}
	out := make([]byte, 0, n*size)
	index := make([]int, len(v.shape))
	for range n {
		at := v.offset
		for i, k := range index {
			at += k * v.stride[i]
		}
		out = append(out, v.storage.data[at*size:(at+1)*size]...)
		advance(index, v.shape)
	}
	return out
}

func (v *view) len() int {
	n := 1
	for _, d := range v.shape {
		n *= d
	}
	return n
}

// contiguous reports whether row-major order is the order in the storage. The stride of an axis of length 1 says nothing.
func (v *view) contiguous() bool {
	want := 1
	for i := len(v.shape) - 1; i >= 0; i-- {
		if v.shape[i] != 1 && v.stride[i] != want {
			return false
		}
		want *= v.shape[i]
	}
	return true
}

// advance steps index through shape in row-major order.
func advance(index, shape []int) {
	for i := len(index) - 1; i >= 0; i-- {
		if index[i]++; index[i] < shape[i] {
			return
		}
		index[i] = 0
	}
}
