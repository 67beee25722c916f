package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
)

// Bundle is an open folder.
type Bundle struct {
	Path   string
	Config *Config
	Tables *Tables
	Layout string   // name of the set of chunks
	Chunks []*Chunk // in order; the last one gives tokens
}

// Options say how a bundle is opened.
type Options struct {
	Precision interp.Precision // of the programs' ops
	Threads   int              // 0 means all cores
	Layout    string           // of [Layouts]; empty takes the first
}

// Open opens a folder and checks that its parts belong together. Weights and tables are read while the bundle is open.
func Open(dir string, o Options) (*Bundle, error) {
	b := &Bundle{Path: dir}
	if err := b.open(o); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bundle) open(o Options) error {
	config := filepath.Join(b.Path, ConfigName)
	text, err := os.ReadFile(config)
	if err != nil {
		return &format.Error{Path: config, Err: err, Fix: "a bundle has a " + ConfigName + " beside its chunks"}
	}
	if b.Config, err = parseConfig(config, text); err != nil {
		return err
	}
	if b.Tables, err = openTables(mapped.Disk(b.Path), b.Config); err != nil {
		return err
	}
	return b.openChunks(o)
}

// openChunks opens the chunks of one layout, up to the one that gives a token: a 3-file layout may lie beside the last file of a
// 4-file one.
func (b *Bundle) openChunks(o Options) error {
	l, err := choose(b.Path, o.Layout)
	if err != nil {
		return err
	}
	b.Layout = l.name
	for _, name := range l.chunks {
		c, err := OpenChunk(chunkPath(b.Path, name), interp.Options{Precision: o.Precision, Threads: o.Threads})
		if err != nil {
			return err
		}
		b.Chunks = append(b.Chunks, c)
		if err := b.belongs(c); err != nil {
			return err
		}
		if c.gives("token_id") {
			return nil
		}
	}
	return &format.Error{Path: b.Path, Field: "layout " + l.name, Got: "no chunk that gives token_id", Want: "the last one to give it"}
}

// belongs refuses a chunk whose masks, caches or rows are not those of the tables: attention would look at rows that were never
// written, or miss rows that were.
func (b *Bundle) belongs(c *Chunk) error {
	if err := coreml.CheckContexts(int64(b.Config.ContextLength), ConfigName, c.Files); err != nil {
		return err
	}
	return c.checkWidths(b.Config)
}

// PrefillPaths are those of the chunks of a batched prefill, if the folder has all of a set: files that apps load beside those of a
// layout (spec forward.md §4.9).
func (b *Bundle) PrefillPaths() (paths []string) {
	for i := 1; ; i++ {
		path := chunkPath(b.Path, fmt.Sprintf("prefill_chunk%d", i))
		if path == "" {
			return paths
		}
		paths = append(paths, path)
	}
}

// NewChain starts a sequence with the bundle's own tables.
func (b *Bundle) NewChain() (*Chain, error) {
	return NewChain(b.Tables, b.Config.ContextLength, b.Chunks...)
}

// Tokenizer is the path of the tokenizer that came with the bundle, "" if none did.
func (b *Bundle) Tokenizer() string {
	for _, dir := range []string{"hf_model", "."} {
		path := filepath.Join(b.Path, dir, "tokenizer.json")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// Close releases all files.
func (b *Bundle) Close() error {
	var errs []error
	for _, c := range b.Chunks {
		errs = append(errs, c.Close())
	}
	if b.Tables != nil {
		b.Tables.close()
	}
	return errors.Join(errs...)
}
