package atomicfile

import (
	"os"
	"path/filepath"
)

// File is a file on its way to its name. End it with Commit or Discard.
type File struct {
	*os.File
	path string
}

// Create starts a file beside path.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, err
	}
	return &File{f, path}, nil
}

// Commit gives the file its name. On an error nothing is left of it.
func (f *File) Commit() error {
	err := f.finish()
	if err != nil {
		f.Discard()
	}
	return err
}

// finish is the way from the temporary name to the file's own. Temporary files are for their owner only; results are not.
func (f *File) finish() error {
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), f.path)
}

// Discard removes what was written.
func (f *File) Discard() {
	f.Close()
	os.Remove(f.Name())
}
