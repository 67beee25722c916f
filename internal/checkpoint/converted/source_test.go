package converted_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// sets are the folders of packages that one converter run has made, below every folder coreml/chunks….
func sets(t *testing.T) []string {
	var folders []string
	for _, index := range shareddata.Cases(t, "coreml/chunks*/*/index.json") {
		folders = append(folders, filepath.Dir(index))
	}
	return folders
}

// open reads the chain of a set, with tables from the checkpoint beside it.
func open(t *testing.T, folder string) (*converted.Source, *checkpoint.Checkpoint) {
	base, err := checkpoint.Open(filepath.Dir(folder))
	require.NoError(t, err)
	t.Cleanup(func() { base.Close() })
	paths, err := filepath.Glob(filepath.Join(folder, "*.mlpackage"))
	require.NoError(t, err)
	slices.Reverse(paths) // the order is found out
	s, err := converted.Open(base.Config, base, paths...)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, base
}

// oracle: the checkpoint that CoreML-LLM's converter was given. Every weight of every fp16 set equals it (bf16 numbers that are
// exact in fp16); every palette of a _w4 set has the checkpoint's shape, 16 values per group of 32 rows, and is near it.
func TestWeightsAreThoseOfTheCheckpoint(t *testing.T) {
	for _, folder := range sets(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			s, base := open(t, folder)
			require.Equal(t, base.Names(), s.Names())
			palettes := 0
			for _, name := range s.Names() {
				want, err := base.Tensor(name)
				require.NoError(t, err)
				got, err := s.Tensor(name)
				require.NoError(t, err, name)
				require.Equal(t, want.Shape, got.Shape, name)
				if m, isPalette := paletteOf(t, s, name, want); isPalette {
					palettes++
					sameRows(t, m, got)
					continue
				}
				x, err := got.Floats()
				require.NoError(t, err)
				y, err := want.Floats()
				require.NoError(t, err)
				require.Equal(t, y, x, name)
			}
			t.Logf("%d weights, %d of them palettes", len(s.Names()), palettes)
			require.Equal(t, strings.HasSuffix(folder, "_w4"), palettes > 0)
		})
	}
}

func paletteOf(t *testing.T, s *converted.Source, name string, want quant.Tensor) (quant.Matrix, bool) {
	if len(want.Shape) != 2 {
		return nil, false
	}
	m, err := s.Matrix(name)
	require.NoError(t, err, name)
	return m, m.Encoding().Palette()
}

// invariant: a palette and the interpreter's own decoding of it are the same numbers.
func sameRows(t *testing.T, m quant.Matrix, decoded quant.Tensor) {
	require.Equal(t, quant.Int4G32, m.Encoding())
	all, err := decoded.Floats()
	require.NoError(t, err)
	row := make([]float32, m.Cols())
	for r := range m.Rows() {
		m.Row(row, r)
		require.Equal(t, all[r*len(row):(r+1)*len(row)], row)
	}
}

// oracle: the chunk borders and the forms that the folder's README and spec forward.md §5.1 state.
func TestChunksAndChoices(t *testing.T) {
	for _, folder := range sets(t) {
		s, _ := open(t, folder)
		require.Equal(t, arith.VNormFiveSteps, s.Choices.Rules.VNorm, folder)
		require.Equal(t, arith.SoftCapMultiplies, s.Choices.Rules.SoftCap, folder)
		require.Equal(t, arith.SoftmaxFiveOps, s.Choices.Rules.Softmax, folder)
		at := 0
		for _, c := range s.Chunks {
			require.Equal(t, at, c.Lo)
			at = c.Hi
		}
		require.Equal(t, s.Config.NumHiddenLayers, at)
	}
}
