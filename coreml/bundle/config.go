package bundle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anelab/gemma4"
	"anelab/internal/format"
)

// ConfigName is the file that makes a folder a bundle.
const ConfigName = "model_config.json"

// Config is model_config.json (spec forward.md §6.2). Reading leaves unknown fields alone: builders add their own.
type Config struct {
	ModelName          string    `json:"model_name"`
	Architecture       string    `json:"architecture"`
	HiddenSize         int       `json:"hidden_size"`
	NumHiddenLayers    int       `json:"num_hidden_layers"`
	NumLayers          int       `json:"num_layers"` // the same number under the name that the loader looks for
	NumKVSharedLayers  int       `json:"num_kv_shared_layers"`
	NumAttentionHeads  int       `json:"num_attention_heads"`
	NumKeyValueHeads   int       `json:"num_key_value_heads"`
	HeadDim            int       `json:"head_dim"`
	GlobalHeadDim      int       `json:"global_head_dim"`
	LayerTypes         []string  `json:"layer_types"` // without them the app takes every fifth layer for a full one
	VocabSize          int       `json:"vocab_size"`
	ContextLength      int       `json:"context_length"`
	SlidingWindow      int       `json:"sliding_window"`
	PerLayerDim        int       `json:"per_layer_dim"`
	EmbedScale         float32   `json:"embed_scale"`                      // √D
	PerLayerEmbedScale float32   `json:"per_layer_embed_scale"`            // √P
	ProjectionScale    float32   `json:"per_layer_model_projection_scale"` // D^−½
	PerLayerInputScale float32   `json:"per_layer_input_scale"`            // 2^−½
	RMSNormEps         float64   `json:"rms_norm_eps"`
	FinalLogitSoftcap  float64   `json:"final_logit_softcapping"`
	BOSTokenID         int       `json:"bos_token_id"`
	EOSTokenID         tokenList `json:"eos_token_id"`
	Quantization       string    `json:"quantization"`
	ComputeUnits       string    `json:"compute_units"`
	TokenizerRepo      string    `json:"tokenizer_repo"`
}

// tokenList is a token or a list of tokens.
type tokenList []int

// UnmarshalJSON accepts 1 and [1, 106].
func (l *tokenList) UnmarshalJSON(b []byte) error {
	var one int
	if json.Unmarshal(b, &one) == nil {
		*l = tokenList{one}
		return nil
	}
	return json.Unmarshal(b, (*[]int)(l))
}

// MarshalJSON writes the first: the app reads a number, and knows the others itself.
func (l tokenList) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("1"), nil
	}
	return json.Marshal(l[0])
}

// turnEnds end an answer whatever the config says: <eos>, <turn|>, and the end token that the runtime of bundles also takes.
var turnEnds = []int{1, 106, 151645}

// Ends are the tokens that end an answer (spec forward.md §6.4).
func (c *Config) Ends() []int { return append(slices.Clone(turnEnds), c.EOSTokenID...) }

// maxSize bounds every size of a config, so that products stay far from overflow.
const maxSize = 1 << 24

// parseConfig reads model_config.json; path is for messages.
func parseConfig(path string, text []byte) (*Config, error) {
	c := new(Config)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"hidden_size", c.HiddenSize}, {"num_hidden_layers", c.NumHiddenLayers}, {"head_dim", c.HeadDim}, {"global_head_dim", c.GlobalHeadDim},
		{"vocab_size", c.VocabSize}, {"context_length", c.ContextLength}, {"sliding_window", c.SlidingWindow}, {"per_layer_dim", c.PerLayerDim},
	} {
		if f.value < 1 || f.value > maxSize {
			return nil, &format.Error{Path: path, Field: f.name, Got: fmt.Sprint(f.value), Want: fmt.Sprintf("1 … %d", maxSize)}
		}
	}
	for name, scale := range map[string]float32{"embed_scale": c.EmbedScale, "per_layer_embed_scale": c.PerLayerEmbedScale} {
		if !(scale > 0) {
			return nil, &format.Error{Path: path, Field: name, Got: fmt.Sprint(scale), Want: "the square root of the width", Fix: "write the config anew with the converter"}
		}
	}
	return c, nil
}

// everyFullLayer is the distance of full layers where a config does not list the types: what apps assume, right for E2B alone.
const everyFullLayer = 5

// The rotary embedding of every Gemma 4 (spec forward.md §1.1); bundles hold tables of it instead.
var gemmaRope = map[string]gemma4.RopeParameters{
	"sliding_attention": {RopeType: "default", RopeTheta: 10_000},
	"full_attention":    {RopeType: "proportional", RopeTheta: 1_000_000, PartialRotaryFactor: 0.25},
}

// Model is the model that the config describes. The widths of the feed-forward parts, which it does not tell, are the caller's: one
// for each layer.
func (c *Config) Model(ffn []int) gemma4.Config {
	m := gemma4.Config{
		HiddenSize: c.HiddenSize, IntermediateSize: ffn, NumHiddenLayers: c.NumHiddenLayers, LayerTypes: c.LayerTypes,
		NumAttentionHeads: c.NumAttentionHeads, NumKeyValueHeads: c.NumKeyValueHeads, HeadDim: c.HeadDim, GlobalHeadDim: c.GlobalHeadDim,
		NumKVSharedLayers: c.NumKVSharedLayers, SlidingWindow: c.SlidingWindow, HiddenSizePerLayer: c.PerLayerDim,
		VocabSize: c.VocabSize, VocabSizePerLayerInput: c.VocabSize, RMSNormEps: c.RMSNormEps, FinalLogitSoftcapping: c.FinalLogitSoftcap,
		RopeParameters: gemmaRope, BOSTokenID: c.BOSTokenID, EOSTokenID: gemma4.IntList(c.EOSTokenID),
	}
	for i := 0; len(c.LayerTypes) == 0 && i < c.NumHiddenLayers; i++ {
		kind := gemma4.Sliding
		if (i+1)%everyFullLayer == 0 {
			kind = gemma4.Full
		}
		m.LayerTypes = append(m.LayerTypes, kind.String()+"_attention")
	}
	return m
}

// Is reports whether path is the folder of a bundle.
func Is(path string) bool {
	_, err := os.Stat(filepath.Join(path, ConfigName))
	return err == nil
}
