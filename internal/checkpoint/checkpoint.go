package checkpoint

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anelab/gemma4"
	"anelab/internal/checkpoint/mapped"
	"anelab/internal/checkpoint/packed"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/checkpoint/torchpickle"
	"anelab/internal/format"
	"anelab/quant"
)

// configFile is beside the weights in every published form.
const configFile = "config.json"

// Checkpoint is the text model of an open checkpoint. It is a [gemma4.Source].
type Checkpoint struct {
	Config gemma4.Config

	path   string
	store  store
	stored map[string]string // name in the store, by name without prefix
}

// store is a container of tensors under the names it came with.
type store interface {
	Path() string
	Names() []string
	Describe(name string) (quant.Tensor, error) // without bytes
	Tensor(name string) (quant.Tensor, error)
	Close() error
}

// Open opens a directory with config.json and weights, a single weight file with config.json beside it, a packed model (see
// package packed), or "formula:" and a model name or the path of a model description (see package formula). Of a directory it
// takes model.safetensors, else the shards of model.safetensors.index.json, else pytorch_model.bin.
func Open(path string) (*Checkpoint, error) {
	if name, ok := strings.CutPrefix(path, formulaScheme); ok {
		return openFormula(name)
	}
	if packed.Is(path) {
		return openPacked(path)
	}
	return OpenWithConfig(path, filepath.Join(folderOf(path), configFile))
}

// openPacked opens a file that brings its config along.
func openPacked(path string) (*Checkpoint, error) {
	f, err := packed.Open(path)
	if err != nil {
		return nil, err
	}
	return withOwnConfig(path, f)
}

func withOwnConfig(path string, f *packed.File) (*Checkpoint, error) {
	config, err := gemma4.ParseConfig(path, f.Config())
	if err != nil {
		f.Close()
		return nil, err
	}
	return resolve(config, f)
}

// Parse opens the bytes of a packed model, which must stay as they are.
func Parse(path string, data []byte) (*Checkpoint, error) {
	f, err := packed.Parse(path, data)
	if err != nil {
		return nil, err
	}
	return withOwnConfig(path, f)
}

// OpenWithConfig is [Open] for a config elsewhere or under another name.
func OpenWithConfig(path, configPath string) (*Checkpoint, error) {
	config := mapped.Disk(filepath.Dir(configPath))
	if folder := folderOf(path); folder != path {
		return open(config, filepath.Base(configPath), func() (store, error) { return openFile(mapped.Disk(folder), filepath.Base(path)) })
	}
	return open(config, filepath.Base(configPath), func() (store, error) { return openFolder(mapped.Disk(path)) })
}

// OpenFS is [Open] for a directory of fsys, for example one of the embedded [anelab.Files].
func OpenFS(fsys fs.FS, dir string) (*Checkpoint, error) {
	folder := mapped.In(fsys, dir)
	return open(folder, configFile, func() (store, error) { return openFolder(folder) })
}

// folderOf is path itself, or the directory of a file.
func folderOf(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// open reads the config first: it refuses other model families before a weight file is touched.
func open(config mapped.Folder, configName string, weights func() (store, error)) (*Checkpoint, error) {
	f, err := config.Open(configName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := gemma4.ParseConfig(f.Path, f.Data)
	if err != nil {
		return nil, err
	}
	s, err := weights()
	if err != nil {
		return nil, err
	}
	return resolve(c, s)
}

// openFolder opens whichever weights a directory has.
func openFolder(dir mapped.Folder) (store, error) {
	switch {
	case dir.Has(safetensors.ModelFile), dir.Has(safetensors.IndexFile):
		return safetensors.OpenFolder(dir)
	case dir.Has(torchpickle.ModelFile):
		return torchpickle.OpenFolder(dir)
	case dir.Has(torchpickle.IndexFile):
		return nil, &format.Error{Path: dir.Path(torchpickle.IndexFile), Got: "a sharded pickle", Want: "one file, or safetensors",
			Fix: "save the model as safetensors"}
	}
	return nil, &format.Error{Path: dir.Path(""), Got: "no weights",
		Want: strings.Join([]string{safetensors.ModelFile, safetensors.IndexFile, torchpickle.ModelFile}, ", ")}
}

// openFile opens one file of weights by the form its name promises.
func openFile(dir mapped.Folder, name string) (store, error) {
	path := dir.Path(name)
	switch filepath.Ext(name) {
	case ".safetensors":
		return safetensors.Open(path)
	case ".bin", ".pt", ".pth":
		return torchpickle.Open(path)
	case ".gguf":
		return nil, &format.Error{Path: path, Got: "a GGUF file", Want: "safetensors or pytorch_model.bin", Fix: "open the model it was made from"}
	}
	return nil, &format.Error{Path: path, Got: "an unknown kind of file", Want: "a directory, or a .safetensors or .bin file"}
}

// resolve names the tensors of s, checks them against the config, and takes s over.
func resolve(config gemma4.Config, s store) (*Checkpoint, error) {
	c := &Checkpoint{Config: config, path: s.Path(), store: s}
	err := c.name(s.Names())
	if err == nil {
		err = Check(config, c)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	for name := range carriedAlong(config) {
		delete(c.stored, name)
	}
	return c, nil
}

// Path names the checkpoint in errors: a file, or "formula:" and a name.
func (c *Checkpoint) Path() string { return c.path }

// Names lists the tensors of the text model without their prefix, sorted.
func (c *Checkpoint) Names() []string { return slices.Sorted(maps.Keys(c.stored)) }

// Has reports whether the text model has a tensor of that name. Unused keys and values of KV-shared layers do not count.
func (c *Checkpoint) Has(name string) bool {
	_, ok := c.stored[name]
	return ok
}

// Describe returns the named tensor without its bytes.
func (c *Checkpoint) Describe(name string) (quant.Tensor, error) {
	return c.get(name, c.store.Describe)
}

// Tensor returns the named tensor; its bytes are read-only and valid until Close.
func (c *Checkpoint) Tensor(name string) (quant.Tensor, error) { return c.get(name, c.store.Tensor) }

// Matrix returns the named weight ready to multiply with: packed as it is stored, else a view of its dense tensor.
func (c *Checkpoint) Matrix(name string) (quant.Matrix, error) {
	stored, ok := c.stored[name]
	if !ok {
		return nil, &format.Error{Path: c.path, Field: name, Got: "no such tensor"}
	}
	if f, ok := c.store.(*packed.File); ok {
		return f.Matrix(stored)
	}
	t, err := c.Tensor(name)
	if err != nil {
		return nil, err
	}
	m, err := quant.Dense(t)
	if err != nil {
		return nil, &format.Error{Path: c.path, Field: name, Err: err}
	}
	return m, nil
}

func (c *Checkpoint) get(name string, from func(string) (quant.Tensor, error)) (quant.Tensor, error) {
	stored, ok := c.stored[name]
	if !ok {
		return quant.Tensor{}, &format.Error{Path: c.path, Field: name, Got: "no such tensor"}
	}
	t, err := from(stored)
	t.Name = name
	return t, err
}

// Close releases the files; tensors must not be used afterwards.
func (c *Checkpoint) Close() error { return c.store.Close() }
