package checkpoint

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/parity"
	"anelab/quant"
)

// logits runs a prompt past the window wrap and a step.
func logits(t *testing.T, c gemma4.Config, src gemma4.Source, mode string) []float32 {
	t.Helper()
	a, err := arith.New(mode, 2)
	require.NoError(t, err)
	m, err := gemma4.Load(c, src, a, gemma4.Options{})
	require.NoError(t, err)
	s, err := m.NewState(40)
	require.NoError(t, err)
	var all []float32
	for _, tokens := range [][]int{{2, 17, 250, 33, 4, 99, 101, 7, 8}, {5}} {
		l, err := s.Prefill(context.Background(), tokens)
		require.NoError(t, err)
		all = append(all, l...)
	}
	return all
}

func TestPackedModelComputesWhatItsPalettesSay(t *testing.T) { // invariant: packed = the same palettes multiplied row by row
	src, err := OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	for _, o := range []PackOptions{{Config: src.Config, Mode: quant.Uniform, HeadBits: 4, TableBits: 16}, {Config: src.Config, Mode: quant.KMeans, HeadBits: 8, TableBits: 8}, {Config: src.Config, Mode: quant.KMeans, HeadBits: 16, TableBits: 8}} {
		path := filepath.Join(t.TempDir(), "tiny.anelab")
		var seen int
		require.NoError(t, Pack(context.Background(), src, path, o, func(done, total int) { seen = done }))
		require.Equal(t, len(src.Names()), seen)
		p, err := Open(path)
		require.NoError(t, err)
		defer p.Close()
		require.Equal(t, src.Names(), p.Names())
		for _, mode := range []string{"f32", "ane"} {
			got, want := logits(t, p.Config, p, mode), logits(t, p.Config, unpacked{p}, mode)
			if mode == "ane" {
				require.Equal(t, want, got, "%+v", o)
				continue
			}
			d := parity.Compare(got, want, parity.Options{RowLen: src.Config.VocabSize})
			require.NoError(t, parity.Tolerance{PeakRel: 1e-4}.Check(d), "%+v", o)
		}
	}
}

func TestPackRefuses(t *testing.T) {
	src, err := OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	require.ErrorContains(t, Pack(context.Background(), src, "x", PackOptions{Config: src.Config, HeadBits: 5, TableBits: 8}, nil), "5 for the head")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	require.ErrorIs(t, Pack(ctx, src, filepath.Join(dir, "x"), PackOptions{Config: src.Config, Mode: quant.Uniform, HeadBits: 4, TableBits: 8}, nil), context.Canceled)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// unpacked gives the palettes of a packed model as plain matrices, so that arithmetic reads them row by row.
type unpacked struct{ *Checkpoint }

func (u unpacked) Matrix(name string) (quant.Matrix, error) { return plain(u.Checkpoint.Matrix(name)) }

func (u unpacked) Head() (quant.Matrix, error) { return plain(u.Checkpoint.Head()) }

// rows hides what a matrix is made of.
type rows struct{ quant.Matrix }

func plain(m quant.Matrix, err error) (quant.Matrix, error) {
	if _, ok := m.(*quant.Packed); ok {
		return rows{m}, err
	}
	return m, err
}
