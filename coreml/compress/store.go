package compress

import (
	"fmt"
	"io"
	"os"

	"anelab/coreml/mil"
)

// Store keeps what has been compressed until it is written.
type Store interface {
	// Put keeps packed bytes. The data can be read as long as the store is open.
	Put(packed []byte) (mil.Data, error)
}

// Memory is a store for small programs.
type Memory struct{}

// Put keeps the bytes themselves.
func (Memory) Put(packed []byte) (mil.Data, error) { return &held{packed}, nil }

// held is data in memory; a pointer, so that those who share it are seen to.
type held struct{ packed []byte }

// Bytes implements mil.Data.
func (h *held) Bytes() ([]byte, error) { return h.packed, nil }

// Spool is a store in a temporary file.
type Spool struct {
	file *os.File
	end  int64
}

// NewSpool makes a file in a folder, best the one that the result goes to.
func NewSpool(folder string) (*Spool, error) {
	f, err := os.CreateTemp(folder, "weights.tmp-*")
	if err != nil {
		return nil, err
	}
	return &Spool{file: f}, nil
}

// Put appends to the file.
func (s *Spool) Put(packed []byte) (mil.Data, error) {
	n, err := s.file.WriteAt(packed, s.end)
	part := &part{s.file, s.end, int64(n)}
	s.end += int64(n)
	return part, err
}

// Close removes the file.
func (s *Spool) Close() error {
	err := s.file.Close()
	if gone := os.Remove(s.file.Name()); err == nil {
		err = gone
	}
	return err
}

// part is a stretch of the file; it is streamed where it is written.
type part struct {
	file        *os.File
	first, size int64
}

// Bytes implements mil.Data.
func (p *part) Bytes() ([]byte, error) {
	packed := make([]byte, p.size)
	if _, err := p.file.ReadAt(packed, p.first); err != nil {
		return nil, fmt.Errorf("reading back what was compressed: %w", err)
	}
	return packed, nil
}

// WriteTo implements io.WriterTo.
func (p *part) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, io.NewSectionReader(p.file, p.first, p.size))
}
