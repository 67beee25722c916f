package checkpoint_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/coreml/mlpackage"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/checkpoint/packed"
	"anelab/internal/gemmatest"
	"anelab/quant"
)

// packages writes the chunks of a layout and opens them.
func packages(t *testing.T, layout string) *converted.Source {
	c := gemmatest.Config()
	m, err := chunking.NewModel(c)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	base := gemmatest.New(c, 3)
	chunks, err := emit.Emit(context.Background(), plan, base, emit.Options{})
	require.NoError(t, err)
	var paths []string
	for _, chunk := range chunks {
		paths = append(paths, filepath.Join(t.TempDir(), chunk.Name+".mlpackage"))
		require.NoError(t, mlpackage.Write(context.Background(), paths[len(paths)-1], chunk.Package, nil))
	}
	s, err := converted.Open(c, base, paths...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestPackingPackagesKeepsTheirNumbers(t *testing.T) { // invariant: every weight that a package compresses, and its head, bit for bit
	for _, layout := range []string{"@4way w=int4 context=32", "@2way w=int8 context=32", "@2way w=f16 context=32"} {
		s := packages(t, layout)
		path := filepath.Join(t.TempDir(), "m.anelab")
		o := checkpoint.PackOptions{Config: s.Config, Mode: quant.Uniform, HeadBits: 4, TableBits: 16}
		require.NoError(t, checkpoint.Pack(context.Background(), s, path, o, nil))
		f, err := packed.Open(path)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, s.Names(), f.Names())
		compared := 0
		for _, name := range s.Names() {
			want, err := s.Matrix(name)
			if err != nil || want.Encoding().Bits >= 16 {
				continue
			}
			got, err := f.Matrix(name)
			require.NoError(t, err)
			requireSameRows(t, name, want, got)
			compared++
		}
		want, err := s.Head()
		require.NoError(t, err)
		got, err := f.Matrix(packed.Head)
		require.NoError(t, err)
		requireSameRows(t, "head", want, got)
		require.Equal(t, compared > 0, layout != "@2way w=f16 context=32")
		c, err := checkpoint.Open(path)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func requireSameRows(t *testing.T, name string, want, got quant.Matrix) {
	require.Equal(t, []int{want.Rows(), want.Cols()}, []int{got.Rows(), got.Cols()}, name)
	x, y := make([]float32, want.Cols()), make([]float32, want.Cols())
	for r := range want.Rows() {
		want.Row(x, r)
		got.Row(y, r)
		require.Equal(t, x, y, "%s row %d", name, r)
	}
}
