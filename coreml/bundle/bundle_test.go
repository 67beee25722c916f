package bundle_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/bundle"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/half"
	"anelab/internal/shareddata"
)

// made is a bundle in a temporary folder with tables of a checkpoint and the chunks of a folder.
type made struct {
	dir   string
	model *checkpoint.Checkpoint
	files map[string][]byte
}

// makeBundle writes what a converter writes beside its chunks (spec forward.md §6.1).
func makeBundle(t *testing.T, context int) *made {
	src, err := checkpoint.Open(shareddata.Dir(t, "coreml/chunks"))
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	c := src.Config
	m := &made{dir: t.TempDir(), model: src, files: map[string][]byte{}}
	config, err := json.Marshal(map[string]any{
		"model_name": "tiny", "hidden_size": c.HiddenSize, "num_hidden_layers": c.NumHiddenLayers, "head_dim": c.HeadDim, "global_head_dim": c.GlobalHeadDim,
		"vocab_size": c.VocabSize, "context_length": context, "sliding_window": c.SlidingWindow, "per_layer_dim": c.HiddenSizePerLayer,
		"embed_scale": math.Sqrt(float64(c.HiddenSize)), "per_layer_embed_scale": math.Sqrt(float64(c.HiddenSizePerLayer)), "bos_token_id": 2, "eos_token_id": 1, "quantization": "int4",
	})
	require.NoError(t, err)
	m.files[bundle.ConfigName] = config
	m.table(t, "embed_tokens", "embed_tokens.weight")
	m.table(t, "embed_tokens_per_layer", "embed_tokens_per_layer.weight")
	layers, err := c.Layers()
	require.NoError(t, err)
	for _, l := range []gemma4.Layer{layers[0], layers[4]} {
		m.rope(t, l, context)
	}
	m.write(t)
	return m
}

func (m *made) table(t *testing.T, file, tensor string) {
	w, err := m.model.Tensor(tensor)
	require.NoError(t, err)
	rows, err := w.Floats()
	require.NoError(t, err)
	n, cols := w.Shape[0], w.Shape[1]
	cells := make([]int8, cols)
	for i := range n {
		scale := bundle.QuantizeRow(cells, rows[i*cols:(i+1)*cols])
		m.files[file+"_scales.bin"] = binary.LittleEndian.AppendUint16(m.files[file+"_scales.bin"], scale)
		for _, q := range cells {
			m.files[file+"_q8.bin"] = append(m.files[file+"_q8.bin"], byte(q))
		}
	}
}

// rope writes tables as numpy does, in fp16.
func (m *made) rope(t *testing.T, l gemma4.Layer, rows int) {
	kind := strings.ToLower(l.Kind.String())
	freq := arith.InvFreq(l.Rope.Theta, l.HeadDim, l.Rope.Pairs)
	cos, sin := make([]float32, l.HeadDim), make([]float32, l.HeadDim)
	head := "{'descr': '<f2', 'fortran_order': False, 'shape': (" + itoa(rows) + ", " + itoa(l.HeadDim) + "), }"
	head += strings.Repeat(" ", 117-len(head)) + "\n"
	for name, row := range map[string][]float32{"cos_": cos, "sin_": sin} {
		b := append([]byte("\x93NUMPY\x01\x00v\x00"), head...)
		for pos := range rows {
			arith.NewANE(arith.ANERules{}, 0).RopeTable(cos, sin, pos, freq)
			for _, v := range row {
				b = binary.LittleEndian.AppendUint16(b, half.F32ToF16(v))
			}
		}
		m.files[name+kind+".npy"] = b
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func (m *made) write(t *testing.T) {
	for name, data := range m.files {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), data, 0o644))
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
			b, err := bundle.Open(m.dir, bundle.Options{Precision: interp.ANE})
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
	}
	require.Equal(t, len(prompt), chain.Next())
}

// hand: each fault of a folder is said, with what to do.
func TestFaults(t *testing.T) {
	edit := func(name, old, new string) func(*made) {
		return func(m *made) { m.files[name] = []byte(strings.Replace(string(m.files[name]), old, new, 1)) }
	}
	for name, c := range map[string]struct {
		break_ func(*made)
		want   []string
	}{
		"a table of another vocabulary":  {edit(bundle.ConfigName, `"vocab_size":320`, `"vocab_size":321`), []string{"_q8.bin", "20480 bytes", "want 20544", "another model"}},
		"rotary tables of less context":  {func(m *made) { m.files["cos_full.npy"] = m.files["cos_full.npy"][:10] }, []string{"cos_full.npy", "header"}},
		"chunks of another context":      {edit(bundle.ConfigName, `"context_length":32`, `"context_length":24`), []string{"chunk1", "causal_mask_full", "32 positions", "want 24", "mixed"}},
		"a context beyond rotary tables": {edit(bundle.ConfigName, `"context_length":32`, `"context_length":33`), []string{".npy", "[32 ", "at least 33 rows", "rotary"}},
		"no scale":                       {edit(bundle.ConfigName, `"embed_scale"`, `"embedscale"`), []string{"embed_scale: 0"}},
		"no chunks": {func(m *made) {
			os.Remove(filepath.Join(m.dir, "chunk3.mlpackage"))
			os.Remove(filepath.Join(m.dir, "chunk1.mlpackage"))
		}, []string{"no complete set of chunks"}},
		"a chunk without a token": {func(m *made) { os.Remove(filepath.Join(m.dir, "chunk4.mlpackage")) }, []string{"numbered chunks", "no chunk that gives token_id"}},
		"no table": {func(m *made) {
			os.Remove(filepath.Join(m.dir, "embed_tokens_scales.bin"))
			delete(m.files, "embed_tokens_scales.bin")
		}, []string{"embed_tokens_scales.bin", "copy them"}},
		"not JSON": {edit(bundle.ConfigName, `{`, `[`), []string{bundle.ConfigName}},
	} {
		t.Run(name, func(t *testing.T) {
			m := makeBundle(t, 32)
			m.chunks(t, "4chunk_fp16")
			c.break_(m)
			m.write(t)
			_, err := bundle.Open(m.dir, bundle.Options{})
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// hand: a sequence ends where the context does; nothing shifts silently.
func TestContextEnds(t *testing.T) {
	m := makeBundle(t, 32)
	m.chunks(t, "3chunk_fp16")
	b, err := bundle.Open(m.dir, bundle.Options{Precision: interp.ANE})
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
