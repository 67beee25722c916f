package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// mayImport is the drawing: for every package of the module, the packages of the module that its programs may import.
// internal/format is open to all. "*" admits everything that no other rule forbids.
//
// Two lanes end in parity and in cmd/simulate: checkpoint → tokens, and layout → tokens per second. A cost model that saw
// weights, or a model that knew its loader, would tie them together.
var mayImport = map[string][]string{
	".": {},

	"internal/format":                 {},
	"internal/atomicfile":             {},
	"internal/npy":                    {"quant", "internal/atomicfile"},
	"internal/half":                   {},
	"internal/kernel":                 {"internal/half"},
	"internal/arith":                  {"quant", "swa", "internal/kernel", "internal/half"},
	"internal/checkpoint":             {".", "gemma4", "quant", "internal/arith", "internal/half", "internal/checkpoint/*"},
	"internal/checkpoint/mapped":      {},
	"internal/checkpoint/safetensors": {"quant", "internal/half", "internal/atomicfile", "internal/checkpoint/mapped"},
	"internal/checkpoint/torchpickle": {"quant", "internal/half", "internal/checkpoint/mapped"},
	"internal/checkpoint/formula":     {"quant", "internal/half"},
	"internal/checkpoint/packed":      {"quant", "internal/arith", "internal/half", "internal/kernel", "internal/atomicfile", "internal/checkpoint/mapped"},
	"internal/checkpoint/converted":   {"gemma4", "quant", "coreml", "coreml/mil", "coreml/interp", "internal/arith", "internal/half"},
	"internal/shareddata":             {},
	"internal/gemmatest":              {"gemma4", "quant", "internal/half"},
	"internal/archtest":               {},

	"internal/tokenizer":               {"internal/checkpoint/mapped", "internal/tokenizer/gguf"},
	"internal/tokenizer/gguf":          {},
	"internal/tokenizer/gguf/gguftest": {},
	"internal/chat":                    {"internal/tokenizer"},

	"quant":     {"internal/half", "internal/kernel"},
	"swa":       {"internal/half", "internal/kernel"},
	"attention": {"swa", "internal/arith"},
	"gemma4":    {"attention", "swa", "quant", "internal/arith"},

	"speculate":      {"gemma4", "attention", "chunking", "chunking/run"},
	"quality/shards": {"quality", "internal/atomicfile", "internal/checkpoint"},
	"quality":        {"gemma4", "attention", "quant", "internal/arith", "internal/checkpoint/safetensors"},

	"chunking":            {"gemma4", "quant", "attention", "swa"},
	"chunking/layoutfile": {"chunking", "quant"},
	"chunking/run":        {"chunking", "gemma4", "attention", "swa", "quant", "internal/arith"},

	"anesim":           {"chunking", "anesim/evidence"},
	"anesim/evidence":  {},
	"anesim/devices":   {"anesim"},
	"anesim/search":    {"anesim", "chunking", "quant"},
	"anesim/devicelog": {"anesim"},
	"anesim/ledger":    {"anesim", "anesim/evidence", "chunking"},

	"coreml":                {"coreml/mil", "coreml/miltext", "coreml/mlpackage"},
	"coreml/mil":            {"internal/half"},
	"coreml/mil/blob":       {"coreml/mil", "internal/checkpoint/mapped"},
	"coreml/mlpackage":      {"coreml/mil", "coreml/mil/blob", "coreml/mlpackage/spec"},
	"coreml/mlpackage/spec": {"coreml/mil"},
	"coreml/miltext":        {"coreml/mil", "coreml/mil/blob", "coreml/mlpackage/spec", "internal/half"},
	"coreml/interp":         {"coreml/mil", "quant", "swa", "internal/arith", "internal/half"},
	"coreml/census":         {"coreml/mil"},
	"coreml/compress":       {"coreml/census", "coreml/mil", "quant", "internal/half"},
	"coreml/bundle":         {"coreml", "coreml/census", "gemma4", "internal/arith", "internal/atomicfile", "coreml/mil", "coreml/interp", "internal/checkpoint/mapped", "internal/npy", "internal/half", "quant"},
	"coreml/place":          {"coreml/census", "coreml/mil", "chunking", "gemma4", "quant"},
	"coreml/device":         {"coreml/census", "coreml/mil", "coreml/mlpackage", "internal/half"},
	"chunking/emit":         {"chunking", "chunking/run", "gemma4", "quant", "attention", "swa", "coreml/mil", "coreml/mlpackage", "internal/atomicfile", "internal/half", "internal/kernel", "internal/npy"},

	"parity":              {"coreml", "coreml/*", "gemma4", "chunking", "chunking/run", "quant", "attention", "swa", "internal/arith", "internal/half"},
	"parity/recorded":     {"parity", "coreml/interp", "internal/checkpoint/safetensors"},
	"parity/golden":       {"parity", "gemma4", "quant", "internal/atomicfile", "internal/checkpoint/safetensors"},
	"parity/golden/dense": {"parity", "parity/golden", "quant", "internal/npy"},
	"parity/paritytest":   {"parity", "parity/golden", "gemma4", "quant", "internal/arith", "internal/checkpoint", "internal/shareddata"},

	"scripts/devicereport":    {"coreml/device", "coreml/interp", "parity", "parity/recorded"},
	"scripts/peerweights":     {".", "gemma4", "quant", "internal/checkpoint/packed", "internal/half", "internal/kernel"},
	"cmd/simulate":            {"*"},
	"cmd/simulate/internal/*": {"*"},
}

// openToAll may be imported by every package.
var openToAll = []string{"internal/format"}

// forTestsOnly must not reach a program; the packages named may import them in ordinary files, being parts of tests themselves.
var forTestsOnly = map[string][]string{
	"testing":                         {"internal/shareddata", "parity/paritytest"},
	"github.com/stretchr/testify":     {"parity/paritytest"},
	"github.com/rogpeppe/go-internal": {},
	"github.com/openai/openai-go":     {},
	module + "/internal/gemmatest":    {},
	module + "/internal/shareddata":   {"parity/paritytest"},
	module + "/parity/paritytest":     {},

	module + "/internal/tokenizer/gguf/gguftest": {},
}

// owners says which packages may import a third-party module in ordinary files. Why each module is there: RATIONALE.md.
var owners = map[string][]string{
	"github.com/x448/float16":         {"internal/half"},
	"github.com/nlpodyssey/gopickle":  {"internal/checkpoint/torchpickle"},
	"gorgonia.org/tensor":             {"parity/golden/dense"},
	"gonum.org/v1/gonum":              {"anesim", "quant"},
	"github.com/ebitengine/purego":    {"coreml/device"},
	"github.com/spf13/cobra":          {"cmd/simulate", "cmd/simulate/internal/*"},
	"github.com/spf13/pflag":          {"cmd/simulate", "cmd/simulate/internal/*"},
	"github.com/goccy/go-yaml":        {"chunking/layoutfile", "anesim/devices", "cmd/simulate"},
	"golang.org/x/sys":                {"internal/kernel"},
	"github.com/rogpeppe/go-internal": {"cmd/simulate", "cmd/simulate/internal/*"},
	"github.com/stretchr/testify":     {"parity/paritytest"},
	"github.com/openai/openai-go":     {"cmd/simulate/internal/serve"},
}

// openToTests are the third-party modules that any test file may import on top of what its package owns.
var openToTests = []string{"github.com/stretchr/testify", "gonum.org/v1/gonum"}

// neverReached lists pairs: nothing that the first package links may include the second.
var neverReached = map[string]string{
	"cmd/simulate": "parity/golden/dense", // it would bring gorgonia into the command: 15 MB more, and an init that may panic on the next Go
}

func TestImportsFollowTheTable(t *testing.T) {
	report(t, checkImports(theModule(t)), "imports that the drawing in imports_test.go does not have:")
}

// TestTableIsDrawnAhead lists rows without a package: drawn before the code, or left behind by it.
func TestTableIsDrawnAhead(t *testing.T) {
	tr := theModule(t)
	for folder := range mayImport {
		if tr.packages[folder] == nil && !strings.HasSuffix(folder, "*") {
			t.Logf("%s holds no package yet", folder)
		}
	}
}

func TestLinkedPackages(t *testing.T) {
	report(t, checkReached(theModule(t)), "packages linked where they must not be:")
}

// checkImports holds every file against the tables above.
func checkImports(t *tree) []string {
	var problems []string
	for _, folder := range t.folders() {
		allowed, known := lookup(mayImport, folder)
		if !known {
			problems = append(problems, fmt.Sprintf("%s: unknown package; add it to mayImport with what it may import", folder))
			continue
		}
		for _, f := range t.packages[folder].files {
			for _, imported := range f.imports() {
				if why := forbidden(f, folder, imported, allowed); why != "" {
					problems = append(problems, fmt.Sprintf("%s imports %s: %s", f.path, imported, why))
				}
			}
		}
	}
	return problems
}

// forbidden says why f must not import imported, or "".
func forbidden(f *file, folder, imported string, allowed []string) string {
	if imported == "C" {
		return "no cgo"
	}
	if !f.test {
		for prefix, users := range forTestsOnly {
			if within(imported, prefix) && folder != strings.TrimPrefix(prefix, module+"/") && !matchAny(users, folder) {
				return "for tests only"
			}
		}
	}
	switch inside, project := projectPath(imported); {
	case project && f.test:
		return ""
	case project && (slices.Contains(openToAll, inside) || matchAny(allowed, inside)):
		return ""
	case project:
		return fmt.Sprintf("%s may import %s", folder, listOr(allowed, "nothing of the module"))
	case !strings.Contains(strings.Split(imported, "/")[0], "."): // standard library
		return ""
	}
	return forbiddenModule(f, folder, imported)
}

func forbiddenModule(f *file, folder, imported string) string {
	for prefix, users := range owners {
		if !within(imported, prefix) {
			continue
		}
		if matchAny(users, folder) || f.test && slices.Contains(openToTests, prefix) {
			return ""
		}
		return fmt.Sprintf("%s belongs to %s", prefix, strings.Join(users, ", "))
	}
	return "a module without an owner; see CONTRIBUTING.md, then add it to owners"
}

// checkReached follows imports of ordinary files.
func checkReached(t *tree) []string {
	var problems []string
	for from, to := range neverReached {
		var follow func(folder string, trail []string, seen map[string]bool)
		follow = func(folder string, trail []string, seen map[string]bool) {
			if seen[folder] || t.packages[folder] == nil {
				return
			}
			seen[folder] = true
			trail = append(slices.Clone(trail), folder)
			if folder == to {
				problems = append(problems, strings.Join(trail, " → "))
				return
			}
			for _, f := range t.packages[folder].sources() {
				for _, imported := range f.imports() {
					if inside, ok := projectPath(imported); ok {
						follow(inside, trail, seen)
					}
				}
			}
		}
		follow(from, nil, map[string]bool{})
	}
	return problems
}

// projectPath is the folder behind an import path of this module.
func projectPath(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// within reports whether an import path is prefix or lies below it.
func within(imported, prefix string) bool {
	return imported == prefix || strings.HasPrefix(imported, prefix+"/")
}

// lookup finds the entry of a folder, by name or by its pattern "parent/*".
func lookup(table map[string][]string, folder string) ([]string, bool) {
	if v, ok := table[folder]; ok {
		return v, true
	}
	for pattern, v := range table {
		if matchAny([]string{pattern}, folder) {
			return v, true
		}
	}
	return nil, false
}

// matchAny reports whether a folder is in a list of names and patterns: "*" is everything, "a/*" everything below a.
func matchAny(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		dir, star := strings.CutSuffix(p, "*")
		return p == folder || star && strings.HasPrefix(folder, dir)
	})
}

func listOr(list []string, empty string) string {
	if len(list) == 0 {
		return empty
	}
	return strings.Join(list, ", ")
}

func TestImportRulesCanFail(t *testing.T) { // hand
	tr, err := load(fstest.MapFS{
		"quant/a.go":               src("quant", "anelab/gemma4", "anelab/internal/half", "anelab/internal/format", "fmt", "gonum.org/v1/gonum/floats"),
		"quant/a_test.go":          src("quant_test", "anelab/parity", "github.com/stretchr/testify/require", "anelab/internal/shareddata"),
		"swa/ring.go":              src("swa", "gonum.org/v1/gonum/floats", "testing", "anelab/internal/shareddata"),
		"swa/ring_test.go":         src("swa", "github.com/goccy/go-yaml"),
		"gemma4/m.go":              src("gemma4", "C", "example.com/new"),
		"stray/s.go":               src("stray"),
		"cmd/simulate/m.go":        src("main", "anelab/parity/golden", "github.com/spf13/cobra/doc"),
		"parity/golden/g.go":       src("golden", "anelab/parity/golden/dense"),
		"parity/golden/dense/d.go": src("dense", "gorgonia.org/tensor/native"),
	})
	require.NoError(t, err)
	got := checkImports(tr)
	want := []string{
		"gemma4/m.go imports C: no cgo",
		"gemma4/m.go imports example.com/new: a module without an owner; see CONTRIBUTING.md, then add it to owners",
		"parity/golden/g.go imports anelab/parity/golden/dense: parity/golden may import parity, gemma4, quant, internal/atomicfile, internal/checkpoint/safetensors",
		"quant/a.go imports anelab/gemma4: quant may import internal/half, internal/kernel",
		"stray: unknown package; add it to mayImport with what it may import",
		"swa/ring.go imports gonum.org/v1/gonum/floats: gonum.org/v1/gonum belongs to anesim, quant",
		"swa/ring.go imports testing: for tests only",
		"swa/ring.go imports anelab/internal/shareddata: for tests only",
		"swa/ring_test.go imports github.com/goccy/go-yaml: github.com/goccy/go-yaml belongs to chunking/layoutfile, anesim/devices, cmd/simulate",
	}
	require.ElementsMatch(t, want, got)
	require.Equal(t, []string{"cmd/simulate → parity/golden → parity/golden/dense"}, checkReached(tr))
}

// src is a Go file with nothing but imports.
func src(name string, imports ...string) *fstest.MapFile {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", name)
	for _, i := range imports {
		fmt.Fprintf(&b, "import _ %q\n", path.Clean(i))
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}
