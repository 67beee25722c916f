package shareddata

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that notes how the code under test ended it.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Logf(f string, a ...any)   { r.outcome = fmt.Sprintf("log: "+f, a...) }
func (r *recorder) Skipf(f string, a ...any)  { r.end("skip: "+f, a) }
func (r *recorder) Fatalf(f string, a ...any) { r.end("fail: "+f, a) }

func (r *recorder) end(f string, a []any) {
	r.outcome = fmt.Sprintf(f, a...)
	runtime.Goexit()
}

// outcome runs f as a test would run it.
func outcome(t *testing.T, f func(testing.TB)) string {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	return r.outcome
}

func TestCases(t *testing.T) { // hand
	dir := t.TempDir()
	t.Setenv(Variable, dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "golden", "tiny-a"), 0o755))
	for _, name := range []string{"b.safetensors", "a.safetensors", "a.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "golden", "tiny-a", name), nil, 0o644))
	}
	var got []string
	require.Equal(t, "log: 2 cases match golden/tiny-*/*.safetensors",
		outcome(t, func(tb testing.TB) { got = Cases(tb, "golden/tiny-*/*.safetensors") }))
	require.Equal(t, []string{filepath.Join(dir, "golden", "tiny-a", "a.safetensors"), filepath.Join(dir, "golden", "tiny-a", "b.safetensors")}, got)

	for name, c := range map[string]struct{ pattern, want string }{
		"nothing in a folder that is there": {"golden/tiny-*/*.npy", "fail: .*exists but nothing matches"},
		"folder absent":                     {"coreml/ops/*.json", "skip: .*coreml.ops not found: set ANELAB_DATA"},
		"bad pattern":                       {"golden/[", "fail: .*pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Regexp(t, c.want, outcome(t, func(tb testing.TB) { Cases(tb, c.pattern) }))
		})
	}
}

func TestBaseDefaultsToSiblingOfTheModule(t *testing.T) { // hand
	t.Setenv(Variable, "")
	require.Equal(t, filepath.Join(filepath.Dir(ModuleRoot(t)), "shared"), base(t))
	t.Setenv(Variable, "testdata")
	require.Equal(t, filepath.Join(ModuleRoot(t), "testdata"), base(t), "a relative folder counts from the module root")
}
