package bundle

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/atomicfile"
	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/internal/npy"
	"anelab/quant"
)

// Contents is what a bundle holds besides its chunks.
type Contents struct {
	Model        gemma4.Config
	Source       gemma4.Source // of the two tables and the projection of per-layer inputs
	Context      int           // that the chunks were built for
	Name         string        // of the model, for the app's lists
	Quantization string        // of the chunks' weights, for the same
	Tokenizer    string        // folder with tokenizer.json and what belongs to it; "" leaves the tokenizer out
}

// minRopePositions is how far rotary tables reach at least: apps use one set for several contexts.
const minRopePositions = 4096

// Write writes the files of spec forward.md §6.1 into an existing folder, each under its name only when it is whole. progress, which
// may be nil, is told of every file.
func Write(ctx context.Context, dir string, c Contents, progress func(file string)) error {
	if c.Model.HiddenSizePerLayer == 0 {
		return &format.Error{Path: c.Source.Path(), Field: "hidden_size_per_layer_input", Got: "0", Want: "a model with per-layer embeddings: E2B or E4B", Fix: "the app that reads bundles cannot run others"}
	}
	layers, err := c.Model.Layers()
	if err != nil {
		return err
	}
	w := &writer{ctx: ctx, dir: dir, Contents: c, layers: layers, progress: progress}
	for _, step := range []func() error{
		func() error { return w.table("embed_tokens", "embed_tokens.weight") },
		func() error { return w.table("embed_tokens_per_layer", "embed_tokens_per_layer.weight") },
		func() error {
			return w.floats("per_layer_projection.bin", "per_layer_model_projection.weight", halfBytes)
		},
		func() error {
			return w.floats("per_layer_norm_weight.bin", "per_layer_projection_norm.weight", singleBytes)
		},
		w.rope, w.config, w.tokenizer,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writer is a bundle under way.
type writer struct {
	Contents
	ctx      context.Context
	dir      string
	layers   []gemma4.Layer
	progress func(file string)
}

// file writes one file.
func (w *writer) file(name string, content func(io.Writer) error) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(w.dir, name)
	f, err := atomicfile.Create(path)
	if err != nil {
		return &format.Error{Path: path, Err: err}
	}
	b := bufio.NewWriterSize(f, 1<<20)
	if err = content(b); err == nil {
		err = b.Flush()
	}
	if err != nil {
		f.Discard()
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := f.Commit(); err != nil {
		return &format.Error{Path: path, Err: err}
	}
	if w.progress != nil {
		w.progress(name)
	}
	return nil
}

// matrix is a tensor of the checkpoint by rows.
func (w *writer) matrix(name string) (quant.Matrix, error) {
	t, err := w.Source.Tensor(name)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) == 1 {
		t.Shape = []int{1, t.Shape[0]}
	}
	return quant.Dense(t)
}

// table writes a table as int8 rows and a scale for each, a row at a time: the larger one has 2.3 GB.
func (w *writer) table(file, tensor string) error {
	m, err := w.matrix(tensor)
	if err != nil {
		return err
	}
	scales := make([]byte, 0, 2*m.Rows())
	err = w.file(file+"_q8.bin", func(out io.Writer) error {
		row, cells, bytes := make([]float32, m.Cols()), make([]int8, m.Cols()), make([]byte, m.Cols())
		for i := range m.Rows() {
			m.Row(row, i)
			scales = binary.LittleEndian.AppendUint16(scales, QuantizeRow(cells, row))
			for j, q := range cells {
				bytes[j] = byte(q)
			}
			if _, err := out.Write(bytes); err != nil {
				return err
			}
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.file(file+"_scales.bin", func(out io.Writer) error { _, err := out.Write(scales); return err })
}

// floats writes a tensor as plain numbers.
func (w *writer) floats(file, tensor string, encode func(b []byte, v float32) []byte) error {
	m, err := w.matrix(tensor)
	if err != nil {
		return err
	}
	return w.file(file, func(out io.Writer) error {
		row, bytes := make([]float32, m.Cols()), []byte(nil)
		for i := range m.Rows() {
			m.Row(row, i)
			bytes = bytes[:0]
			for _, v := range row {
				bytes = encode(bytes, v)
			}
			if _, err := out.Write(bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

func halfBytes(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint16(b, half.F32ToF16(v))
}

func singleBytes(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

// rope writes the rotary tables of both kinds of layers, each value the fp16 nearest to the exact one.
func (w *writer) rope() error {
	done := map[gemma4.Kind]bool{}
	for _, l := range w.layers {
		if done[l.Kind] {
			continue
		}
		done[l.Kind] = true
		if err := w.ropeOf(l); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) ropeOf(l gemma4.Layer) error {
	rows := max(2*w.Context, minRopePositions)
	freq := arith.InvFreq(l.Rope.Theta, l.HeadDim, l.Rope.Pairs)
	a := arith.NewANE(arith.ANERules{}, 1)
	cos, sin := make([]float32, l.HeadDim), make([]float32, l.HeadDim)
	for name, row := range map[string][]float32{"cos_": cos, "sin_": sin} {
		err := w.file(name+l.Kind.String()+".npy", func(out io.Writer) error {
			bytes := npy.Header(quant.F16, rows, l.HeadDim)
			for pos := range rows {
				a.RopeTable(cos, sin, pos, freq)
				for _, v := range row {
					bytes = halfBytes(bytes, v)
				}
			}
			_, err := out.Write(bytes)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// config writes model_config.json last but for the tokenizer: its presence makes the folder a bundle.
func (w *writer) config() error {
	m := w.Model
	d, p := float64(m.HiddenSize), float64(m.HiddenSizePerLayer)
	c := Config{
		ModelName: w.Name, Architecture: "gemma4", HiddenSize: m.HiddenSize, NumHiddenLayers: len(w.layers), NumLayers: len(w.layers), NumKVSharedLayers: m.NumKVSharedLayers,
		NumAttentionHeads: m.NumAttentionHeads, NumKeyValueHeads: m.NumKeyValueHeads, VocabSize: m.VocabSize, ContextLength: w.Context, SlidingWindow: m.SlidingWindow,
		PerLayerDim: m.HiddenSizePerLayer, EmbedScale: float32(math.Sqrt(d)), PerLayerEmbedScale: float32(math.Sqrt(p)),
		ProjectionScale: float32(1 / math.Sqrt(d)), PerLayerInputScale: float32(math.Sqrt2 / 2), RMSNormEps: m.RMSNormEps, FinalLogitSoftcap: m.FinalLogitSoftcapping,
		BOSTokenID: m.BOSTokenID, EOSTokenID: tokenList(m.EOSTokenID), Quantization: w.Quantization, ComputeUnits: "CPU_AND_NE", TokenizerRepo: "google/gemma-4-E2B-it",
	}
	for _, l := range w.layers {
		c.LayerTypes = append(c.LayerTypes, l.Kind.String()+"_attention")
		if l.Kind == gemma4.Full {
			c.GlobalHeadDim = l.HeadDim
		} else {
			c.HeadDim = l.HeadDim
		}
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return w.file(ConfigName, func(out io.Writer) error { _, err := out.Write(append(text, '\n')); return err })
}

// tokenizerFiles are what an app's tokenizer library loads.
var tokenizerFiles = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "config.json", "generation_config.json"}

// tokenizer copies the tokenizer's files that are there.
func (w *writer) tokenizer() error {
	if w.Tokenizer == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "hf_model"), 0o755); err != nil {
		return err
	}
	for _, name := range tokenizerFiles {
		data, err := os.ReadFile(filepath.Join(w.Tokenizer, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := w.file(filepath.Join("hf_model", name), func(out io.Writer) error { _, err := out.Write(data); return err }); err != nil {
			return err
		}
	}
	return nil
}
