package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
)

// The two forms of a Core ML model on disk.
const (
	packageForm  = "package"
	compiledForm = "compiled"
)

// coreModel is a Core ML model of either form.
type coreModel struct {
	path        string
	form        string
	program     *mil.Program
	description *mil.Description // nil if a compiled model has none that can be read
	close       func() error
}

// openCoreModel opens a model by what it holds: a package has a manifest, a compiled model its program as text.
func openCoreModel(path string) (*coreModel, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, &format.Error{Path: path, Got: reason(err).Error(), Want: "an .mlpackage or .mlmodelc"}
	} else if !info.IsDir() {
		return nil, &format.Error{Path: path, Got: "a file", Want: "an .mlpackage or .mlmodelc, which are folders"}
	}
	if _, err := os.Stat(filepath.Join(path, "model.mil")); err == nil {
		m, err := miltext.Open(path)
		if err != nil {
			return nil, err
		}
		return &coreModel{path, compiledForm, m.Program, m.Description, m.Close}, nil
	}
	m, err := mlpackage.Open(path)
	if err != nil {
		return nil, err
	}
	return &coreModel{path, packageForm, m.Program, m.Description, m.Close}, nil
}

// isCoreModel tells a model from a layout by its name.
func isCoreModel(arg string) bool {
	ext := strings.ToLower(filepath.Ext(strings.TrimRight(arg, `/\`)))
	return ext == ".mlpackage" || ext == ".mlmodelc"
}

// exactArgs wants n of something.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s, got %d; see %s --help", cmd.Name(), count(n, what), len(args), cmd.CommandPath())
		}
		return nil
	}
}

// layoutOrModels wants one layout, or Core ML models.
func layoutOrModels(cmd *cobra.Command, args []string) error {
	models, err := areCoreModels(args)
	if models || err != nil {
		return err
	}
	return layoutArgs(1)(cmd, args)
}

// addFunction declares which function of a model is meant.
func addFunction(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "function", "", "of packages: the `NAME` of the function to look at (default: the package's default)")
}

// completeModels completes arguments with folders: models are ones.
func completeModels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"mlpackage", "mlmodelc"}, cobra.ShellCompDirectiveFilterFileExt | cobra.ShellCompDirectiveFilterDirs
}
