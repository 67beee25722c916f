package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"anelab/internal/atomicfile"
	"anelab/internal/format"
	"anelab/quant"
)

// Layout of a .npy file: the magic, two version bytes, the length of the header (u16 in version 1, u32 in 2 and 3), the header
// (a Python dictionary, padded), the elements.
const (
	magic       = "\x93NUMPY"
	alignment   = 64 // of the data, as numpy writes it
	headerLimit = 1 << 16
	rankLimit   = 32
)

// dtypes are the element types that are read: little-endian ones, and single bytes, which have no order.
var dtypes = map[string]quant.DType{
	"<f4": quant.F32, "<f2": quant.F16, "<f8": quant.F64, "<i4": quant.I32, "<i8": quant.I64,
	"|i1": quant.I8, "|u1": quant.U8, "|b1": quant.Bool,
}

// Read reads an array that numpy.save wrote.
func Read(path string) (quant.Tensor, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return quant.Tensor{}, &format.Error{Path: path, Err: err}
	}
	return Parse(path, data)
}

// Parse is Read for bytes in memory, which the tensor goes on to use; path is for errors. Arrays in Fortran order, of
// objects or structures, or in big-endian order are refused.
func Parse(path string, file []byte) (quant.Tensor, error) {
	head, data, err := split(path, file)
	if err != nil {
		return quant.Tensor{}, err
	}
	h, err := parseHeader(string(head))
	if err != nil {
		return quant.Tensor{}, &format.Error{Path: path, Field: "header", Err: err}
	}
	dtype, err := h.check(path)
	if err != nil {
		return quant.Tensor{}, err
	}
	shape, size, ok := sizeOf(h.shape, dtype)
	if !ok || size != uint64(len(data)) {
		return quant.Tensor{}, &format.Error{Path: path, Field: "shape", Got: fmt.Sprintf("%v of %s and %d bytes of data", h.shape, h.descr, len(data)),
			Want: "as many bytes as the shape needs", Fix: "the file is cut short, or its header is wrong"}
	}
	return quant.Tensor{Name: filepath.Base(path), DType: dtype, Shape: shape, Data: data}, nil
}

// split cuts a file into header and data.
func split(path string, file []byte) (head, data []byte, err error) {
	fail := func(got, want string) ([]byte, []byte, error) {
		return nil, nil, &format.Error{Path: path, Got: got, Want: want}
	}
	rest, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok || len(rest) < 4 {
		return fail("no .npy file", "the magic \\x93NUMPY, a version and a header length")
	}
	major, minor := rest[0], rest[1]
	var n uint64
	switch {
	case major == 1 && minor == 0:
		n, rest = uint64(binary.LittleEndian.Uint16(rest[2:])), rest[4:]
	case (major == 2 || major == 3) && minor == 0 && len(rest) >= 6:
		n, rest = uint64(binary.LittleEndian.Uint32(rest[2:])), rest[6:]
	default:
		return fail(fmt.Sprintf("version %d.%d", major, minor), "1.0, 2.0 or 3.0, with a header length")
	}
	if n > uint64(len(rest)) || n > headerLimit {
		return fail(fmt.Sprintf("header length %d with %d bytes left", n, len(rest)), fmt.Sprintf("a header inside the file, of at most %d bytes", headerLimit))
	}
	return rest[:n], rest[n:], nil
}

// check refuses what is legal in a file and not wanted here.
func (h header) check(path string) (quant.DType, error) {
	dtype, ok := dtypes[h.descr]
	switch {
	case !ok:
		fix := "save it with .astype('<f4')"
		if h.descr == "|O" {
			fix = "objects would have to be unpickled, which runs code"
		}
		return 0, &format.Error{Path: path, Field: "descr", Got: "'" + h.descr + "'", Want: "<f4, <f2, <f8, <i4, <i8, |i1, |u1 or |b1", Fix: fix}
	case h.fortran:
		return 0, &format.Error{Path: path, Field: "fortran_order", Got: "True", Want: "False", Fix: "save it with numpy.ascontiguousarray"}
	}
	return dtype, nil
}

// sizeOf is the number of bytes of an array; ok is false when it cannot be addressed.
func sizeOf(dims []uint64, dtype quant.DType) (shape []int, size uint64, ok bool) {
	size = uint64(dtype.Size())
	shape = make([]int, len(dims))
	for i, d := range dims {
		hi, lo := bits.Mul64(size, d)
		if hi != 0 || d > math.MaxInt || lo > math.MaxInt {
			return nil, 0, false
		}
		shape[i], size = int(d), lo
	}
	return shape, size, true
}

// Write writes float32 values for numpy.load. The file appears under its name only when it is complete.
func Write(path string, shape []int, values []float32) error {
	content := Encode(shape, values)
	f, err := atomicfile.Create(path)
	if err != nil {
		return &format.Error{Path: path, Err: err}
	}
	if _, err := f.Write(content); err != nil {
		f.Discard()
		return &format.Error{Path: path, Err: err}
	}
	if err := f.Commit(); err != nil {
		return &format.Error{Path: path, Err: err}
	}
	return nil
}

// Encode is the content of a version 1.0 file of float32 values.
func Encode(shape []int, values []float32) []byte {
	if (quant.Tensor{Shape: shape}).Len() != len(values) {
		panic("npy: Encode: the shape does not hold the values")
	}
	b := Header(quant.F32, shape...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Header is what stands before the elements of a version 1.0 file, padded as numpy pads it.
func Header(t quant.DType, shape ...int) []byte {
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d, ", d)
	}
	tuple := strings.TrimSuffix(dims.String(), " ")
	if len(shape) > 1 {
		tuple = strings.TrimSuffix(tuple, ",")
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr(t), tuple)
	const before = len(magic) + 4
	pad := alignment - (before+len(head)+1)%alignment
	head += strings.Repeat(" ", pad%alignment) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(head)))
	return append(b, head...)
}

func descr(t quant.DType) string {
	for name, dtype := range dtypes {
		if dtype == t {
			return name
		}
	}
	panic("npy: Header: numpy has no such type")
}
