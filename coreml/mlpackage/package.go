package mlpackage

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"anelab/coreml/mil"
	"anelab/coreml/mil/blob"
	"anelab/coreml/mlpackage/spec"
	"anelab/internal/format"
)

// Package is a Core ML package: a program, what it says about itself, and the files that hold its weights. To make one from
// nothing, fill Program and Description.
type Package struct {
	Path        string
	Program     *mil.Program
	Description *mil.Description
	Manifest    *Manifest // nil for a package that was not read

	model *spec.Model
	files *blob.Files
	root  string // folder of the model file, where @model_path points
}

// Open reads a package and checks it. Constants in weights files can be read until Close.
func Open(name string) (*Package, error) {
	m, err := readManifest(name)
	if err != nil {
		return nil, err
	}
	root, _ := m.item(m.Root)
	file := filepath.Join(name, dataFolder, filepath.FromSlash(root.Path))
	text, err := readModel(name, root.Path, file)
	if err != nil {
		return nil, err
	}
	model, err := spec.Decode(file, text)
	if err != nil {
		return nil, err
	}
	p := &Package{Path: name, Program: model.Program, Description: model.Description, Manifest: m, model: model, root: filepath.Dir(file)}
	if err := p.check(file); err != nil {
		return nil, err
	}
	p.files = &blob.Files{Root: p.root, Admit: func(inside string) error { return p.admit(path.Join(path.Dir(root.Path), inside)) }}
	if err := p.files.Bind(p.Program); err != nil {
		return nil, err
	}
	return p, nil
}

// Close releases the weights. The program stays, but its blobs can no longer be read.
func (p *Package) Close() error {
	if p.files == nil {
		return nil
	}
	return p.files.Close()
}

// readModel reads the model file as a string, parts of which the program will be made of.
func readModel(pkg, inside, file string) (string, error) {
	info, err := statInside(pkg, inside)
	if err != nil || !info.Mode().IsRegular() {
		return "", &format.Error{Path: file, Got: "no regular file", Err: errors.Join(ErrItem, err)}
	}
	f, err := os.Open(file)
	if err != nil {
		return "", &format.Error{Path: file, Err: err}
	}
	defer f.Close()
	var b strings.Builder
	b.Grow(int(info.Size()))
	if _, err := io.Copy(&b, f); err != nil {
		return "", &format.Error{Path: file, Err: err}
	}
	return b.String(), nil
}

// admit refuses weights that the manifest does not list, or that lie outside the package.
func (p *Package) admit(name string) error {
	if !p.Manifest.covers(name) {
		return &format.Error{Path: filepath.Join(p.Path, manifestName), Got: "no item for Data/" + name, Err: ErrUnlisted, Fix: "add the weights folder to the manifest"}
	}
	if _, err := statInside(p.Path, name); err != nil {
		return missingItem(p.Path, "", name, err)
	}
	return nil
}

// check looks at the program and at what the description says of it.
func (p *Package) check(file string) error {
	err := mil.Check(p.Program)
	if err == nil {
		err = mil.CheckDescription(p.Program, p.Description)
	}
	var f *mil.Fault
	if errors.As(err, &f) {
		return &format.Error{Path: file, Field: f.Where(), Got: f.Got, Want: f.Want, Fix: f.Fix, Err: f.Rule}
	}
	return err
}
