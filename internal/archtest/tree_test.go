package archtest

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

const module = "anelab"

// tree is the module as parsed.
type tree struct {
	fsys     fs.FS
	fset     *token.FileSet
	packages map[string]*pkg // by folder, "." for the root
}

// pkg is one folder of Go files: the package and its tests.
type pkg struct {
	folder string
	files  []*file
}

// file is one Go file.
type file struct {
	path string
	test bool
	ast  *ast.File
	src  []byte
}

// imports are the import paths of f.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		paths = append(paths, p)
	}
	return paths
}

// sources are the files that end up in programs.
func (p *pkg) sources() []*file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
}

// folders are all package folders, sorted.
func (t *tree) folders() []string {
	var names []string
	for name := range t.packages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// theModule parses the module that this test is part of.
func theModule(t *testing.T) *tree {
	t.Helper()
	tr, err := load(os.DirFS(shareddata.ModuleRoot(t)))
	require.NoError(t, err)
	require.Greater(t, len(tr.packages), 5, "is this the whole module?")
	return tr
}

// load parses every Go file that the go command would look at on some platform.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, fset: token.NewFileSet(), packages: map[string]*pkg{}}
	err := t.walk(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments)
		if err != nil || ignored(src) {
			return err
		}
		folder := path.Dir(name)
		if t.packages[folder] == nil {
			t.packages[folder] = &pkg{folder: folder}
		}
		t.packages[folder].files = append(t.packages[folder].files,
			&file{path: name, test: strings.HasSuffix(name, "_test.go"), ast: parsed, src: src})
		return nil
	})
	return t, err
}

// walk visits the files of the module, leaving out what the go command leaves out: folders named testdata, .x and _x, and folders
// with a go.mod, which are modules of their own, as generators in folders like _asm are.
func (t *tree) walk(visit func(name string) error) error {
	return fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		if _, err := fs.Stat(t.fsys, path.Join(name, "go.mod")); d.IsDir() && name != "." && err == nil {
			return fs.SkipDir
		}
		if d.IsDir() || base[0] == '.' || base[0] == '_' {
			return nil
		}
		return visit(name)
	})
}

// ignored reports whether a file opts out of every build, as scripts run by "go run" do.
func ignored(src []byte) bool {
	for line := range bytes.Lines(src) {
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, "package ") {
			return false
		}
		if constraint.IsGoBuild(text) && strings.Contains(text, "ignore") {
			return true
		}
	}
	return false
}

// at is the position of a node, for messages.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// report fails the test with one problem a line.
func report(t *testing.T, problems []string, advice string) {
	t.Helper()
	if len(problems) > 0 {
		t.Errorf("%s\n\t%s", advice, strings.Join(problems, "\n\t"))
	}
}
