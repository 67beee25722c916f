package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/quant"
)

// Described is a source that tells shapes without reading weights.
type Described interface {
	Path() string
	Names() []string
	Describe(name string) (quant.Tensor, error)
}

// Check compares the tensors of src, named without prefix, with what config needs: a tensor that is missing, has another
// shape, is no float, or is unknown is an error with its name. KV-shared layers may carry keys and values that nothing reads.
func Check(config gemma4.Config, src Described) error {
	want, err := shapes(config)
	if err != nil {
		return err
	}
	have, spare := map[string]bool{}, carriedAlong(config)
	var unknown []string
	for _, name := range src.Names() {
		have[name] = true
		if want[name] == nil && !spare[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return unknownTensors(src.Path(), unknown, want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !have[name] {
			return &format.Error{Path: src.Path(), Field: name, Got: "no such tensor", Want: "shape " + shapeText(want[name])}
		}
		if err := checkOne(src, name, want[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkOne(src Described, name string, want []int) error {
	t, err := src.Describe(name)
	switch {
	case err != nil:
		return err
	case !slices.Equal(t.Shape, want):
		return &format.Error{Path: src.Path(), Field: name, Got: "shape " + shapeText(t.Shape), Want: shapeText(want), Fix: "config and weights are of two models"}
	case t.DType != quant.F32 && t.DType != quant.F16 && t.DType != quant.BF16:
		return &format.Error{Path: src.Path(), Field: name, Got: "type " + t.DType.String(), Want: "f32, f16 or bf16"}
	}
	return nil
}

func unknownTensors(path string, names []string, want map[string][]int) error {
	e := &format.Error{Path: path, Field: names[0], Got: "unknown tensor", Want: "only what the config needs"}
	if len(names) > 1 {
		e.Got = fmt.Sprintf("unknown tensor (and %d more)", len(names)-1)
	}
	if c := format.Closest(names[0], slices.Sorted(maps.Keys(want))); c != "" {
		e.Fix = "did you mean " + strconv.Quote(c) + "?"
	}
	return e
}

// shapeText writes a shape as other tools do.
func shapeText(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ") }

// shapes lists every tensor the forward pass reads (spec forward.md §3.2, with the sizes of the config in place of E2B's).
func shapes(c gemma4.Config) (map[string][]int, error) {
	layers, err := c.Layers()
	if err != nil {
		return nil, err
	}
	m := map[string][]int{
		embedding:     {c.VocabSize, c.HiddenSize},
		"norm.weight": {c.HiddenSize},
	}
	if p := c.HiddenSizePerLayer; p > 0 {
		m["embed_tokens_per_layer.weight"] = []int{c.VocabSizePerLayerInput, len(layers) * p}
		m["per_layer_model_projection.weight"] = []int{len(layers) * p, c.HiddenSize}
		m["per_layer_projection_norm.weight"] = []int{p}
	}
	for _, l := range layers {
		for name, shape := range layerShapes(c, l) {
			m[layerPrefix(l.Index)+name] = shape
		}
	}
	return m, nil
}

func layerPrefix(i int) string { return "layers." + strconv.Itoa(i) + "." }

// layerShapes lists the tensors of one layer, named within it.
func layerShapes(c gemma4.Config, l gemma4.Layer) map[string][]int {
	d, q, kv := c.HiddenSize, l.Heads*l.HeadDim, l.KVWidth()
	m := map[string][]int{
		"input_layernorm.weight":            {d},
		"post_attention_layernorm.weight":   {d},
		"pre_feedforward_layernorm.weight":  {d},
		"post_feedforward_layernorm.weight": {d},
		"layer_scalar":                      {1},
		"self_attn.q_proj.weight":           {q, d},
		"self_attn.q_norm.weight":           {l.HeadDim},
		"self_attn.o_proj.weight":           {d, q},
		"mlp.gate_proj.weight":              {l.FFN, d},
		"mlp.up_proj.weight":                {l.FFN, d},
		"mlp.down_proj.weight":              {d, l.FFN},
	}
	if l.OwnsKV() {
		m["self_attn.k_proj.weight"] = []int{kv, d}
		m["self_attn.k_norm.weight"] = []int{l.HeadDim}
		if !l.KEqV {
			m["self_attn.v_proj.weight"] = []int{kv, d}
		}
	}
	if p := c.HiddenSizePerLayer; p > 0 {
		m["per_layer_input_gate.weight"] = []int{p, d}
		m["per_layer_projection.weight"] = []int{d, p}
		m["post_per_layer_input_norm.weight"] = []int{d}
	}
	return m
}

// carriedAlong lists the keys and values of KV-shared layers: published checkpoints hold them for every layer, saves of
// transformers leave them out, and nothing reads them (spec forward.md §3.3).
func carriedAlong(c gemma4.Config) map[string]bool {
	names := map[string]bool{}
	for i := c.NumHiddenLayers - c.NumKVSharedLayers; i < c.NumHiddenLayers; i++ {
		for _, part := range []string{"k_proj", "v_proj", "k_norm", "v_norm"} {
			names[layerPrefix(i)+"self_attn."+part+".weight"] = true
		}
	}
	return names
}
