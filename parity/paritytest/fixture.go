package paritytest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/parity"
	"anelab/parity/golden"
)

// tiny is the folder of the small model.
func tiny(t testing.TB, name string) string {
	return filepath.Join(shareddata.ModuleRoot(t), "testdata", "golden", "tiny-e2b", name)
}

// TinyE2B loads a checkpoint of the small model ("fp32", "bf16", "mlx-prefix" …) in a numerics mode.
func TinyE2B(t testing.TB, name, mode string) *gemma4.Model {
	t.Helper()
	return Load(t, tiny(t, name), mode)
}

// Load loads any checkpoint in a numerics mode, for the length of the test.
func Load(t testing.TB, path, mode string) *gemma4.Model {
	t.Helper()
	src, err := opened(t, path)
	require.NoError(t, err)
	return loaded(t, src, mode)
}

func opened(t testing.TB, path string) (*checkpoint.Checkpoint, error) {
	src, err := checkpoint.Open(path)
	if err == nil {
		t.Cleanup(func() { src.Close() })
	}
	return src, err
}

func loaded(t testing.TB, src *checkpoint.Checkpoint, mode string) *gemma4.Model {
	t.Helper()
	a, err := arith.New(mode, 0)
	require.NoError(t, err)
	m, err := gemma4.Load(src.Config, src, a, gemma4.Options{})
	require.NoError(t, err)
	return m
}

// Golden opens a golden of the small model for the length of the test.
func Golden(t testing.TB, name string) *golden.File {
	t.Helper()
	f, err := golden.Open(tiny(t, name))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// Run compares two backends and fails the test where they part, with values to look at.
func Run(t testing.TB, got, want parity.Backend, c parity.Case, s parity.Settings) parity.Report {
	t.Helper()
	r, err := parity.Run(t.Context(), got, want, c, s)
	require.NoError(t, err)
	if r.Err() != nil {
		t.Fatalf("%v\n%s", r.Err(), r.String())
	}
	return r
}

// Agree fails the test when got is not within a tolerance of want, with the values around the first fault.
func Agree(t testing.TB, got, want []float32, o parity.Options, tolerance parity.Tolerance) {
	t.Helper()
	var fault *parity.Disagreement
	if err := tolerance.Check(parity.Compare(got, want, o)); errors.As(err, &fault) {
		t.Fatal(fault.Detail())
	}
}
