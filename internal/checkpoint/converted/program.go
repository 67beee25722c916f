package converted

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/coreml/mlpackage"
)

// Program is an open package or compiled model, told apart by what the folder holds; its name decides only if it holds neither.
type Program struct {
	io.Closer
	*mil.Program
	Path        string
	Description *mil.Description // nil where a compiled model has none
}

// compiledText is in every compiled ML program, manifestText in every package.
const (
	compiledText = "model.mil"
	manifestText = "Manifest.json"
)

// OpenProgram opens either form.
func OpenProgram(path string) (*Program, error) {
	if !has(path, manifestText) && (has(path, compiledText) || filepath.Ext(path) == ".mlmodelc") {
		c, err := miltext.Open(path)
		if err != nil {
			return nil, err
		}
		return &Program{Closer: c, Program: c.Program, Path: path, Description: c.Description}, nil
	}
	p, err := mlpackage.Open(path)
	if err != nil {
		return nil, err
	}
	return &Program{Closer: p, Program: p.Program, Path: path, Description: p.Description}, nil
}

func has(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular()
}

// Decode is the function that takes one token, or else the fewest: the one that the model names as its default, if several do.
func (p *Program) Decode() *mil.Function {
	list := slices.Clone(p.Functions)
	preferred := func(f *mil.Function) int {
		if p.Description != nil && f.Name == p.Description.DefaultFunction || f.Name == mil.MainFunction {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *mil.Function) int {
		return cmp.Or(cmp.Compare(Tokens(a), Tokens(b)), cmp.Compare(preferred(a), preferred(b)))
	})
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// Tokens is the number of tokens that a function takes at once, 0 if it takes no hidden states.
func Tokens(f *mil.Function) int {
	in := f.Input("hidden_states")
	if in == nil || len(in.Type.Shape) != 3 {
		return 0
	}
	return int(in.Type.Shape[1])
}

// IsModel reports whether a folder holds a package or a compiled model, whatever its name.
func IsModel(path string) bool { return has(path, manifestText) || has(path, compiledText) }

// Note is an entry of the model's free metadata, "" if there is none.
func (p *Program) Note(key string) string {
	if p.Description == nil {
		return ""
	}
	for _, entry := range p.Description.Metadata.UserDefined {
		if entry.Key == key {
			return entry.Value
		}
	}
	return ""
}
