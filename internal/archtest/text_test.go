package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

const (
	mostTextBytes     = 1 << 20 // longer files are data
	mostTestdataBytes = 8_000_000
)

// The patterns are put together so that this file does not match itself.
var (
	unfinished  = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	machinePath = regexp.MustCompile(`(^|[^\w.~/$}-])/(wor` + `k|far` + `m|tm` + `p|ho` + `me|Use` + `rs|roo` + `t)/[A-Za-z]`)
)

func TestNoUnfinishedMarksAndNoMachinePaths(t *testing.T) {
	report(t, checkText(os.DirFS(shareddata.ModuleRoot(t))), "text files speak of one machine, or of work left undone:")
}

func TestEveryModuleHasItsReason(t *testing.T) {
	problems, err := checkRationale(os.DirFS(shareddata.ModuleRoot(t)))
	require.NoError(t, err)
	report(t, problems, "RATIONALE.md must say what each required module is for and what was tried without it:")
}

func TestEveryTestFileHasItsProvenance(t *testing.T) {
	problems, err := checkProvenance(os.DirFS(shareddata.ModuleRoot(t)))
	require.NoError(t, err)
	report(t, problems, "testdata/README.md must say where each file comes from (a line in backquotes: its path, its folder ending in /, or a pattern):")
}

// checkText reads every text file that could be committed.
func checkText(fsys fs.FS) []string {
	var problems []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if name == ".git" {
				return fs.SkipDir
			}
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > mostTextBytes || !info.Mode().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return err
		}
		problems = append(problems, checkLines(name, data)...)
		return nil
	})
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

func checkLines(name string, data []byte) []string {
	var problems []string
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if m := machinePath.Find(line); m != nil {
			problems = append(problems, fmt.Sprintf("%s:%d: path %q", name, n, m))
		}
		if m := unfinished.Find(line); m != nil && path.Ext(name) == ".go" {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", name, n, m))
		}
	}
	return problems
}

// checkRationale wants every direct requirement of go.mod named in RATIONALE.md.
func checkRationale(fsys fs.FS) ([]string, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	reasons, err := fs.ReadFile(fsys, "RATIONALE.md")
	if err != nil {
		return nil, err
	}
	var problems []string
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) != 2 || !strings.HasPrefix(fields[1], "v") {
			continue // not a requirement, or an indirect one
		}
		if !bytes.Contains(reasons, []byte(fields[0])) {
			problems = append(problems, fields[0])
		}
	}
	return problems, nil
}

var quoted = regexp.MustCompile("`([^`]+)`")

// checkProvenance wants every file below testdata matched by something quoted in its README, and all of them within the limit.
func checkProvenance(fsys fs.FS) ([]string, error) {
	readme, err := fs.ReadFile(fsys, "testdata/README.md")
	if err != nil {
		return nil, err
	}
	var patterns []string
	for _, m := range quoted.FindAllSubmatch(readme, -1) {
		patterns = append(patterns, string(m[1]))
	}
	var problems []string
	total := int64(0)
	err = fs.WalkDir(fsys, "testdata", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		if inside := strings.TrimPrefix(name, "testdata/"); inside != "README.md" && !mentioned(patterns, inside) {
			problems = append(problems, inside)
		}
		return nil
	})
	if total > mostTestdataBytes {
		problems = append(problems, fmt.Sprintf("testdata/ has %d bytes, at most %d", total, mostTestdataBytes))
	}
	return problems, err
}

// mentioned reports whether a file is named by itself, by a folder above it, or by a pattern.
func mentioned(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		match, err := path.Match(p, name)
		return err == nil && match || strings.HasSuffix(p, "/") && strings.HasPrefix(name, p)
	})
}

func TestTextRulesCanFail(t *testing.T) { // hand
	fsys := fstest.MapFS{
		"a.go":               text("package a\n// TO" + "DO later\n"),
		"b.md":               text("see /wor" + "k/main and ../tm" + "p/x, $HOME/ho" + "me/y\n"),
		"c.bin":              text("\x00/wor" + "k/main"),
		".git/config":        text("/ro" + "ot/x"),
		"go.mod":             text("module a\n\nrequire example.com/a v1.0.0\n\nrequire (\n\texample.com/b v1.2.3\n\texample.com/c v1.0.0 // indirect\n)\n"),
		"RATIONALE.md":       text("example.com/b because"),
		"testdata/README.md": text("`x/` and `y/*.csv`\n"),
		"testdata/x/p/q":     text(""),
		"testdata/y/a.csv":   text(""),
		"testdata/y/a.txt":   text(""),
	}
	require.Equal(t, []string{"a.go:2: TO" + "DO", "b.md:1: path \" /wor" + "k/m\""}, checkText(fsys))
	problems, err := checkRationale(fsys)
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/a"}, problems)
	problems, err = checkProvenance(fsys)
	require.NoError(t, err)
	require.Equal(t, []string{"y/a.txt"}, problems)
}
