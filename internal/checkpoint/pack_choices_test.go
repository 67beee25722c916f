package checkpoint_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/checkpoint/packed"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// choicesOf are what a file of these packages notes.
func choicesOf(s *converted.Source) packed.Choices {
	c := packed.Choices{Rules: s.Choices.Rules}
	if s.Choices.Folded {
		c.Projection = packed.ProjectionScaled
	}
	return c
}

// logits of a prompt past the window wrap and a step.
func logits(t *testing.T, c gemma4.Config, src gemma4.Source, a arith.Arithmetic) []float32 {
	t.Helper()
	m, err := gemma4.Load(c, src, a, gemma4.Options{})
	require.NoError(t, err)
	s, err := m.NewState(24)
	require.NoError(t, err)
	var all []float32
	for _, tokens := range [][]int{{2, 17, 250, 33, 4, 99, 101, 7, 8, 23, 42, 11, 5, 88, 61, 19, 3}, {5}} {
		l, err := s.Prefill(context.Background(), tokens)
		require.NoError(t, err)
		all = append(all, l...)
	}
	return all
}

// invariant: the model of a file packed from another converter's packages is the model of the packages, bit for bit, folded scale and all.
func TestPackedPackagesComputeWhatThePackagesDo(t *testing.T) {
	folded := 0
	for _, index := range shareddata.Cases(t, "coreml/chunks*/*_w4/index.json") {
		folder := filepath.Dir(index)
		base, err := checkpoint.Open(filepath.Dir(folder))
		require.NoError(t, err)
		defer base.Close()
		paths, err := filepath.Glob(filepath.Join(folder, "*.mlpackage"))
		require.NoError(t, err)
		s, err := converted.Open(base.Config, base, paths...)
		require.NoError(t, err)
		defer s.Close()
		path := filepath.Join(t.TempDir(), "m.anelab")
		o := checkpoint.PackOptions{Config: s.Config, Mode: quant.Uniform, HeadBits: 16, TableBits: 16, Choices: choicesOf(s)}
		require.NoError(t, checkpoint.Pack(context.Background(), s, path, o, nil))
		p, err := checkpoint.Open(path)
		require.NoError(t, err)
		defer p.Close()
		require.Equal(t, o.Choices, p.Choices(), folder)
		a, err := p.Arithmetic("ane", 2)
		require.NoError(t, err)
		want, got := logits(t, s.Config, s, s.Arithmetic(2)), logits(t, p.Config, p, a)
		for i := range want {
			if want[i] != got[i] {
				require.Equal(t, want[i], got[i], "%s: logit %d", folder, i)
			}
		}
		if s.Choices.Folded {
			folded++
			forgotten := checkpoint.PackOptions{Config: s.Config, Mode: quant.Uniform, HeadBits: 16, TableBits: 16}
			require.NoError(t, checkpoint.Pack(context.Background(), s, path+".plain", forgotten, nil))
			plain, err := checkpoint.Open(path + ".plain")
			require.NoError(t, err)
			defer plain.Close()
			require.NotEqual(t, want, logits(t, plain.Config, plain, a), "the choice matters")
		}
		t.Logf("%s: %v", strings.TrimPrefix(folder, filepath.Dir(filepath.Dir(folder))), o.Choices)
	}
	t.Logf("%d sets with a folded scale", folded)
}

func TestPackedModelsTakeTheirOwnRules(t *testing.T) { // hand: only ane has rules, and only a packed file brings some
	src, err := checkpoint.Open("formula:e2b-full")
	require.NoError(t, err)
	defer src.Close()
	require.Zero(t, src.Choices())
	for _, mode := range arith.Modes {
		a, err := src.Arithmetic(mode, 1)
		require.NoError(t, err)
		require.Equal(t, mode, a.Name())
	}
	_, err = src.Arithmetic("f23", 1)
	require.ErrorContains(t, err, "f32")
}
