package mlpackage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// What can be wrong with a package besides its model and weights.
var (
	ErrNotPackage = errors.New("not an .mlpackage")
	ErrManifest   = errors.New("the manifest is not valid")
	ErrEscape     = errors.New("a path that leaves the package")
	ErrItem       = errors.New("an item of the manifest is missing")
	ErrUnlisted   = errors.New("not an item of the manifest")
)

const (
	manifestName  = "Manifest.json"
	dataFolder    = "Data"
	mostManifest  = 32 << 10 // bytes; real ones have fewer than a thousand
	modelAuthor   = "com.apple.CoreML"
	modelName     = "model.mlmodel"
	weightsName   = "weights"
	weightFile    = "weights/weight.bin"
	weightsItem   = modelAuthor + "/" + weightsName
	formatVersion = "1.0.0"
)

// Manifest lists what a package holds.
type Manifest struct {
	Version string // of the package format
	Root    string // identifier of the model
	Items   []Item // by identifier
}

// Item is a file or folder of a package.
type Item struct {
	Identifier  string
	Path        string // below Data/, with slashes
	Author      string
	Name        string
	Description string
}

// item finds an item by its identifier.
func (m *Manifest) item(identifier string) (Item, bool) {
	for _, it := range m.Items {
		if it.Identifier == identifier {
			return it, true
		}
	}
	return Item{}, false
}

// covers reports whether a path below Data/ is an item, or lies in one.
func (m *Manifest) covers(name string) bool {
	return slices.ContainsFunc(m.Items, func(it Item) bool { return name == it.Path || strings.HasPrefix(name, it.Path+"/") })
}

// manifestFile is the manifest as JSON.
type manifestFile struct {
	Version string                    `json:"fileFormatVersion"`
	Items   map[string]map[string]any `json:"itemInfoEntries"`
	Root    string                    `json:"rootModelIdentifier"`
}

// ParseManifest reads the text of a manifest; name is for messages. Whether the items exist is not looked at.
func ParseManifest(name string, text []byte) (*Manifest, error) {
	fault := func(field, got, want string, cause error) error {
		return &format.Error{Path: name, Field: field, Got: got, Want: want, Err: cause}
	}
	if len(text) > mostManifest {
		return nil, fault("", fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d", mostManifest), ErrManifest)
	}
	var file manifestFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fault("", "", "", fmt.Errorf("%w: %w", ErrManifest, err))
	}
	if !supported(file.Version) {
		return nil, fault("fileFormatVersion", strconv.Quote(file.Version), "three numbers, not above "+formatVersion, ErrManifest)
	}
	if len(file.Items) == 0 {
		return nil, fault("itemInfoEntries", "no items", "the model at least", ErrManifest)
	}
	m := &Manifest{Version: file.Version, Root: file.Root}
	for identifier, entries := range file.Items {
		it, err := item(name, identifier, entries)
		if err != nil {
			return nil, err
		}
		m.Items = append(m.Items, it)
	}
	slices.SortFunc(m.Items, func(a, b Item) int { return strings.Compare(a.Identifier, b.Identifier) })
	seen := map[string]string{}
	for _, it := range m.Items {
		if other, twice := seen[it.Path]; twice {
			return nil, fault("item "+it.Identifier, "path "+it.Path+", as item "+other, "a path of its own", ErrManifest)
		}
		seen[it.Path] = it.Identifier
	}
	if _, ok := m.item(m.Root); !ok {
		return nil, fault("rootModelIdentifier", strconv.Quote(m.Root), "the identifier of an item", ErrManifest)
	}
	return m, nil
}

// supported reports whether a version is major.minor.patch and not above 1.0.0.
func supported(version string) bool {
	parts := strings.Split(version, ".")
	var n [3]uint64
	if len(parts) != len(n) {
		return false
	}
	for i, p := range parts {
		var err error
		if n[i], err = strconv.ParseUint(p, 10, 32); err != nil {
			return false
		}
	}
	return n[0] == 0 || n == [3]uint64{1, 0, 0}
}

// item checks one entry: all four keys, and a path below Data/ that is author/name.
func item(manifest, identifier string, entries map[string]any) (Item, error) {
	it := Item{Identifier: identifier}
	field := "item " + identifier
	for key, to := range map[string]*string{"path": &it.Path, "author": &it.Author, "name": &it.Name, "description": &it.Description} {
		s, ok := entries[key].(string)
		if !ok {
			return it, &format.Error{Path: manifest, Field: field, Got: "no " + key, Want: "path, author, name and description", Err: ErrManifest}
		}
		*to = s
	}
	if !contained(it.Path) {
		return it, &format.Error{Path: manifest, Field: field, Got: "path " + strconv.Quote(it.Path), Want: "a relative path below Data/", Err: ErrEscape}
	}
	if it.Path != it.Author+"/"+it.Name {
		return it, &format.Error{Path: manifest, Field: field, Got: "path " + strconv.Quote(it.Path), Want: strconv.Quote(it.Author + "/" + it.Name), Err: ErrManifest}
	}
	return it, nil
}

// contained reports whether a path is relative, clean and stays below where it starts, on every system.
func contained(name string) bool {
	return name != "" && name != "." && path.Clean(name) == name && !path.IsAbs(name) && !strings.HasPrefix(name, "../") && name != ".." &&
		!strings.ContainsAny(name, "\\:\x00") && filepath.IsLocal(filepath.FromSlash(name))
}

// readManifest reads the manifest of a package and looks for its items. Links that leave the package are refused.
func readManifest(pkg string) (*Manifest, error) {
	name := filepath.Join(pkg, manifestName)
	info, err := os.Stat(name)
	if err != nil {
		return nil, notPackage(pkg, err)
	}
	if info.Size() > mostManifest || !info.Mode().IsRegular() {
		return nil, &format.Error{Path: name, Got: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprintf("a file of at most %d", mostManifest), Err: ErrManifest}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, &format.Error{Path: name, Err: err}
	}
	m, err := ParseManifest(name, text)
	if err != nil {
		return nil, err
	}
	for _, it := range m.Items {
		if _, err := statInside(pkg, it.Path); err != nil && !(it.Path == weightsItem && errors.Is(err, fs.ErrNotExist)) {
			return nil, missingItem(name, "item "+it.Identifier, it.Path, err)
		}
	}
	return m, nil
}

// missingItem is the fault of a package that lacks a part. An absent weights folder is a fault only once the program refers to it:
// converters list one even if it is empty, and empty folders get lost in archives.
func missingItem(file, field, item string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &format.Error{Path: file, Field: field, Got: "no Data/" + item, Err: fmt.Errorf("%w: %w", ErrItem, err),
		Fix: "the package is incomplete: copy it with all its folders"}
}

// statInside looks at a path below Data/ without following links out of it.
func statInside(pkg, name string) (fs.FileInfo, error) {
	root, err := os.OpenRoot(filepath.Join(pkg, dataFolder))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(filepath.FromSlash(name))
}

// notPackage says what a folder without a manifest is instead, if that can be told.
func notPackage(pkg string, cause error) error {
	e := &format.Error{Path: pkg, Got: "no " + manifestName, Err: fmt.Errorf("%w: %w", ErrNotPackage, cause), Fix: "give the folder that ends in .mlpackage"}
	for _, sign := range []string{"model.mil", "coremldata.bin"} {
		if _, err := os.Stat(filepath.Join(pkg, sign)); err == nil {
			e.Got, e.Fix = "a compiled model, with "+sign, "open it as .mlmodelc"
		}
	}
	if info, err := os.Stat(pkg); err == nil && !info.IsDir() {
		e.Got, e.Fix = "a file", "a package is a folder; single .mlmodel files are not read"
	}
	return e
}
