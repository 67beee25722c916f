package shareddata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Variable is the environment variable that names the data folder.
const Variable = "ANELAB_DATA"

// Cases returns the paths that match pattern (slash-separated, syntax of [filepath.Match]) under the data folder, sorted, and
// logs their number. It skips the test when the folder before the first wildcard is absent and fails it when nothing matches.
func Cases(t testing.TB, pattern string) []string {
	t.Helper()
	folder := Dir(t, fixedPart(pattern))
	found, err := filepath.Glob(filepath.Join(base(t), filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatalf("shareddata: pattern %q: %v", pattern, err)
	}
	if len(found) == 0 {
		t.Fatalf("%s exists but nothing matches %q: has the layout of the data changed?", folder, pattern)
	}
	t.Logf("%d cases match %s", len(found), pattern)
	return found
}

// Dir returns the path of sub (slash-separated, "" for the folder itself) under the data folder; it skips the test when that
// is absent.
func Dir(t testing.TB, sub string) string {
	t.Helper()
	path := filepath.Join(base(t), filepath.FromSlash(sub))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s not found: set %s to the folder that holds the conformance data", path, Variable)
	}
	return path
}

// ModuleRoot returns the folder of go.mod, so that a test finds testdata/ from any package.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	t.Fatalf("shareddata: no go.mod above the test's folder (%v)", err)
	return ""
}

// base is the data folder, there or not. A relative $ANELAB_DATA counts from the module root: every package's tests run in a
// folder of their own.
func base(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		dir = filepath.Join("..", "shared")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(ModuleRoot(t), dir)
	}
	return dir
}

// fixedPart is the folder that pattern names before its first wildcard.
func fixedPart(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		pattern = pattern[:i]
	}
	return pattern[:strings.LastIndexByte(pattern, '/')+1]
}
