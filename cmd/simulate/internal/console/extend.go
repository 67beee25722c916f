package console

import (
	"bufio"
	"bytes"
	"io"
	"os"
)

// Extension is a file of lines that grows. Unlike an [Output] it keeps what was written when the run ends early: that is what
// it is for.
type Extension struct {
	*bufio.Writer
	Earlier io.Reader // the complete lines that were there
	file    *os.File
}

// Extend opens a file to go on writing, or makes it. A last line without an end was cut off, and is taken away.
func (c *Console) Extend(path string) (*Extension, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	size, err := completeLines(f)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Extension{bufio.NewWriterSize(f, 1<<16), io.NewSectionReader(f, 0, size), f}, nil
}

// completeLines is the size of a file up to its last line end.
func completeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 1<<16)
	for end := info.Size(); end > 0; {
		from := max(0, end-int64(len(block)))
		part := block[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Close writes what is left and closes the file.
func (e *Extension) Close() error {
	err := e.Flush()
	if closed := e.file.Close(); err == nil {
		err = closed
	}
	return err
}
