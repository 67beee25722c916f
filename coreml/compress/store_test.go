package compress

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

// written compresses a package with n workers and returns its weights file.
func written(t *testing.T, path string, n int) []byte {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	pkg, err := mlpackage.Open(path)
	require.NoError(t, err)
	defer pkg.Close()
	folder := t.TempDir()
	spool, err := NewSpool(folder)
	require.NoError(t, err)
	_, err = Apply(background, pkg.Program, Options{Palette: four, Selection: Selection{MinElements: -1}, Store: spool}, nil)
	require.NoError(t, err)
	out := filepath.Join(folder, "out.mlpackage")
	require.NoError(t, mlpackage.Write(background, out, pkg, nil))
	require.NoError(t, spool.Close())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left beside the package")
	packed, err := os.ReadFile(filepath.Join(out, "Data", "com.apple.CoreML", "weights", "weight.bin"))
	require.NoError(t, err)
	return packed
}

// invariant: what is read back from the file is the program that was in memory.
func TestWrittenPackagesComputeTheSame(t *testing.T) {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", "gemma_mlp_block.mlpackage")
	pkg, err := mlpackage.Open(path)
	require.NoError(t, err)
	defer pkg.Close()
	_, err = Apply(background, pkg.Program, Options{Palette: four, Selection: Selection{MinElements: -1}}, nil)
	require.NoError(t, err)
	want := run(t, pkg.Program, interp.FP16)
	out := filepath.Join(t.TempDir(), "out.mlpackage")
	require.NoError(t, mlpackage.Write(background, out, pkg, nil))
	again, err := mlpackage.Open(out)
	require.NoError(t, err)
	defer again.Close()
	require.Equal(t, want, run(t, again.Program, interp.FP16))
	require.NotEmpty(t, tables(again.Program))
}

func TestSpool(t *testing.T) { // invariant
	s, err := NewSpool(t.TempDir())
	require.NoError(t, err)
	var kept []mil.Data
	parts := [][]byte{{1, 2, 3}, {}, {4, 5, 6, 7, 8}}
	for _, p := range parts {
		d, err := s.Put(p)
		require.NoError(t, err)
		kept = append(kept, d)
	}
	for i, d := range kept {
		got, err := d.Bytes()
		require.NoError(t, err)
		require.Equal(t, parts[i], got)
		var streamed bytes.Buffer
		n, err := d.(io.WriterTo).WriteTo(&streamed)
		require.NoError(t, err)
		require.Equal(t, int64(len(parts[i])), n)
		require.Equal(t, parts[i], append([]byte{}, streamed.Bytes()...))
	}
	name := s.file.Name()
	require.NoError(t, s.Close())
	require.NoFileExists(t, name)
	_, err = kept[0].Bytes()
	require.Error(t, err)
	_, err = NewSpool(filepath.Join(t.TempDir(), "absent"))
	require.Error(t, err)
}
