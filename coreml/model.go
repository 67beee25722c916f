package coreml

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
)

// Model is an open model. Weights are read from its files while it is open.
type Model struct {
	io.Closer
	*mil.Program
	Path        string
	Form        Form
	Description *mil.Description // nil where a compiled model has none
}

// Form is how a model lies on disk.
type Form string

// The two forms of a model.
const (
	Package  Form = "package"
	Compiled Form = "compiled"
)

// compiledText is in every compiled ML program, manifestText in every package.
const (
	compiledText = "model.mil"
	manifestText = "Manifest.json"
)

// Open opens a model of either form. What the folder holds tells them apart; its name decides only if it holds neither.
func Open(path string) (*Model, error) {
	if err := checkFolder(path); err != nil {
		return nil, err
	}
	if !has(path, manifestText) && (has(path, compiledText) || ending(path) == ".mlmodelc") {
		m, err := miltext.Open(path)
		if err != nil {
			return nil, err
		}
		return &Model{Closer: m, Program: m.Program, Path: path, Form: Compiled, Description: m.Description}, nil
	}
	m, err := mlpackage.Open(path)
	if err != nil {
		return nil, err
	}
	return &Model{Closer: m, Program: m.Program, Path: path, Form: Package, Description: m.Description}, nil
}

const eitherForm = "an .mlpackage or .mlmodelc"

func checkFolder(path string) error {
	info, err := os.Stat(path)
	var fault *fs.PathError
	switch {
	case errors.As(err, &fault):
		return &format.Error{Path: path, Want: eitherForm, Err: fault.Err}
	case !info.IsDir():
		return &format.Error{Path: path, Got: "a file", Want: eitherForm + ", which are folders"}
	}
	return nil
}

func has(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular()
}

// ending is that of a folder's name, in lower case.
func ending(path string) string {
	return strings.ToLower(filepath.Ext(strings.TrimRight(path, `/\`)))
}

// IsModel reports whether a path is meant as a model: by its ending, or by what the folder holds.
func IsModel(path string) bool {
	switch ending(path) {
	case ".mlpackage", ".mlmodelc":
		return true
	}
	return has(path, manifestText) || has(path, compiledText)
}

// Note is an entry of the model's free metadata, "" if there is none.
func (m *Model) Note(key string) string {
	if m.Description == nil {
		return ""
	}
	for _, entry := range m.Description.Metadata.UserDefined {
		if entry.Key == key {
			return entry.Value
		}
	}
	return ""
}
