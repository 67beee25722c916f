package gemma4

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"anelab/internal/format"
)

// Config mirrors the text part of a published config.json, field for field. Derived facts live in [Config.Layers].
type Config struct {
	HiddenSize             int                       `json:"hidden_size"`
	IntermediateSize       IntList                   `json:"intermediate_size"` // one width, or one per layer
	NumHiddenLayers        int                       `json:"num_hidden_layers"`
	LayerTypes             []string                  `json:"layer_types"`
	NumAttentionHeads      int                       `json:"num_attention_heads"`
	NumKeyValueHeads       int                       `json:"num_key_value_heads"`
	NumGlobalKVHeads       int                       `json:"num_global_key_value_heads"` // honoured only with AttentionKEqV
	HeadDim                int                       `json:"head_dim"`
	GlobalHeadDim          int                       `json:"global_head_dim"` // head width of full layers in older configs
	PerLayerConfig         map[string]LayerOverrides `json:"per_layer_config"`
	AttentionKEqV          bool                      `json:"attention_k_eq_v"` // full layers: V is the normed raw key projection
	NumKVSharedLayers      int                       `json:"num_kv_shared_layers"`
	SlidingWindow          int                       `json:"sliding_window"`
	UseDoubleWideMLP       bool                      `json:"use_double_wide_mlp"` // KV-shared layers have twice the FFN width
	HiddenSizePerLayer     int                       `json:"hidden_size_per_layer_input"`
	VocabSize              int                       `json:"vocab_size"`
	VocabSizePerLayerInput int                       `json:"vocab_size_per_layer_input"`
	RMSNormEps             float64                   `json:"rms_norm_eps"`
	FinalLogitSoftcapping  float64                   `json:"final_logit_softcapping"` // 0 = none
	RopeParameters         map[string]RopeParameters `json:"rope_parameters"`
	MaxPositionEmbeddings  int                       `json:"max_position_embeddings"`
	BOSTokenID             int                       `json:"bos_token_id"`
	EOSTokenID             IntList                   `json:"eos_token_id"`
	PadTokenID             int                       `json:"pad_token_id"`
	DType                  string                    `json:"dtype"` // of the checkpoint; informative
}

// LayerOverrides is one entry of per_layer_config, the form transformers 5.24 saves.
type LayerOverrides struct {
	HeadDim          int `json:"head_dim"`
	NumKeyValueHeads int `json:"num_key_value_heads"`
}

// RopeParameters describes the rotary embedding of one layer type.
type RopeParameters struct {
	RopeType            string  `json:"rope_type"` // "default" or "proportional"
	RopeTheta           float64 `json:"rope_theta"`
	PartialRotaryFactor float64 `json:"partial_rotary_factor"` // proportional: share of pairs that rotate
}

// IntList is a JSON number or a list of numbers.
type IntList []int

// UnmarshalJSON accepts 8192 and [8192, 4096].
func (l *IntList) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var many []int
		if err := json.Unmarshal(b, &many); err != nil {
			return err
		}
		if len(many) == 0 {
			return fmt.Errorf("empty list")
		}
		*l = many
		return nil
	}
	var one int
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*l = IntList{one}
	return nil
}

// requiredFields have no safe default: a config without them describes another model (the library's class defaults
// describe none that was ever released).
var requiredFields = []string{
	"hidden_size", "intermediate_size", "num_hidden_layers", "layer_types", "num_attention_heads", "num_key_value_heads",
	"head_dim", "attention_k_eq_v", "num_kv_shared_layers", "sliding_window", "use_double_wide_mlp", "vocab_size", "rms_norm_eps",
	"final_logit_softcapping", "rope_parameters", "hidden_size_per_layer_input",
}

// nullMeansAbsent are required fields that a model without the feature may leave out or set to null.
var nullMeansAbsent = []string{"num_kv_shared_layers", "use_double_wide_mlp", "hidden_size_per_layer_input",
	"final_logit_softcapping", "attention_k_eq_v"}

// ignoredFields matter to training, generation or the other modalities, not to the text forward pass.
var ignoredFields = []string{
	"architectures", "attention_dropout", "initializer_range", "use_cache", "transformers_version", "model_type", "torch_dtype",
	"moe_intermediate_size", "num_experts", "top_k_experts", "use_bidirectional_attention", "_name_or_path", "id2label", "label2id",
	"problem_type", "return_dict", "output_hidden_states", "output_attentions", "chunk_size_feed_forward", "is_encoder_decoder",
	"_attn_implementation", "_attn_implementation_autoset", "cache_implementation", "unsloth_fixed", "unsloth_version",
}

// fixedFields are features this build has exactly one answer for.
var fixedFields = []struct {
	name    string
	allowed []string // JSON texts
	fix     string
}{
	{"enable_moe_block", []string{"false", "null"}, "mixture-of-experts models (26B-A4B) are not supported"},
	{"attention_bias", []string{"false", "null"}, "projection biases are not supported"},
	{"hidden_activation", []string{`"gelu_pytorch_tanh"`}, "only the tanh form of GELU is supported"},
	{"tie_word_embeddings", []string{"true", "null"}, "a separate lm_head is not supported"},
	{"quantization_config", []string{"null"}, "load the unquantised checkpoint"},
	{"rope_scaling", []string{"null"}, "Gemma 4 scales no RoPE; is this a Gemma 3 config?"},
	{"query_pre_attn_scalar", []string{"null"}, "Gemma 4 has attention scale 1.0; is this a Gemma 3 config?"},
	{"attn_logit_softcapping", []string{"null"}, "Gemma 4 has no attention soft-cap; is this a Gemma 2 config?"},
}

// ParseConfig reads config.json in any published form: flat with per_layer_config, flat with global_head_dim, or nested
// under text_config. path is used in errors only. What the forward pass cannot honour is refused here, by name.
func ParseConfig(path string, data []byte) (Config, error) {
	raw, err := textSection(path, data)
	if err != nil {
		return Config{}, err
	}
	for _, check := range []func(string, map[string]json.RawMessage) error{checkFamily, checkFixed, checkRequired, checkUnknown} {
		if err := check(path, raw); err != nil {
			return Config{}, err
		}
	}
	var c Config
	if err := decodeFields(path, raw, &c); err != nil {
		return Config{}, err
	}
	if _, err := c.Layers(); err != nil {
		return Config{}, configError(path, err)
	}
	return c, nil
}

func configError(path string, err error) error {
	if e, ok := err.(*format.Error); ok {
		e.Path = path
		return e
	}
	return &format.Error{Path: path, Err: err}
}

// textSection returns the object that holds the text fields.
func textSection(path string, data []byte) (map[string]json.RawMessage, error) {
	var raw map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&raw); err != nil {
		return nil, &format.Error{Path: path, Got: "no JSON object", Err: err, Fix: "is this a config.json?"}
	}
	if raw == nil {
		return nil, &format.Error{Path: path, Got: "null", Want: "a JSON object"}
	}
	nested, ok := raw["text_config"]
	if !ok {
		return raw, nil
	}
	var text map[string]json.RawMessage
	if err := json.Unmarshal(nested, &text); err != nil || text == nil {
		return nil, &format.Error{Path: path, Field: "text_config", Got: clip(nested), Want: "an object", Err: err}
	}
	return text, nil
}

func checkFamily(path string, raw map[string]json.RawMessage) error {
	var kind string
	_ = json.Unmarshal(raw["model_type"], &kind) // absent or of another type: kind stays empty and is refused
	if kind == "gemma4_text" || kind == "gemma4" {
		return nil
	}
	return &format.Error{Path: path, Field: "model_type", Got: strconv.Quote(kind), Want: `"gemma4_text"`,
		Fix: "other model families have other norms, scales and RoPE"}
}

func checkFixed(path string, raw map[string]json.RawMessage) error {
	for _, f := range fixedFields {
		v, ok := raw[f.name]
		if ok && !slices.Contains(f.allowed, string(bytes.TrimSpace(v))) {
			return &format.Error{Path: path, Field: f.name, Got: clip(v), Want: strings.Join(f.allowed, " or "), Fix: f.fix}
		}
	}
	if _, ok := raw["hidden_activation"]; !ok {
		return &format.Error{Path: path, Field: "hidden_activation", Got: "nothing", Want: `"gelu_pytorch_tanh"`}
	}
	return nil
}

func checkRequired(path string, raw map[string]json.RawMessage) error {
	for _, name := range requiredFields {
		v, ok := raw[name]
		null := ok && string(bytes.TrimSpace(v)) == "null"
		if (!ok || null) && !slices.Contains(nullMeansAbsent, name) {
			return &format.Error{Path: path, Field: name, Got: "nothing", Want: "a value",
				Fix: "library defaults describe no released model; take config.json from the model's repository"}
		}
	}
	return nil
}

// checkUnknown refuses a field it does not know if it is set to anything: it may change the model.
func checkUnknown(path string, raw map[string]json.RawMessage) error {
	known := append(fieldNames(), ignoredFields...)
	for _, f := range fixedFields {
		known = append(known, f.name)
	}
	names := make([]string, 0, len(raw))
	for name := range raw {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		switch v := string(bytes.TrimSpace(raw[name])); {
		case slices.Contains(known, name), v == "null", v == "false", v == "{}", v == "[]":
		default:
			fix := "this build does not know what it changes"
			if c := format.Closest(name, known); c != "" {
				fix = "did you mean " + strconv.Quote(c) + "?"
			}
			return &format.Error{Path: path, Field: name, Got: "unknown field set to " + clip(raw[name]), Fix: fix}
		}
	}
	return nil
}

// clip shortens a JSON text for a message.
func clip(b []byte) string {
	const most = 60
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
