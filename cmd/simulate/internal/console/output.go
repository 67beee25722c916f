package console

import (
	"bufio"
	"os"
	"syscall"

	"anelab/internal/atomicfile"
)

// Output is where the results of a run go. Close it with Commit or Discard.
type Output struct {
	*bufio.Writer
	file *atomicfile.File // nil for standard output
}

// Open returns standard output for an empty path or "-". For a file it writes beside it under a temporary name, so that
// nobody reads half of it.
func (c *Console) Open(path string) (*Output, error) {
	if path == "" || path == "-" {
		return &Output{Writer: bufio.NewWriterSize(c.Out, 1<<16)}, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &os.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return nil, err
	}
	return &Output{Writer: bufio.NewWriterSize(f, 1<<16), file: f}, nil
}

// Commit flushes; a file takes its name.
func (o *Output) Commit() error {
	if err := o.Flush(); err != nil {
		o.remove()
		return err
	}
	if o.file == nil {
		return nil
	}
	return o.file.Commit()
}

// Discard flushes what went to standard output, where it is on its way already; a file is removed and its name left as it was.
func (o *Output) Discard() {
	if o.file == nil {
		o.Flush()
		return
	}
	o.remove()
}

func (o *Output) remove() {
	if o.file != nil {
		o.file.Discard()
	}
}
