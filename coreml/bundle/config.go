package bundle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anelab/internal/format"
)

// ConfigName is the file that makes a folder a bundle.
const ConfigName = "model_config.json"

// Config is the part of model_config.json that running needs (spec forward.md §6.2). Unknown fields are left alone: builders add
// their own.
type Config struct {
	ModelName          string    `json:"model_name"`
	HiddenSize         int       `json:"hidden_size"`
	NumHiddenLayers    int       `json:"num_hidden_layers"`
	HeadDim            int       `json:"head_dim"`
	GlobalHeadDim      int       `json:"global_head_dim"`
	VocabSize          int       `json:"vocab_size"`
	ContextLength      int       `json:"context_length"`
	SlidingWindow      int       `json:"sliding_window"`
	PerLayerDim        int       `json:"per_layer_dim"`
	EmbedScale         float32   `json:"embed_scale"`           // √D
	PerLayerEmbedScale float32   `json:"per_layer_embed_scale"` // √P
	BOSTokenID         int       `json:"bos_token_id"`
	EOSTokenID         tokenList `json:"eos_token_id"`
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

// turnEnds end an answer whatever the config says: <eos>, <turn|>, and the end token that the runtime of bundles also takes.
var turnEnds = []int{1, 106, 151645}

// Ends reports whether a token ends an answer (spec forward.md §6.4).
func (c *Config) Ends(token int) bool {
	return slices.Contains(turnEnds, token) || slices.Contains(c.EOSTokenID, token)
}

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

// Is reports whether path is the folder of a bundle.
func Is(path string) bool {
	_, err := os.Stat(filepath.Join(path, ConfigName))
	return err == nil
}
