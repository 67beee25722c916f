package torchpickle

import (
	"maps"
	"slices"

	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/quant"
)

// ModelFile is the name of the file in a saved model, IndexFile that of the list of its shards, which are not supported.
const (
	ModelFile = "pytorch_model.bin"
	IndexFile = "pytorch_model.bin.index.json"
)

// File is the state dict of one file.
type File struct {
	path    string
	tensors map[string]*view
	file    *mapped.File
}

// Open opens the named file.
func Open(path string) (*File, error) {
	f, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	return own(f)
}

// OpenFolder opens pytorch_model.bin of a folder.
func OpenFolder(dir mapped.Folder) (*File, error) {
	f, err := dir.Open(ModelFile)
	if err != nil {
		return nil, err
	}
	return own(f)
}

// own parses a file and keeps it open as long as the result.
func own(f *mapped.File) (*File, error) {
	p, err := Parse(f.Path, f.Data)
	if err != nil {
		f.Close()
		return nil, err
	}
	p.file = f
	return p, nil
}

// Parse reads the content of one file; the tensors are parts of data. path is for errors.
func Parse(path string, data []byte) (*File, error) {
	if err := checkForm(path, data); err != nil {
		return nil, err
	}
	a, err := openArchive(path, data)
	if err != nil {
		return nil, err
	}
	if err := scan(a.pickle); err != nil {
		return nil, &format.Error{Path: path, Field: pickleRecord, Err: err}
	}
	tensors, err := stateDict(a)
	if err != nil {
		return nil, &format.Error{Path: path, Field: pickleRecord, Err: err}
	}
	return &File{path: path, tensors: tensors}, nil
}

// Path is the file.
func (f *File) Path() string { return f.path }

// Names lists the tensors, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Has reports whether the file holds a tensor of that name.
func (f *File) Has(name string) bool {
	_, ok := f.tensors[name]
	return ok
}

// Describe returns the named tensor without its bytes.
func (f *File) Describe(name string) (quant.Tensor, error) {
	v, ok := f.tensors[name]
	if !ok {
		return quant.Tensor{}, &format.Error{Path: f.path, Field: name, Got: "no such tensor"}
	}
	return quant.Tensor{Name: name, DType: v.storage.dtype, Shape: v.shape}, nil
}

// Tensor returns the named tensor. Its bytes are read-only and valid until Close; a transposed or otherwise strided tensor
// is copied into row-major order at every call.
func (f *File) Tensor(name string) (quant.Tensor, error) {
	t, err := f.Describe(name)
	if err == nil {
		t.Data = f.tensors[name].bytes()
	}
	return t, err
}

// Close releases the file; tensors must not be used afterwards.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
