package blob

import (
	"encoding/binary"
	"fmt"
	"io"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Memory is data held in memory that is to lie in a weights file.
type Memory []byte

// Bytes implements mil.Data.
func (m Memory) Bytes() ([]byte, error) { return m, nil }

// Writer writes a weights file as data come. Only the header is written twice.
type Writer struct {
	path  string // for messages
	out   io.WriteSeeker
	at    uint64
	count uint32
	err   error
}

// NewWriter starts a weights file; path is for messages.
func NewWriter(path string, out io.WriteSeeker) *Writer {
	w := &Writer{path: path, out: out}
	w.write(make([]byte, headSize))
	return w
}

// Add appends a tensor and returns the offset that a program refers to it by. Data that are an [io.WriterTo] are streamed.
func (w *Writer) Add(t mil.Type, d mil.Data) (offset uint64, err error) {
	n, ok := t.Count()
	size := t.DType.Bytes(n)
	if !ok || size == 0 || !Storable(t.DType) {
		return 0, &format.Error{Path: w.path, Got: "a constant of type " + t.String(), Want: "a tensor of known shape, not empty, of a type that weights files hold", Err: ErrType}
	}
	w.pad()
	offset = w.at
	var meta [headSize]byte
	le := binary.LittleEndian
	le.PutUint32(meta[0:], sentinel)
	le.PutUint32(meta[4:], codes[t.DType])
	le.PutUint64(meta[8:], uint64(size))
	le.PutUint64(meta[16:], offset+headSize)
	if t.DType.SubByte() {
		le.PutUint64(meta[24:], uint64(8*size-n*int64(t.DType.Bits())))
	}
	w.write(meta[:])
	if w.err == nil {
		w.err = w.copy(d)
	}
	if written := w.at - offset - headSize; w.err == nil && written != uint64(size) {
		w.err = &format.Error{Path: w.path, Field: fmt.Sprintf("blob %d", w.count), Got: fmt.Sprintf("%d bytes", written), Want: fmt.Sprintf("%d for %s", size, t), Err: ErrSize}
	}
	w.count++
	return offset, w.err
}

func (w *Writer) copy(d mil.Data) error {
	if stream, ok := d.(io.WriterTo); ok {
		_, err := stream.WriteTo(counted{w})
		return err
	}
	b, err := d.Bytes()
	w.write(b)
	if err == nil {
		err = w.err
	}
	return err
}

// counted writes data and keeps count of them.
type counted struct{ w *Writer }

func (c counted) Write(b []byte) (int, error) {
	c.w.write(b)
	return len(b), c.w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.at += uint64(n)
	w.err = err
}

func (w *Writer) pad() {
	var zero [alignment]byte
	w.write(zero[:roundUp(w.at)-w.at])
}

// Close writes the header. It does not close what the writer writes to.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:], w.count)
	binary.LittleEndian.PutUint32(head[4:], version)
	if _, err := w.out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := w.out.Write(head[:])
	return err
}
