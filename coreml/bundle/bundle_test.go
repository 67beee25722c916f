package bundle_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/bundle"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/half"
	"anelab/internal/shareddata"
	"anelab/parity"
)

// made is a bundle in a temporary folder.
type made struct {
	dir   string
	model *checkpoint.Checkpoint
}

// makeBundle writes the files that lie beside the chunks of the shared data.
func makeBundle(t *testing.T, positions int) *made {
	src, err := checkpoint.Open(shareddata.Dir(t, "coreml/chunks"))
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	m := &made{dir: t.TempDir(), model: src}
	c := bundle.Contents{Model: src.Config, Source: src, Context: positions, Name: "tiny", Quantization: "int4"}
	require.NoError(t, bundle.Write(context.Background(), m.dir, c, nil))
	return m
}

// edit replaces a text in a file of the bundle.
func (m *made) edit(t *testing.T, name, old, new string) {
	path := filepath.Join(m.dir, name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
}

// truncate cuts a file of the bundle.
func (m *made) truncate(t *testing.T, name string, size int64) {
	require.NoError(t, os.Truncate(filepath.Join(m.dir, name), size))
}

func (m *made) remove(t *testing.T, names ...string) {
	for _, name := range names {
		require.NoError(t, os.Remove(filepath.Join(m.dir, name)))
	}
}

// chunks links the packages of a folder of the shared data into the bundle.
func (m *made) chunks(t *testing.T, folder string) (paths []string) {
	found, err := filepath.Glob(filepath.Join(shareddata.Dir(t, "coreml/chunks"), folder, "*.mlpackage"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, path := range found {
		abs, err := filepath.Abs(path)
		require.NoError(t, err)
		paths = append(paths, filepath.Join(m.dir, filepath.Base(path)))
		require.NoError(t, os.Symlink(abs, paths[len(paths)-1]))
	}
	return paths
}

var prompt = []int{2, 105, 17, 300, 44, 9, 250, 77, 131, 5, 210, 88, 61, 7}

// oracle: a bundle of chunks that CoreML-LLM's own converter made chooses, token by token and past the window, what the Go model
// chooses that reads the same int8 tables, has the packages' weights, and rounds as that converter writes its ops.
func TestBundleIsTheModel(t *testing.T) {
	for folder, layout := range map[string]string{
		"4chunk_fp16": "4way", "3chunk_fp16": "3way", "verify_fp16": "4way", "stateful_fp16": "4way with states",
		"4chunk_w4": "4way", "3chunk_w4": "3way", "stateful_w4": "4way with states",
	} {
		t.Run(folder, func(t *testing.T) {
			m := makeBundle(t, 32)
			paths := m.chunks(t, folder)
			b, err := bundle.Open(m.dir, bundle.Options{Precision: interp.ANE, Threads: 1})
			require.NoError(t, err)
			defer b.Close()
			require.Equal(t, layout, b.Layout)
			weights, err := converted.Open(m.model.Config, m.model, paths...)
			require.NoError(t, err)
			defer weights.Close()
			model, err := gemma4.Load(m.model.Config, weights, weights.Arithmetic(1), gemma4.Options{Rows: b.Tables})
			require.NoError(t, err)
			sameTokens(t, b, model)
		})
	}
}

// same is equality.
var same parity.Tolerance

// sameTokens feeds a prompt to both.
func sameTokens(t *testing.T, b *bundle.Bundle, model *gemma4.Model) {
	state, err := model.NewState(32)
	require.NoError(t, err)
	chain, err := b.NewChain()
	require.NoError(t, err)
	for _, token := range prompt {
		logits, err := state.Step(context.Background(), token)
		require.NoError(t, err)
		got, err := chain.Step(context.Background(), token)
		require.NoError(t, err)
		want := gemma4.Argmax(logits)
		require.Equal(t, want, got.ID)
		require.Equal(t, logits[want], got.Logit)
		require.NoError(t, same.Check(parity.Compare(chain.Logits(), logits, parity.Options{})))
	}
	require.Equal(t, len(prompt), chain.Next())
}

// hand: each fault of a folder is said, with what to do.
func TestFaults(t *testing.T) {
	edit := func(name, old, new string) func(*testing.T, *made) {
		return func(t *testing.T, m *made) { m.edit(t, name, old, new) }
	}
	for name, c := range map[string]struct {
		damage func(*testing.T, *made)
		want   []string
	}{
		"a table of another vocabulary":  {edit(bundle.ConfigName, `"vocab_size": 320`, `"vocab_size": 321`), []string{"_q8.bin", "20480 bytes", "want 20544", "another model"}},
		"a rotary table cut short":       {func(t *testing.T, m *made) { m.truncate(t, "cos_full.npy", 1000) }, []string{"cos_full.npy", "872 bytes"}},
		"chunks of another context":      {edit(bundle.ConfigName, `"context_length": 32`, `"context_length": 24`), []string{"chunk1", "causal_mask_full", "32 positions", "want 24 as model_config.json", "interrupted"}},
		"a context beyond rotary tables": {edit(bundle.ConfigName, `"context_length": 32`, `"context_length": 4097`), []string{".npy", "[4096 ", "at least 4097 rows", "rotary"}},
		"no scale":                       {edit(bundle.ConfigName, `"embed_scale"`, `"embedscale"`), []string{"embed_scale: 0"}},
		"no chunks":                      {func(t *testing.T, m *made) { m.remove(t, "chunk3.mlpackage", "chunk1.mlpackage") }, []string{"no complete set of chunks"}},
		"a chunk without a token":        {func(t *testing.T, m *made) { m.remove(t, "chunk4.mlpackage") }, []string{"numbered chunks", "no chunk that gives token_id"}},
		"no table":                       {func(t *testing.T, m *made) { m.remove(t, "embed_tokens_scales.bin") }, []string{"embed_tokens_scales.bin", "copy them"}},
		"not JSON":                       {edit(bundle.ConfigName, `{`, `[`), []string{bundle.ConfigName}},
	} {
		t.Run(name, func(t *testing.T) {
			m := makeBundle(t, 32)
			m.chunks(t, "4chunk_fp16")
			c.damage(t, m)
			_, err := bundle.Open(m.dir, bundle.Options{})
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// hand: file by file what spec forward.md §6.1 lists, for a model of other sizes.
func TestWrite(t *testing.T) {
	src, err := checkpoint.Open("../../testdata/golden/tiny-e2b/bf16")
	require.NoError(t, err)
	defer src.Close()
	c, dir := src.Config, t.TempDir()
	var files []string
	contents := bundle.Contents{Model: c, Source: src, Context: 48}
	require.NoError(t, bundle.Write(context.Background(), dir, contents, func(file string) { files = append(files, file) }))
	require.Equal(t, bundle.ConfigName, files[len(files)-1])
	layers, err := c.Layers()
	require.NoError(t, err)
	all, v := c.HiddenSizePerLayer*len(layers), c.VocabSize
	for name, size := range map[string]int{
		"embed_tokens_q8.bin": v * c.HiddenSize, "embed_tokens_scales.bin": 2 * v, "embed_tokens_per_layer_q8.bin": v * all, "embed_tokens_per_layer_scales.bin": 2 * v,
		"per_layer_projection.bin": 2 * all * c.HiddenSize, "per_layer_norm_weight.bin": 4 * c.HiddenSizePerLayer, "cos_sliding.npy": 128 + 2*4096*layers[0].HeadDim,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, size, info.Size(), name)
	}
	_, err = bundle.Open(dir, bundle.Options{})
	require.ErrorContains(t, err, "no complete set of chunks", "tables and config are read back")

	stopped, stop := context.WithCancel(context.Background())
	stop()
	require.ErrorIs(t, bundle.Write(stopped, dir, contents, nil), context.Canceled)
}

// hand: a sequence ends where the context does; nothing shifts silently.
func TestContextEnds(t *testing.T) {
	m := makeBundle(t, 32)
	m.chunks(t, "3chunk_fp16")
	b, err := bundle.Open(m.dir, bundle.Options{Precision: interp.ANE, Threads: 1})
	require.NoError(t, err)
	defer b.Close()
	chain, err := b.NewChain()
	require.NoError(t, err)
	n := 0
	for _, err = range chain.Generate(context.Background(), prompt, 100) {
		if err != nil {
			break
		}
		n++
	}
	require.ErrorContains(t, err, "at most 32 positions")
	require.Equal(t, 32-len(prompt)+1, n)
}

// hand: (0, 127, -64) / 127 · peak, and halves away.
func TestQuantizeRow(t *testing.T) {
	cells := make([]int8, 4)
	require.Equal(t, half.F32ToF16(2), bundle.QuantizeRow(cells, []float32{0, 2, -1, 0.5}))
	require.Equal(t, []int8{0, 127, -64, 32}, cells) // -63.5 and 31.75
}
