package emit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anelab/chunking/emit"
	"anelab/chunking/run"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"

	"github.com/stretchr/testify/require"
)

// invariant: packages written and read back are the programs they were, weights and all, and compute the same.
func TestPackagesReadBack(t *testing.T) {
	for _, weights := range []string{"f16", "int4g16"} {
		o := emit.Options{Prefill: []int{8}, Verify: 3}
		s := newSubject(t, nil, "@3way context=24", weights, o)
		dir := t.TempDir()
		for i, c := range s.chunks {
			names := []string{}
			path, err := c.Write(context.Background(), dir, func(p emit.Progress) { names = append(names, p.Weight) })
			require.NoError(t, err)
			require.Contains(t, names, "layers."+[]string{"0", "3", "7"}[i]+".mlp.down_proj.weight")
			pkg, err := mlpackage.Open(path)
			require.NoError(t, err)
			defer pkg.Close()
			require.Empty(t, mil.Diff(c.Package.Program, pkg.Program), path)
			s.graphs[i], err = interp.New(pkg.Program, interp.Options{Precision: interp.ANE, Threads: 2, Path: path})
			require.NoError(t, err)
		}
		if weights != "f16" {
			exercise(t, s, o)
		}
	}
}

// hand: functions of a chunk use the same bytes; a second function adds its masks and nothing else.
func TestFunctionsShareWeights(t *testing.T) {
	size := func(o emit.Options) int64 {
		s := newSubject(t, nil, "@2way context=24", "f16", o)
		path, err := s.chunks[0].Write(context.Background(), t.TempDir(), nil)
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(path, "Data", "com.apple.CoreML", "weights", "weight.bin"))
		require.NoError(t, err)
		return info.Size()
	}
	alone, both := size(emit.Options{}), size(emit.Options{Prefill: []int{8}, Window: run.WholeWindow})
	require.Equal(t, (alone+63)/64*64+64+128, both, "a band of [8, 8] fp16 with its metadata, on a boundary of 64 bytes")
}

func TestWriteFolder(t *testing.T) { // hand
	fill := func(name, content string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644) }
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	names := func() []string {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	require.NoError(t, emit.WriteFolder(out, emit.RefuseExisting, fill("model_config.json", "1")))
	err := emit.WriteFolder(out, emit.RefuseExisting, fill("model_config.json", "2"))
	require.ErrorIs(t, err, emit.ErrExists)
	require.ErrorContains(t, err, "holds model_config.json")

	broken := errors.New("broken")
	require.ErrorIs(t, emit.WriteFolder(out, emit.ReplaceExisting, func(dir string) error {
		require.NoError(t, fill("chunk1", "x")(dir))
		return broken
	}), broken)
	text, err := os.ReadFile(filepath.Join(out, "model_config.json"))
	require.NoError(t, err)
	require.Equal(t, "1", string(text), "a failure leaves what was there")
	require.Equal(t, []string{"out"}, names(), "and nothing beside it")

	require.NoError(t, emit.WriteFolder(out, emit.ReplaceExisting, fill("cos_full.npy", "3")))
	_, err = os.Stat(filepath.Join(out, "model_config.json"))
	require.ErrorIs(t, err, os.ErrNotExist, "an output is replaced whole: chunks of another layout would be taken for this one's")
	require.Equal(t, []string{"out"}, names())

	require.NoError(t, fill("notes.txt", "mine")(out))
	require.ErrorContains(t, emit.WriteFolder(out, emit.ReplaceExisting, fill("x", "")), "holds notes.txt, want nothing but chunks")
	require.NoError(t, fill("file", "")(dir))
	require.ErrorIs(t, emit.WriteFolder(filepath.Join(dir, "file"), emit.ReplaceExisting, fill("x", "")), emit.ErrExists)
	require.Error(t, emit.WriteFolder(filepath.Join(dir, "none", "out"), emit.RefuseExisting, fill("x", "")))
	require.True(t, slices.Equal([]string{"file", "out"}, names()))
}
