package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"anelab/coreml/mil"
	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
)

// What can be wrong with a weights file, or with a reference into one.
var (
	ErrTruncated = errors.New("the file ends too early")
	ErrVersion   = errors.New("blob storage version not supported")
	ErrSentinel  = errors.New("no blob begins here")
	ErrType      = errors.New("element types differ")
	ErrSize      = errors.New("size does not fit the type")
	ErrOffset    = errors.New("offset is not that of a blob")
	ErrOverlap   = errors.New("blobs overlap or are not aligned")
	ErrTrailing  = errors.New("bytes that belong to no blob")
	ErrName      = errors.New("file name not allowed")
)

// As above, where a program disagrees with the file.
var (
	errMismatch = fmt.Errorf("%w", ErrType)
	errMisfit   = fmt.Errorf("%w", ErrSize)
)

const (
	alignment  = 64
	headSize   = 64 // of the file, and of a blob
	version    = 2
	sentinel   = 0xDEADBEEF
	modelPath  = "@model_path/"
	restoreFix = "the file is damaged or incomplete: copy or download it again"
)

// codes are the numbers of element types in metadata.
var codes = map[mil.DType]uint32{
	mil.Float16: 1, mil.Float32: 2, mil.UInt8: 3, mil.Int8: 4, mil.BFloat16: 5, mil.Int16: 6, mil.UInt16: 7, mil.Int4: 8, mil.UInt1: 9,
	mil.UInt2: 10, mil.UInt4: 11, mil.UInt3: 12, mil.UInt6: 13, mil.Int32: 14, mil.UInt32: 15, mil.F8E4M3FN: 16, mil.F8E5M2: 17,
}

var types = func() map[uint32]mil.DType {
	m := map[uint32]mil.DType{}
	for d, code := range codes {
		m[code] = d
	}
	return m
}()

// Storable reports whether a weights file can hold elements of this type.
func Storable(d mil.DType) bool { return codes[d] != 0 }

// Entry is one blob of a file.
type Entry struct {
	Offset      uint64 // of the metadata; what programs refer to
	DataOffset  uint64
	SizeBytes   uint64
	PaddingBits uint64 // after the last element
	DType       mil.DType
}

// Count is the number of elements.
func (e Entry) Count() int64 {
	return int64((8*e.SizeBytes - e.PaddingBits) / uint64(e.DType.Bits()))
}

// File is an open weights file.
type File struct {
	Path    string
	Entries []Entry // by offset
	data    []byte
	close   func() error
}

// Open maps a weights file and looks at the metadata of every blob; data are not touched.
func Open(path string) (*File, error) {
	m, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(path, m.Data)
	if err != nil {
		m.Close()
		return nil, err
	}
	f.close = m.Close
	return f, nil
}

// Close releases the bytes.
func (f *File) Close() error {
	done := f.close
	f.data, f.close = nil, nil
	if done == nil {
		return nil
	}
	return done()
}

// Parse reads the metadata of a weights file in memory; path is for messages.
func Parse(path string, data []byte) (*File, error) {
	f := &File{Path: path, data: data}
	if len(data) < headSize {
		return nil, f.fault(ErrTruncated, "header", fmt.Sprintf("%d bytes", len(data)), "64 or more")
	}
	count, v := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	if v != version {
		return nil, f.fault(ErrVersion, "header", fmt.Sprintf("version %d", v), "2")
	}
	if most := (len(data) - headSize + alignment - 1) / (2 * alignment); int64(count) > int64(most)+1 {
		return nil, f.fault(ErrTruncated, "header", fmt.Sprintf("a count of %d blobs in %d bytes", count, len(data)), "a count that the file has room for")
	}
	f.Entries = make([]Entry, 0, count)
	at := uint64(headSize)
	for i := range count {
		e, err := f.entry(int(i), at)
		if err != nil {
			return nil, err
		}
		f.Entries = append(f.Entries, e)
		at = roundUp(e.DataOffset + e.SizeBytes)
	}
	if at+headSize <= uint64(len(data)) {
		return nil, f.fault(ErrTrailing, "header", fmt.Sprintf("%d bytes after blob %d of %d", uint64(len(data))-at, count, count), "none")
	}
	return f, nil
}

// entry reads the metadata of blob i.
func (f *File) entry(i int, at uint64) (Entry, error) {
	where, size := fmt.Sprintf("blob %d at offset %d", i, at), uint64(len(f.data))
	if at+headSize > size {
		return Entry{}, f.fault(ErrTruncated, where, fmt.Sprintf("the end of the file at %d", size), "64 bytes of metadata")
	}
	le, meta := binary.LittleEndian, f.data[at:at+headSize]
	e := Entry{Offset: at, SizeBytes: le.Uint64(meta[8:]), DataOffset: le.Uint64(meta[16:]), PaddingBits: le.Uint64(meta[24:])}
	if s := le.Uint32(meta); s != sentinel {
		return e, f.fault(ErrSentinel, where, fmt.Sprintf("sentinel %#x", s), fmt.Sprintf("%#x", uint32(sentinel)))
	}
	var ok bool
	if e.DType, ok = types[le.Uint32(meta[4:])]; !ok {
		return e, f.fault(ErrType, where, fmt.Sprintf("element type %d", le.Uint32(meta[4:])), "1 to 17")
	}
	switch {
	case e.DataOffset%alignment != 0 || e.DataOffset < at+headSize:
		return e, f.fault(ErrOverlap, where, fmt.Sprintf("data at %d", e.DataOffset), fmt.Sprintf("a multiple of 64 from %d on", at+headSize))
	case e.SizeBytes == 0:
		return e, f.fault(ErrSize, where, "no data", "a byte or more")
	case e.DataOffset > size || e.SizeBytes > size-e.DataOffset:
		return e, f.fault(ErrTruncated, where, fmt.Sprintf("%d bytes of data at %d in a file of %d", e.SizeBytes, e.DataOffset, size), "data inside the file")
	case e.SizeBytes > math.MaxInt64/8, e.PaddingBits >= 8 && e.DType.SubByte(), e.PaddingBits >= 8*e.SizeBytes:
		return e, f.fault(ErrSize, where, fmt.Sprintf("%d padding bits", e.PaddingBits), "0 to 7")
	}
	return e, nil
}

func roundUp(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

func (f *File) fault(cause error, field, got, want string) error {
	fix := restoreFix
	switch cause {
	case ErrVersion:
		fix = "save the model again with a current converter"
	case ErrOffset, errMismatch, errMisfit:
		fix = "program and weights file do not belong together: copy both from one package"
	}
	return &format.Error{Path: f.Path, Field: field, Got: got, Want: want, Fix: fix, Err: cause}
}

// At finds the blob whose metadata is at an offset.
func (f *File) At(offset uint64) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(f.Entries, offset, func(e Entry, o uint64) int {
		switch {
		case e.Offset < o:
			return -1
		case e.Offset > o:
			return 1
		}
		return 0
	})
	if !ok {
		return Entry{}, false
	}
	return f.Entries[i], true
}

// Data are the bytes of a blob: part of the mapping.
func (f *File) Data(e Entry) []byte {
	if f.data == nil {
		panic(panicClosed)
	}
	return f.data[e.DataOffset : e.DataOffset+e.SizeBytes : e.DataOffset+e.SizeBytes]
}

const panicClosed = "blob: the weights file is closed"

// Raw is the whole file.
func (f *File) Raw() []byte { return f.data }

// Check wants that the blob at an offset holds a tensor of type t.
func (f *File) Check(offset uint64, t mil.Type) (Entry, error) {
	where := fmt.Sprintf("offset %d", offset)
	e, ok := f.At(offset)
	switch n, known := t.Count(); {
	case !ok && offset > uint64(len(f.data)):
		return e, f.fault(ErrOffset, where, fmt.Sprintf("an offset beyond the end of the file, %d bytes", len(f.data)), f.nearest(offset))
	case !ok:
		return e, f.fault(ErrOffset, where, "no metadata there", f.nearest(offset))
	case e.DType != t.DType:
		return e, f.fault(errMismatch, where, "a blob of "+e.DType.String(), t.DType.String()+", as the program says")
	case !known || uint64(t.DType.Bytes(n)) != e.SizeBytes:
		return e, f.fault(errMisfit, where, fmt.Sprintf("%d bytes", e.SizeBytes), fmt.Sprintf("%d for %s", t.DType.Bytes(n), t))
	case t.DType.SubByte() && 8*e.SizeBytes-e.PaddingBits != uint64(n)*uint64(t.DType.Bits()):
		return e, f.fault(errMisfit, where, fmt.Sprintf("%d padding bits", e.PaddingBits), fmt.Sprintf("%d for %s", 8*e.SizeBytes-uint64(n)*uint64(t.DType.Bits()), t))
	}
	return e, nil
}

// nearest names the last blob that begins before an offset.
func (f *File) nearest(offset uint64) string {
	want := "the offset of a blob's metadata"
	for _, e := range slices.Backward(f.Entries) {
		if e.Offset <= offset {
			return fmt.Sprintf("%s, such as %d", want, e.Offset)
		}
	}
	return want
}
