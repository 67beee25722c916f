package parity_test

import (
	"context"
	"path/filepath"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mlpackage"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/parity"

	"github.com/stretchr/testify/require"
)

// chain opens the packages of a folder that hold the layers between cuts.
func chain(t *testing.T, folder, function string, host *gemma4.Model, names []string, cuts []int) parity.Packages {
	p := parity.Packages{Label: filepath.Base(folder), Model: host}
	for i, name := range names {
		pkg, err := mlpackage.Open(filepath.Join(folder, name+".mlpackage"))
		require.NoError(t, err)
		t.Cleanup(func() { pkg.Close() })
		m, err := interp.New(pkg.Program, interp.Options{Precision: interp.ANE, Path: name})
		require.NoError(t, err)
		p.Chunks = append(p.Chunks, parity.PackageChunk{MIL: parity.MIL{Label: name, Model: m, Function: function}, Lo: cuts[i], Hi: cuts[i+1]})
	}
	return p
}

// oracle: packages that CoreML-LLM's own converter made, run op by op, against the Go model with the choices that converter makes
// (spec forward.md §5.1): what crosses the borders of chunks is the same, bit for bit, for fourteen tokens.
func TestConvertedPackagesAreTheModel(t *testing.T) {
	dir := shareddata.Dir(t, "coreml/chunks")
	src, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer src.Close()
	literal := arith.NewANE(arith.ANERules{SoftCap: arith.SoftCapMultiplies, VNorm: arith.VNormFiveSteps, PLEScale: arith.PLEScaleFolded}, 0)
	model, err := gemma4.Load(src.Config, src, literal, gemma4.Options{})
	require.NoError(t, err)
	four := []int{0, 5, 10, 15, 20}
	for folder, c := range map[string]struct {
		function string
		names    []string
		cuts     []int
	}{
		"4chunk_fp16":   {"", []string{"chunk1", "chunk2", "chunk3", "chunk4"}, four},
		"3chunk_fp16":   {"", []string{"chunk1", "chunk2_3way", "chunk3_3way"}, []int{0, 5, 15, 20}},
		"verify_fp16":   {"decode_q1", []string{"chunk1", "chunk2", "chunk3", "chunk4"}, four},
		"stateful_fp16": {"", []string{"chunk_1", "chunk_2", "chunk_3", "chunk_4"}, four},
	} {
		t.Run(folder, func(t *testing.T) {
			p := chain(t, filepath.Join(dir, folder), c.function, model, c.names, c.cuts)
			steps := parity.Case{Name: "steps", Prompt: []int{2, 105, 17, 300, 44, 9, 250, 77, 131, 5, 210, 88, 61, 7}, Batch: 1}
			r, err := parity.Run(context.Background(), p, parity.Reference{Model: model}, steps, parity.Settings{})
			require.NoError(t, err)
			require.NoError(t, r.Err())
			require.Equal(t, 14*(2+len(c.names)), r.Compared, "embeds, per-layer inputs, a hidden state per chunk")
			require.Empty(t, r.OnlyGot)
		})
	}
}

// hand: a scale that is not folded is the first thing that parts, and it is named with its chunk.
func TestPackagesPartWhereTheRulesDo(t *testing.T) {
	dir := shareddata.Dir(t, "coreml/chunks")
	src, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer src.Close()
	model, err := gemma4.Load(src.Config, src, arith.NewANE(arith.ANERules{}, 0), gemma4.Options{})
	require.NoError(t, err)
	p := chain(t, filepath.Join(dir, "4chunk_fp16"), "", model, []string{"chunk1", "chunk2", "chunk3", "chunk4"}, []int{0, 5, 10, 15, 20})
	one := parity.Case{Name: "one", Prompt: []int{2}}
	r, err := parity.Run(context.Background(), p, parity.Reference{Model: model}, one, parity.Settings{})
	require.NoError(t, err)
	require.Equal(t, "hidden.4 [0,1)", r.First.Label)
	require.Equal(t, "chunk1", r.First.Where)

	_, err = parity.Run(context.Background(), p, parity.Reference{Model: model}, parity.Case{Name: "two", Prompt: []int{2, 3}}, parity.Settings{})
	require.ErrorContains(t, err, "a token at a time")
}
