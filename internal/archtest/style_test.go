package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// Limits of functions, counted from "func" to the closing brace. Tests are free.
const (
	mostParameters = 5
	mostLines      = 80
	medianLines    = 10
	p90Lines       = 40
)

// longOnPurpose are functions that may exceed mostLines, each with its reason.
var longOnPurpose = map[string]string{}

// wideOnPurpose are functions that may exceed mostParameters, each with its reason.
var wideOnPurpose = map[string]string{}

// emptyNames say nothing about what a file holds.
var emptyNames = []string{"utils", "util", "common", "helpers", "helper", "types", "misc"}

func TestFunctionsAreShortAndNarrow(t *testing.T) {
	tr := theModule(t)
	report(t, checkFunctions(tr), "functions (exemptions with reasons: longOnPurpose and wideOnPurpose in style_test.go):")
	lengths := tr.functionLengths()
	median, p90 := lengths[len(lengths)/2], lengths[len(lengths)*9/10]
	t.Logf("%d functions: median %d lines, 90th percentile %d, longest %d", len(lengths), median, p90, lengths[len(lengths)-1])
	require.LessOrEqual(t, median, medianLines)
	require.LessOrEqual(t, p90, p90Lines)
}

func TestFileNamesSaySomething(t *testing.T) {
	report(t, checkFileNames(theModule(t)), "name the idea instead:")
}

func checkFunctions(t *tree) []string {
	var problems []string
	used := map[string]bool{}
	t.eachDeclaration(func(f *file, d ast.Decl) {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			return
		}
		name := path.Dir(f.path) + "." + functionName(fn)
		used[name] = true
		if n := fn.Type.Params.NumFields(); n > mostParameters && wideOnPurpose[name] == "" && fn.Body != nil { // assembly has no structs
			problems = append(problems, fmt.Sprintf("%s %s has %d parameters, at most %d: gather what moves together in a struct", t.at(fn), name, n, mostParameters))
		}
		if n := t.lines(fn); n > mostLines && longOnPurpose[name] == "" {
			problems = append(problems, fmt.Sprintf("%s %s has %d lines, at most %d", t.at(fn), name, n, mostLines))
		}
		if isPublic(fn) && hasBool(fn.Type.Params) {
			problems = append(problems, fmt.Sprintf("%s %s takes a bool: a call with true in it cannot be read; use a named type, an option or two functions", t.at(fn), name))
		}
	})
	for _, exempt := range []map[string]string{longOnPurpose, wideOnPurpose} {
		for name := range exempt {
			if !used[name] {
				problems = append(problems, name+" is exempt but does not exist")
			}
		}
	}
	return problems
}

// hasBool reports whether a parameter is a plain bool. Slices of bool are data.
func hasBool(params *ast.FieldList) bool {
	return slices.ContainsFunc(params.List, func(p *ast.Field) bool {
		id, ok := p.Type.(*ast.Ident)
		return ok && id.Name == "bool"
	})
}

// functionName is F, T.M or T.M for a pointer receiver alike.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	var receiver string
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && receiver == "" {
			receiver = id.Name
		}
		return true
	})
	return receiver + "." + d.Name.Name
}

// lines is the length of a function.
func (t *tree) lines(fn *ast.FuncDecl) int {
	return t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
}

// functionLengths are those of all functions with a body, ascending.
func (t *tree) functionLengths() []int {
	var lengths []int
	t.eachDeclaration(func(_ *file, d ast.Decl) {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			lengths = append(lengths, t.lines(fn))
		}
	})
	slices.Sort(lengths)
	return lengths
}

func checkFileNames(t *tree) []string {
	var problems []string
	for _, folder := range t.folders() {
		if slices.Contains(emptyNames, path.Base(folder)) {
			problems = append(problems, folder)
		}
		for _, f := range t.packages[folder].files {
			name := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
			if slices.Contains(emptyNames, name) {
				problems = append(problems, f.path)
			}
		}
	}
	return problems
}

func TestStyleRulesCanFail(t *testing.T) { // hand
	tr, err := load(fstest.MapFS{
		"a/a.go": text("package a\nfunc (t *T) Wide(a, b, c, d, e, f int) {}\nfunc Flag(on bool) {}\nfunc flag(on bool) {}\nfunc Data(on []bool) {}\n" +
			"func long() {\n" + strings.Repeat("\t_ = 0\n", 79) + "}\n"),
		"a/utils.go":       text("package a"),
		"a/common_test.go": text("package a"),
	})
	require.NoError(t, err)
	got := strings.Join(checkFunctions(tr), "\n")
	require.Contains(t, got, "a/a.go:2 a.T.Wide has 6 parameters, at most 5")
	require.Contains(t, got, "a/a.go:3 a.Flag takes a bool")
	require.Contains(t, got, "a/a.go:6 a.long has 81 lines, at most 80")
	require.NotContains(t, got, "a.flag")
	require.NotContains(t, got, "a.Data")
	require.Equal(t, []string{"a/common_test.go", "a/utils.go"}, checkFileNames(tr))
}
