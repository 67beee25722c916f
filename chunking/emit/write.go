package emit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anelab/coreml/mlpackage"
	"anelab/internal/format"
)

// ErrExists says that there is something at the target which is not to be replaced.
var ErrExists = errors.New("the target is not empty")

// Progress says how far a chunk is.
type Progress struct {
	Chunk        string // name of its file
	Weight       string // the weight in hand
	WrittenBytes int64
}

// Write writes a chunk into a folder and returns the path of the package. Each weight is converted or palettized when its turn
// comes, and let go when it is written. progress may be nil.
func (c *Chunk) Write(ctx context.Context, dir string, progress func(Progress)) (string, error) {
	path := filepath.Join(dir, c.Name+".mlpackage")
	if progress == nil {
		return path, mlpackage.Write(ctx, path, c.Package, nil)
	}
	p := Progress{Chunk: c.Name}
	c.weights.progress = func(name string) {
		p.Weight = name
		progress(p)
	}
	return path, mlpackage.Write(ctx, path, c.Package, func(written int64) {
		p.WrittenBytes = written
		progress(p)
	})
}

// Existing says what becomes of an output that is there already.
type Existing uint8

// An empty folder is always filled. A full one is replaced only if that is asked for and it holds nothing but what an emitter
// writes.
const (
	RefuseExisting Existing = iota
	ReplaceExisting
)

// WriteFolder has fill write a folder beside its target, and gives it the target's name when it is complete: whatever was there
// stays until then, and for good if fill fails.
func WriteFolder(target string, e Existing, fill func(dir string) error) error {
	target = filepath.Clean(target)
	if err := replaceable(target, e); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".tmp-*")
	if err != nil {
		return &format.Error{Path: target, Err: reason(err)}
	}
	if err = os.Chmod(tmp, 0o755); err == nil {
		err = fill(tmp)
	}
	if err == nil {
		err = moveInto(tmp, target)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// reason is a file error without the path, which the message has already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// replaceable refuses targets that something would be lost with.
func replaceable(target string, e Existing) error {
	entries, err := os.ReadDir(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &format.Error{Path: target, Got: reason(err).Error(), Want: "a folder, or a name that is free", Err: ErrExists}
	case len(entries) == 0:
		return nil
	case e == RefuseExisting:
		return &format.Error{Path: target, Got: "a folder that holds " + entries[0].Name(), Want: "an empty folder, or a name that is free", Err: ErrExists,
			Fix: "choose another name, or have the folder replaced"}
	}
	i := slices.IndexFunc(entries, func(f fs.DirEntry) bool { return !ours(f.Name()) })
	if i >= 0 {
		return &format.Error{Path: target, Got: "a folder that holds " + entries[i].Name(), Want: "nothing but chunks and bundle files", Err: ErrExists,
			Fix: "choose another name, or remove what you do not need"}
	}
	return nil
}

// ours reports whether an output has files of that name.
func ours(name string) bool {
	switch filepath.Ext(name) {
	case ".mlpackage":
		return true
	case ".npy":
		return strings.HasPrefix(name, "cos_") || strings.HasPrefix(name, "sin_")
	case ".bin":
		return strings.HasPrefix(name, "embed_tokens") || strings.HasPrefix(name, "per_layer_")
	}
	return name == "model_config.json" || name == "hf_model"
}

// moveInto gives tmp the name of the target. What was there is put back if that fails.
func moveInto(tmp, target string) error {
	old := ""
	if _, err := os.Lstat(target); err == nil {
		if old, err = os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".tmp-old-*"); err != nil {
			return &format.Error{Path: target, Err: reason(err)}
		}
		if err := os.Rename(target, filepath.Join(old, "out")); err != nil {
			return errors.Join(&format.Error{Path: target, Err: err}, os.Remove(old))
		}
	}
	if err := os.Rename(tmp, target); err != nil {
		err = &format.Error{Path: target, Err: err}
		if old != "" {
			err = errors.Join(err, os.Rename(filepath.Join(old, "out"), target), os.Remove(old))
		}
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(old)
}
