package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// leastDoc is the number of lines under which a package comment cannot have said which question the package answers, how its
// data lie and where to start.
const leastDoc = 3

func TestEveryPackageHasDocFile(t *testing.T) {
	report(t, checkPackageDocs(theModule(t)), "package comments live in doc.go and say: the question answered, data layout, conventions, where to start:")
}

func TestEveryExportedIdentifierIsDocumented(t *testing.T) {
	report(t, checkExportedDocs(theModule(t)), "exported without a doc comment:")
}

// checkPackageDocs wants one package comment, in doc.go. The root holds one file, a command is documented in main.go, and a
// package without ordinary files needs none.
func checkPackageDocs(t *tree) []string {
	var problems []string
	for _, folder := range t.folders() {
		want, found := path.Join(folder, "doc.go"), false
		for _, f := range t.packages[folder].sources() {
			lines := 0
			if f.ast.Doc != nil {
				lines = strings.Count(f.ast.Doc.Text(), "\n")
			}
			main := f.ast.Name.Name == "main" || folder == "."
			switch {
			case f.path == want || main && lines > 0:
				found = true
				if lines < leastDoc {
					problems = append(problems, fmt.Sprintf("%s: package comment of %d lines, want at least %d", f.path, lines, leastDoc))
				}
			case lines > 0:
				problems = append(problems, f.path+": package comment outside doc.go")
			}
		}
		if !found && len(t.packages[folder].sources()) > 0 {
			problems = append(problems, folder+": no doc.go")
		}
	}
	return problems
}

// selfExplaining are methods whose meaning the standard library fixes.
var selfExplaining = []string{"String", "Error", "Unwrap"}

// checkExportedDocs looks at functions, methods of exported types, types, constants and variables. In a group, a comment on the group or on the line will do.
func checkExportedDocs(t *tree) []string {
	var problems []string
	t.eachDeclaration(func(f *file, d ast.Decl) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && isPublic(d) && !slices.Contains(selfExplaining, d.Name.Name) {
				problems = append(problems, t.at(d)+" func "+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				for _, name := range undocumented(d, spec) {
					problems = append(problems, t.at(name)+" "+d.Tok.String()+" "+name.Name)
				}
			}
		}
	})
	return problems
}

// eachDeclaration visits the top-level declarations of all ordinary files of library packages.
func (t *tree) eachDeclaration(visit func(f *file, d ast.Decl)) {
	for _, folder := range t.folders() {
		for _, f := range t.packages[folder].sources() {
			for _, d := range f.ast.Decls {
				visit(f, d)
			}
		}
	}
}

// isPublic reports whether a function can be seen from other packages.
func isPublic(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() {
		return false
	}
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	for {
		switch x := receiver.(type) {
		case *ast.StarExpr:
			receiver = x.X
		case *ast.IndexExpr:
			receiver = x.X
		case *ast.IndexListExpr:
			receiver = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumented are the exported names of one type, constant or variable specification that no comment speaks of.
func undocumented(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
			names = []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil && d.Doc == nil {
			names = s.Names
		}
	}
	var exported []*ast.Ident
	for _, n := range names {
		if n.IsExported() && d.Tok != token.IMPORT {
			exported = append(exported, n)
		}
	}
	return exported
}

func TestDocRulesCanFail(t *testing.T) { // hand
	tr, err := load(fstest.MapFS{
		"a/doc.go": text("// Package a\npackage a"),
		"a/a.go": text("// Package a again.\npackage a\n" +
			"func Bare() {}\nfunc (hidden) Fine() {}\nfunc (T[E]) Bare2() {}\nfunc (*T[E]) String() string { return \"\" }\n" +
			"type hidden int\ntype T[E any] struct{}\n// G is fine.\ntype G int\nconst (\n\tX = 1 // fine\n\tY = 2\n)\n// These are.\nvar (\n\tV int\n)\n"),
		"b/b.go":      text("package b"),
		"c/c_test.go": text("package c\nfunc Test() {}"),
		"d/main.go":   text("// Command d does.\n//\n// One thing.\npackage main"),
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"a/a.go: package comment outside doc.go",
		"a/doc.go: package comment of 1 lines, want at least 3",
		"b: no doc.go",
	}, checkPackageDocs(tr))
	require.Equal(t, []string{"a/a.go:3 func Bare", "a/a.go:5 func Bare2", "a/a.go:8 type T", "a/a.go:13 const Y"}, checkExportedDocs(tr))
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
