package safetensors

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/quant"
)

// Names of the files of a saved model.
const (
	ModelFile = "model.safetensors"
	IndexFile = "model.safetensors.index.json"
)

// Set is the tensors of one file, or of all shards that an index names.
type Set struct {
	path     string
	tensors  map[string]entry
	metadata map[string]string
	files    []*mapped.File
}

// entry is a tensor whose place and size have been checked.
type entry struct {
	dtype string // as in the file, perhaps one that quant has no type for
	shape []int
	data  []byte
}

// Open opens a .safetensors file, or a directory as [OpenFolder] does.
func Open(path string) (*Set, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return OpenFolder(mapped.Disk(path))
	}
	f, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	return own(f)
}

// OpenFolder opens the model.safetensors of a folder, or the shards of its index when there is no such file.
func OpenFolder(dir mapped.Folder) (*Set, error) {
	if !dir.Has(ModelFile) && dir.Has(IndexFile) {
		return openShards(dir)
	}
	f, err := dir.Open(ModelFile)
	if err != nil {
		return nil, err
	}
	return own(f)
}

// own parses a file and keeps it open as long as the result.
func own(f *mapped.File) (*Set, error) {
	s, err := Parse(f.Path, f.Data)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.files = []*mapped.File{f}
	return s, nil
}

// Parse reads the content of one file; the tensors are parts of data. path is for errors.
func Parse(path string, data []byte) (*Set, error) {
	head, rest, err := split(path, data)
	if err != nil {
		return nil, err
	}
	h, err := parseHeader(path, head)
	if err != nil {
		return nil, err
	}
	if err := checkTiling(path, h.spans, uint64(len(rest))); err != nil {
		return nil, err
	}
	s := &Set{path: path, tensors: make(map[string]entry, len(h.spans)), metadata: h.metadata}
	for _, t := range h.spans {
		s.tensors[t.name] = entry{dtype: t.dtype, shape: t.shape, data: rest[t.begin:t.end:t.end]}
	}
	return s, nil
}

// Path is the file, or the index of a sharded set.
func (s *Set) Path() string { return s.path }

// Names lists the tensors, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.tensors)) }

// Metadata is the free-form string map of the file; of a sharded set, that of its first shard.
func (s *Set) Metadata() map[string]string { return s.metadata }

// Has reports whether the set holds a tensor of that name.
func (s *Set) Has(name string) bool {
	_, ok := s.tensors[name]
	return ok
}

// Describe returns the named tensor without its bytes.
func (s *Set) Describe(name string) (quant.Tensor, error) {
	t, err := s.Tensor(name)
	t.Data = nil
	return t, err
}

// Tensor returns the named tensor; its bytes are read-only and valid until Close.
func (s *Set) Tensor(name string) (quant.Tensor, error) {
	e, ok := s.tensors[name]
	if !ok {
		return quant.Tensor{}, &format.Error{Path: s.path, Field: name, Got: "no such tensor"}
	}
	t := dtypes[e.dtype].quant
	if t == 0 {
		return quant.Tensor{}, &format.Error{Path: s.path, Field: name, Got: "element type " + e.dtype, Want: readable()}
	}
	return quant.Tensor{Name: name, DType: t, Shape: e.shape, Data: e.data}, nil
}

// Close releases the files; tensors must not be used afterwards.
func (s *Set) Close() error {
	var first error
	for _, f := range s.files {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.files = nil
	return first
}

// dtypes are the element types of the format. Those without a quant type can be stored and measured, not read.
var dtypes = map[string]struct {
	bits  uint64
	quant quant.DType
}{
	"F64": {64, quant.F64}, "F32": {32, quant.F32}, "F16": {16, quant.F16}, "BF16": {16, quant.BF16},
	"I64": {64, quant.I64}, "I32": {32, quant.I32}, "I8": {8, quant.I8}, "U8": {8, quant.U8}, "BOOL": {8, quant.Bool},
	"I16": {bits: 16}, "U16": {bits: 16}, "U32": {bits: 32}, "U64": {bits: 64}, "C64": {bits: 64},
	"F8_E4M3": {bits: 8}, "F8_E5M2": {bits: 8}, "F8_E8M0": {bits: 8}, "F6_E2M3": {bits: 6}, "F6_E3M2": {bits: 6}, "F4": {bits: 4},
}

// readable lists the element types Tensor accepts.
func readable() string {
	var names []string
	for name, t := range dtypes {
		if t.quant != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("one of %s", strings.Join(names, ", "))
}
