package converted_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking/emit"
	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/gemma4"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/format"
	"anelab/internal/gemmatest"
	"anelab/internal/shareddata"
)

// described is a program that has nothing but ports: fp16 tensors, or states.
func described(path string, inputs map[string][]int64, states map[string][]int64) *coreml.Model {
	f := &mil.Function{Name: "main", Body: &mil.Block{}}
	for name, shape := range inputs {
		f.Inputs = append(f.Inputs, mil.Input{Variable: mil.Variable{Name: name, Type: mil.TensorOf(mil.Float16, shape...)}})
	}
	for name, shape := range states {
		f.Inputs = append(f.Inputs, mil.Input{Variable: mil.Variable{Name: name, Type: mil.StateOf(mil.TensorOf(mil.Float16, shape...))}})
	}
	return &coreml.Model{Path: path, Program: &mil.Program{Functions: []*mil.Function{f}}}
}

// hand: mask widths 2048, 2048, 8192, 2048, as an interrupted download leaves them; then a chunk of 8192 positions with a mask of 2048.
func TestCHK01ContextsOfChunksMustAgree(t *testing.T) {
	var chunks []*coreml.Model
	for i, n := range []int64{2048, 2048, 8192, 2048} {
		chunks = append(chunks, described([]string{"chunk1", "chunk2", "chunk3", "chunk4"}[i], map[string][]int64{"causal_mask_full": {1, 1, 1, n}}, nil))
	}
	require.NoError(t, coreml.CheckContexts(0, "", chunks[0], chunks[1], chunks[3]))
	err := coreml.CheckContexts(0, "", chunks...)
	require.ErrorIs(t, err, coreml.ErrContexts)
	require.EqualError(t, err, "chunk3: main/causal_mask_full: 8192 positions, want 2048 as chunk1, main: built for another context; "+
		"take all chunks from one conversion; was a download interrupted?")

	for port, shape := range map[string][]int64{"K_full_in": {1, 1, 8192, 512}, "update_mask": {1, 1, 8192, 1}, "kv14_v": {1, 1, 8192, 512}} {
		err := coreml.CheckContexts(0, "", described("chunk1", map[string][]int64{"causal_mask_full": {1, 1, 1, 2048}, port: shape}, nil))
		require.ErrorIs(t, err, coreml.ErrContexts)
		require.ErrorContains(t, err, "chunk1: main/"+port+": 8192 positions, want 2048 as its causal_mask_full")
	}
}

func TestCHK01MixedFolderIsRefused(t *testing.T) { // invariant
	config := gemmatest.Config()
	base := gemmatest.New(config, 3)
	short := emitted(t, config, base, "@2way w=f16 context=32", emit.Options{})
	long := emitted(t, config, base, "@2way w=f16 context=48", emit.Options{})
	_, err := converted.Open(config, base, short[0], long[1])
	require.ErrorIs(t, err, coreml.ErrContexts)
	require.ErrorContains(t, err, "48 positions, want 32")
}

func TestCHK07StateWidths(t *testing.T) { // hand: widths and contexts of the report; only the last axis counts
	for shape, warned := range map[[4]int64]bool{{2, 1, 8, 256}: false, {2, 1, 8, 270}: true, {2, 1, 8, 288}: false, {2, 1, 500, 512}: false, {2, 1, 512, 500}: true} {
		found := converted.DeviceWarnings(described("chunk1", nil, map[string][]int64{"kv_cache": shape[:]}))
		require.Equal(t, warned, len(found) == 1, "%v: %v", shape, found)
		if warned {
			require.ErrorContains(t, found[0], "chunk1: main/kv_cache: a state of shape")
			require.ErrorContains(t, found[0], "multiple of 32")
		}
	}
}

func TestCHK08ManyStates(t *testing.T) { // hand
	states := map[string][]int64{}
	for i, name := range []string{"a", "b", "c"} {
		states[name] = []int64{1, 1, int64(i + 1), 32}
		found := converted.DeviceWarnings(described("chunk1", nil, states))
		require.Equal(t, i == 2, len(found) == 1, "%d states: %v", i+1, found)
	}
}

// copied is a writable copy of a committed package, under another name.
func copied(t *testing.T, name, as string) string {
	to := filepath.Join(t.TempDir(), as)
	require.NoError(t, os.CopyFS(to, os.DirFS(filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name))))
	return to
}

const modelFolder = "Data/com.apple.CoreML"

func TestCHK11FormIsToldByContent(t *testing.T) { // hand
	t.Run("a package by another name", func(t *testing.T) {
		p, err := coreml.Open(copied(t, "gemma_mlp_block.mlpackage", "renamed.mlmodelc"))
		require.NoError(t, err)
		require.NoError(t, p.Close())
	})
	t.Run("a compiled model without its text", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "x.mlmodelc")
		require.NoError(t, os.Mkdir(folder, 0o755))
		_, err := coreml.Open(folder)
		requireFault(t, err, folder)
	})
	t.Run("no weights", func(t *testing.T) {
		pkg := copied(t, "gemma_mlp_block.mlpackage", "x.mlpackage")
		require.NoError(t, os.RemoveAll(filepath.Join(pkg, modelFolder, "weights")))
		_, err := coreml.Open(pkg)
		require.ErrorIs(t, err, mlpackage.ErrItem)
		e := requireFault(t, err, pkg)
		require.Contains(t, e.Got, "weights/weight.bin")
		require.NotEmpty(t, e.Fix)
	})
	t.Run("weights that end early", func(t *testing.T) {
		pkg := copied(t, "gemma_mlp_block.mlpackage", "x.mlpackage")
		require.NoError(t, os.Truncate(filepath.Join(pkg, modelFolder, "weights", "weight.bin"), 300))
		_, err := coreml.Open(pkg)
		e := requireFault(t, err, pkg)
		require.Contains(t, e.Error(), "weight.bin")
	})
}

func requireFault(t *testing.T, err error, path string) *format.Error {
	var e *format.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Path, path)
	return e
}

// hand: packages alone have no per-layer table; a table of another model has another width.
func TestCHK12TablesBelongToTheGraph(t *testing.T) {
	config := gemmatest.Config()
	base := gemmatest.New(config, 3)
	paths := emitted(t, config, base, "@2way w=f16 context=32", emit.Options{})
	s, err := converted.Open(config, nil, paths...)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Matrix("embed_tokens_per_layer.weight")
	require.ErrorContains(t, err, "embed_tokens_per_layer.weight: no table; packages hold none: give the checkpoint, or the bundle folder with embed_tokens_per_layer_q8.bin")
	require.NotContains(t, s.Names(), "embed_tokens_per_layer.weight")
	require.Contains(t, s.Names(), "embed_tokens.weight", "the head serves")

	fewer := config
	fewer.NumHiddenLayers, fewer.NumKVSharedLayers, fewer.LayerTypes = 5, 0, config.LayerTypes[:5]
	other, err := converted.Open(config, gemmatest.New(fewer, 3), paths...)
	require.NoError(t, err)
	defer other.Close()
	_, err = gemma4.Load(config, other, other.Arithmetic(0), gemma4.Options{})
	require.ErrorContains(t, err, "embed_tokens_per_layer.weight")
	require.ErrorContains(t, err, "do config.json and the weights belong together?")
}

func TestChainsThatAreNone(t *testing.T) { // hand
	config := gemmatest.Config()
	base := gemmatest.New(config, 3)
	paths := emitted(t, config, base, "@3way w=f16 context=32", emit.Options{})
	_, err := converted.Open(config, base, paths[0], paths[2])
	require.ErrorContains(t, err, "num_hidden_layers: ")
	require.ErrorContains(t, err, "want 10; give every chunk of one layout, once")
	_, err = converted.Open(config, base)
	require.ErrorContains(t, err, "packages: none")
	_, err = converted.Open(config, base, filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", "gemma_mlp_block.mlpackage"))
	require.Error(t, err, "a package that is no chunk")
}
