package blob

import (
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Files opens the weights files that a program names, each once.
type Files struct {
	Root  string                  // the folder that @model_path stands for
	Admit func(name string) error // may refuse a file by its path below Root; nil admits all
	open  map[string]*File        // by the name in the program
}

// Bind looks at every constant of the program that lies in a file: the blob must be there and be what the program says. The
// constants can then be read until Close. On error nothing stays open.
func (fs *Files) Bind(p *mil.Program) error {
	for _, fn := range p.Functions {
		for op := range fn.Body.All() {
			for param, v := range op.Values() {
				if err := fs.bind(v); err != nil {
					return errors.Join(located(err, fn, op, param), fs.Close())
				}
			}
		}
	}
	return nil
}

// located adds the place in the program to a fault of a file.
func located(err error, fn *mil.Function, op *mil.Op, param string) error {
	var e *format.Error
	if errors.As(err, &e) {
		at := *e
		at.Field = strings.TrimSuffix(fmt.Sprintf("%s/%s (%s)/%s: %s", fn.Name, op.Name(), op.Type, param, e.Field), ": ")
		return &at
	}
	return err
}

func (fs *Files) bind(v *mil.Value) error {
	switch c := v.Content.(type) {
	case *mil.Blob:
		f, err := fs.file(c.File)
		if err != nil {
			return err
		}
		e, err := f.Check(c.Offset, v.Type)
		if err != nil {
			return err
		}
		c.Source = &part{f, e}
	case mil.Items:
		for _, x := range c {
			if err := fs.bind(x); err != nil {
				return err
			}
		}
	case mil.Pairs:
		for _, x := range c {
			if err := errors.Join(fs.bind(x.Key), fs.bind(x.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// file opens a file by the name a program has for it.
func (fs *Files) file(name string) (*File, error) {
	if f := fs.open[name]; f != nil {
		return f, nil
	}
	inside, ok := strings.CutPrefix(name, modelPath)
	if !ok || !filepath.IsLocal(inside) || path.Clean(inside) != inside || strings.ContainsAny(inside, `\:`) {
		return nil, &format.Error{Path: fs.Root, Got: "weights file " + name, Want: modelPath + " and a path below it", Err: ErrName}
	}
	if fs.Admit != nil {
		if err := fs.Admit(inside); err != nil {
			return nil, err
		}
	}
	f, err := Open(filepath.Join(fs.Root, filepath.FromSlash(inside)))
	if err != nil {
		return nil, err
	}
	if fs.open == nil {
		fs.open = map[string]*File{}
	}
	fs.open[name] = f
	return f, nil
}

// Opened are the files opened so far, by the names that programs have for them.
func (fs *Files) Opened() map[string]*File { return fs.open }

// Close closes all files.
func (fs *Files) Close() error {
	var err error
	for _, f := range fs.open {
		err = errors.Join(err, f.Close())
	}
	fs.open = nil
	return err
}

// part is one blob of an open file.
type part struct {
	file  *File
	entry Entry
}

// Bytes implements mil.Data.
func (p *part) Bytes() ([]byte, error) {
	if p.file.data == nil {
		return nil, fmt.Errorf("%s: the weights file is closed", p.file.Path)
	}
	return p.file.Data(p.entry), nil
}

// WriteTo implements io.WriterTo.
func (p *part) WriteTo(w io.Writer) (int64, error) {
	b, err := p.Bytes()
	if err != nil {
		return 0, err
	}
	n, err := w.Write(b)
	return int64(n), err
}

// Origin says which file and entry a blob of an open program is; ok is false for other blobs.
func Origin(b *mil.Blob) (f *File, e Entry, ok bool) {
	p, ok := b.Source.(*part)
	if !ok {
		return nil, Entry{}, false
	}
	return p.file, p.entry, true
}
