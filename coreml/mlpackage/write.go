package mlpackage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage/spec"
	"anelab/internal/format"
)

// ErrTarget says that what is at the target is no package, and is left alone.
var ErrTarget = errors.New("the target exists and is not an .mlpackage")

// Progress is told how many bytes of weights have been written.
type Progress func(writtenBytes int64)

// Write writes a package beside its target, reads it back, and moves it to name. A package that is there is replaced only once the
// new one is complete; anything else that is there is left alone. progress may be nil.
//
// A weights file that the program still uses as it was read is copied as it is. Otherwise weights are written anew: constants that
// are a [mil.Data] in the order of the program, each once.
func Write(ctx context.Context, name string, p *Package, progress Progress) error {
	if err := p.check(name); err != nil {
		return err
	}
	name = filepath.Clean(name)
	if err := replaceable(name); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(name), filepath.Base(name)+".tmp-*")
	if err != nil {
		return &format.Error{Path: name, Err: err}
	}
	w := &packageWriter{ctx: ctx, p: p, dir: tmp, progress: progress, written: map[string]bool{}}
	if err := w.write(); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := moveInto(tmp, name); err != nil {
		return errors.Join(&format.Error{Path: name, Err: err}, os.RemoveAll(tmp))
	}
	return nil
}

// replaceable refuses targets that are something else than a package.
func replaceable(name string) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, err := os.Stat(filepath.Join(name, manifestName)); err == nil && info.Mode().IsRegular() {
		return nil
	}
	return &format.Error{Path: name, Got: "something that has no " + manifestName, Err: ErrTarget, Fix: "choose another name, or remove it yourself"}
}

// moveInto replaces target by tmp. What was there is put back if that fails.
func moveInto(tmp, target string) error {
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	old := ""
	if _, err := os.Lstat(target); err == nil {
		if old, err = os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".tmp-old-*"); err != nil {
			return err
		}
		if err := os.Rename(target, filepath.Join(old, filepath.Base(target))); err != nil {
			return errors.Join(err, os.Remove(old))
		}
	}
	if err := os.Rename(tmp, target); err != nil {
		if old != "" {
			err = errors.Join(err, os.Rename(filepath.Join(old, filepath.Base(target)), target), os.Remove(old))
		}
		return err
	}
	syncFolder(filepath.Dir(target))
	if old != "" {
		return os.RemoveAll(old)
	}
	return nil
}

// packageWriter fills a folder.
type packageWriter struct {
	ctx      context.Context
	p        *Package
	dir      string
	progress Progress
	sent     int64
	written  map[string]bool // paths below Data/
}

// modelFolder is the folder of the model file below Data/, and its name there.
func (w *packageWriter) model() (folder, file string) {
	if w.p.Manifest == nil {
		return modelAuthor, modelName
	}
	root, _ := w.p.Manifest.item(w.p.Manifest.Root)
	return path.Dir(root.Path), path.Base(root.Path)
}

func (w *packageWriter) write() error {
	folder, file := w.model()
	places := spec.Places{}
	if err := w.weights(folder, places); err != nil {
		return err
	}
	m := w.p.model
	if m == nil {
		m = &spec.Model{}
	}
	model := spec.Encode(&spec.Model{Program: w.p.Program, Description: w.p.Description, Updatable: m.Updatable, Kept: m.Kept}, places)
	if err := w.file(path.Join(folder, file), bytes.NewReader(model)); err != nil {
		return err
	}
	if err := w.otherItems(); err != nil {
		return err
	}
	manifest := w.manifest(folder, file, model)
	if err := w.put(manifestName, bytes.NewReader(manifest.encode())); err != nil {
		return err
	}
	w.sync()
	return w.readBack()
}

// readBack opens what was written.
func (w *packageWriter) readBack() error {
	p, err := Open(w.dir)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	return p.Close()
}

// weights writes all weights files.
func (w *packageWriter) weights(folder string, places spec.Places) error {
	files := gather(w.p.Program)
	for _, name := range files.names {
		inside := path.Join(folder, strings.TrimPrefix(name, "@model_path/"))
		if !contained(inside) || !strings.HasPrefix(name, "@model_path/") {
			return &format.Error{Path: w.dir, Got: "weights file " + name, Want: "a path below @model_path/", Err: blob.ErrName}
		}
		if f := original(name, files.members[name]); f != nil {
			if f.Raw() == nil {
				return &format.Error{Path: f.Path, Got: "closed weights", Fix: "write before the package is closed"}
			}
			if err := w.file(inside, bytes.NewReader(f.Raw())); err != nil {
				return err
			}
			continue
		}
		if err := w.newWeights(inside, name, files.members[name], places); err != nil {
			return err
		}
	}
	return nil
}

func (w *packageWriter) newWeights(inside, name string, values []*mil.Value, places spec.Places) error {
	out, err := w.create(path.Join(dataFolder, inside))
	if err != nil {
		return err
	}
	defer out.Close()
	w.written[inside] = true
	b := blob.NewWriter(out.Name(), &watched{out, w})
	if err := place(b, name, values, places); err != nil {
		return err
	}
	return errors.Join(b.Close(), out.Sync())
}

// watched is a file that stops when the context ends and reports progress.
type watched struct {
	file *os.File
	w    *packageWriter
}

// Seek moves in the file.
func (f *watched) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// piece is how much is written between looks at the context.
const piece = 4 << 20

// Write writes b piece by piece.
func (f *watched) Write(b []byte) (n int, err error) {
	for err == nil && len(b) > 0 {
		if err = f.w.ctx.Err(); err != nil {
			break
		}
		var k int
		k, err = f.file.Write(b[:min(piece, len(b))])
		n += k
		b = b[k:]
		f.w.sent += int64(k)
		if f.w.progress != nil {
			f.w.progress(f.w.sent)
		}
	}
	return n, err
}

// file writes a file below Data/.
func (w *packageWriter) file(inside string, from io.Reader) error {
	w.written[inside] = true
	return w.put(path.Join(dataFolder, inside), from)
}

func (w *packageWriter) put(name string, from io.Reader) error {
	out, err := w.create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(&watched{out, w}, from); err != nil {
		return err
	}
	return out.Sync()
}

func (w *packageWriter) create(name string) (*os.File, error) {
	target := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
}

// otherItems copies what else a package that was read holds.
func (w *packageWriter) otherItems() error {
	if w.p.Manifest == nil {
		return nil
	}
	root, err := os.OpenRoot(filepath.Join(w.p.Path, dataFolder))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, it := range w.p.Manifest.Items {
		err := fs.WalkDir(root.FS(), it.Path, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || w.written[name]:
				return err
			case d.IsDir():
				return os.MkdirAll(filepath.Join(w.dir, dataFolder, filepath.FromSlash(name)), 0o755)
			case !d.Type().IsRegular():
				return nil
			}
			return w.copy(root, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *packageWriter) copy(root *os.Root, name string) error {
	from, err := root.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	return w.file(name, from)
}

// manifest is that of the package as read, or a new one. Identifiers are made from the contents, so that equal packages are equal
// in every byte.
func (w *packageWriter) manifest(folder, file string, model []byte) *Manifest {
	m := &Manifest{Version: formatVersion}
	if w.p.Manifest != nil {
		*m = *w.p.Manifest
		m.Items = append([]Item{}, m.Items...)
	} else {
		m.Root = identifier(modelName, model)
		m.Items = []Item{{Identifier: m.Root, Path: path.Join(folder, file), Author: folder, Name: file, Description: "CoreML Model Specification"}}
	}
	for _, inside := range slices.Sorted(maps.Keys(w.written)) {
		if m.covers(inside) {
			continue
		}
		top, _, _ := strings.Cut(strings.TrimPrefix(inside, folder+"/"), "/")
		m.Items = append(m.Items, Item{Identifier: identifier(top, model), Path: folder + "/" + top, Author: folder, Name: top, Description: "CoreML Model Weights"})
	}
	return m
}

// identifier is a UUID made from a name and the model.
func identifier(name string, model []byte) string {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write(model)
	b := h.Sum(nil)
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8, of the maker's own design
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// encode writes the manifest as converters do: keys sorted, four spaces, a final newline.
func (m *Manifest) encode() []byte {
	items := map[string]any{}
	for _, it := range m.Items {
		items[it.Identifier] = map[string]string{"author": it.Author, "description": it.Description, "name": it.Name, "path": it.Path}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	// Maps of strings cannot fail to encode.
	_ = e.Encode(map[string]any{"fileFormatVersion": m.Version, "itemInfoEntries": items, "rootModelIdentifier": m.Root})
	return b.Bytes()
}

// sync makes the folders durable.
func (w *packageWriter) sync() {
	_ = filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			syncFolder(name)
		}
		return err
	})
}

// syncFolder asks for the entries of a folder to be made durable; systems that cannot are not asked twice.
func syncFolder(name string) {
	if f, err := os.Open(name); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}
