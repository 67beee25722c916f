package miltext

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage/spec"
	"anelab/internal/format"
)

// ErrNotCompiled says that a folder is no compiled ML program.
var ErrNotCompiled = errors.New("not a compiled ML program")

const (
	textName       = "model.mil"
	dataName       = "coremldata.bin"
	metadataName   = "metadata.json"
	descriptionAt  = 0x4B // of coremldata.bin: u64 size, then a ModelDescription; the same in every file seen
	mostSmallBytes = 16 << 20
)

// Compiled is an .mlmodelc folder.
type Compiled struct {
	Path        string
	Dialect     Dialect
	Program     *mil.Program
	Description *mil.Description // nil if coremldata.bin is absent or of another layout
	files       *blob.Files
}

// Open reads a compiled model and checks it as a package is checked. Constants in weights files can be read until Close.
func Open(name string) (*Compiled, error) {
	file := filepath.Join(name, textName)
	text, err := readAll(file, 1<<40)
	if err != nil {
		return nil, notCompiled(name, err)
	}
	p, dialect, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	c := &Compiled{Path: name, Program: p, Dialect: dialect}
	if err := c.sideFiles(); err != nil {
		return nil, err
	}
	if err := c.check(file); err != nil {
		return nil, err
	}
	c.files = &blob.Files{Root: name}
	if err := c.files.Bind(p); err != nil {
		return nil, err
	}
	return c, nil
}

// Close releases the weights.
func (c *Compiled) Close() error { return c.files.Close() }

// check looks at the program and at what the description says of it.
func (c *Compiled) check(file string) error {
	err := mil.Check(c.Program)
	if err == nil && c.Description != nil {
		err = mil.CheckDescription(c.Program, c.Description)
	}
	var f *mil.Fault
	if errors.As(err, &f) {
		return &format.Error{Path: file, Field: f.Where(), Got: f.Got, Want: f.Want, Fix: f.Fix, Err: f.Rule}
	}
	return err
}

// sideFiles reads what the text does not say: the description, and the specification version.
func (c *Compiled) sideFiles() error {
	if err := c.readDescription(); err != nil {
		return err
	}
	if err := c.readMetadata(); err != nil {
		return err
	}
	if c.Description != nil {
		mil.Describe(c.Program, c.Description)
	}
	for _, f := range c.Program.Functions {
		for name, shapes := range flexibleShapes(f) {
			if in := f.Input(name); in != nil {
				in.Flexible = shapes
			}
		}
	}
	return nil
}

func (c *Compiled) readDescription() error {
	file := filepath.Join(c.Path, dataName)
	data, err := readAll(file, mostSmallBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(data) < descriptionAt+8 {
		return &format.Error{Path: file, Got: fmt.Sprintf("%d bytes", len(data)), Want: fmt.Sprintf("more than %d", descriptionAt+8), Err: ErrNotCompiled}
	}
	n := binary.LittleEndian.Uint64([]byte(data[descriptionAt : descriptionAt+8]))
	rest := data[descriptionAt+8:]
	if n > uint64(len(rest)) {
		return nil // another layout
	}
	c.Description, err = spec.DecodeDescription(file, rest[:n])
	return err
}

// readMetadata takes the specification version from metadata.json.
func (c *Compiled) readMetadata() error {
	file := filepath.Join(c.Path, metadataName)
	data, err := readAll(file, mostSmallBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var list []struct {
		SpecificationVersion int `json:"specificationVersion"`
	}
	if err := json.NewDecoder(strings.NewReader(data)).Decode(&list); err != nil {
		return &format.Error{Path: file, Err: err}
	}
	if len(list) > 0 {
		c.Program.SpecVersion = list[0].SpecificationVersion
	}
	return nil
}

// readAll reads a file as a string of at most so many bytes.
func readAll(file string, most int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return "", &format.Error{Path: file, Got: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprintf("a file of at most %d", most)}
	}
	var b strings.Builder
	b.Grow(int(info.Size()))
	_, err = io.Copy(&b, f)
	return b.String(), err
}

// notCompiled says what a folder without a text is instead, if that can be told.
func notCompiled(name string, cause error) error {
	var at *os.PathError
	if errors.As(cause, &at) {
		cause = at.Err
	}
	e := &format.Error{Path: name, Got: "no " + textName, Want: "a folder that holds it", Err: fmt.Errorf("%w: %w", ErrNotCompiled, cause)}
	if _, err := os.Stat(filepath.Join(name, "Manifest.json")); err == nil {
		e.Got, e.Want, e.Fix = "a package, with Manifest.json", "", "open it as .mlpackage"
	} else if _, err := os.Stat(filepath.Join(name, dataName)); err == nil {
		e.Got, e.Want, e.Fix = dataName+" without "+textName, "", "the model is not an ML program, or the folder is incomplete"
	}
	return e
}

// flexibleShapes reads the attribute that lists the shapes inputs may take: pairs of a word (DefaultShapes, RangeDims or
// EnumeratedShapes) and a dictionary by input.
func flexibleShapes(f *mil.Function) map[string]*mil.Flexible {
	v := f.Attribute("FlexibleShapeInformation")
	if v == nil {
		return nil
	}
	shapes := map[string]*mil.Flexible{}
	items, _ := v.Content.(mil.Items)
	for _, it := range items {
		pair, _ := it.Content.(mil.Items)
		if len(pair) != 2 {
			continue
		}
		what, _ := pair[0].Text()
		addShapes(shapes, what, pair[1])
	}
	return shapes
}

func addShapes(shapes map[string]*mil.Flexible, what string, by *mil.Value) {
	entries, _ := by.Content.(mil.Pairs)
	for _, e := range entries {
		key, _ := e.Key.Text()
		if inner, ok := e.Value.Content.(mil.Pairs); ok && what == "EnumeratedShapes" {
			for _, x := range inner { // by an arbitrary label, then by input
				name, _ := x.Key.Text()
				if shape, ok := x.Value.Ints(); ok {
					input(shapes, name).Enumerated = append(input(shapes, name).Enumerated, shape)
				}
			}
			continue
		}
		switch what {
		case "DefaultShapes":
			input(shapes, key).Default, _ = e.Value.Ints()
		case "RangeDims":
			input(shapes, key).Ranges = ranges(e.Value)
		}
	}
}

func input(shapes map[string]*mil.Flexible, name string) *mil.Flexible {
	if shapes[name] == nil {
		shapes[name] = &mil.Flexible{}
	}
	return shapes[name]
}

// ranges reads [[lo, hi], …].
func ranges(v *mil.Value) []mil.Range {
	items, _ := v.Content.(mil.Items)
	var list []mil.Range
	for _, it := range items {
		if b, ok := it.Ints(); ok && len(b) == 2 {
			list = append(list, mil.Range{Min: b[0], Max: b[1]})
		}
	}
	return list
}
