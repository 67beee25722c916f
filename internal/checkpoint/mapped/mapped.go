package mapped

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"anelab/internal/format"
)

// File is the content of one file; Data is read-only and valid until Close.
type File struct {
	Path  string
	Data  []byte
	close func() error
}

// Open maps the named file.
func Open(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &format.Error{Path: name, Err: cause(err)}
	}
	defer f.Close() // a mapping outlives the descriptor it was made from
	info, err := f.Stat()
	if err != nil {
		return nil, &format.Error{Path: name, Err: cause(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, &format.Error{Path: name, Got: "not a regular file"}
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, &format.Error{Path: name, Got: "file larger than the address space"}
	}
	data, done, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, &format.Error{Path: name, Err: err}
	}
	return &File{Path: name, Data: data, close: done}, nil
}

// Close releases the bytes.
func (f *File) Close() error {
	done := f.close
	f.Data, f.close = nil, nil
	if done == nil {
		return nil
	}
	return done()
}

// Folder is a directory of the disk or of an [fs.FS].
type Folder struct {
	root string
	fsys fs.FS // nil for the disk
}

// Disk is the directory root of the disk.
func Disk(root string) Folder { return Folder{root: root} }

// In is the directory root of fsys.
func In(fsys fs.FS, root string) Folder { return Folder{root: root, fsys: fsys} }

// Path is the path of a file of the folder.
func (d Folder) Path(name string) string {
	if d.fsys != nil {
		return path.Join(d.root, name)
	}
	return filepath.Join(d.root, name)
}

// Has reports whether the folder holds name.
func (d Folder) Has(name string) bool {
	if d.fsys != nil {
		_, err := fs.Stat(d.fsys, d.Path(name))
		return err == nil
	}
	_, err := os.Stat(d.Path(name))
	return err == nil
}

// Open opens one file of the folder.
func (d Folder) Open(name string) (*File, error) {
	if d.fsys == nil {
		return Open(d.Path(name))
	}
	data, err := fs.ReadFile(d.fsys, d.Path(name))
	if err != nil {
		return nil, &format.Error{Path: d.Path(name), Err: cause(err)}
	}
	return &File{Path: d.Path(name), Data: data}, nil
}

// cause strips the path of an operating system error; format.Error has it already.
func cause(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}
