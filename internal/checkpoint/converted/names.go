package converted

import (
	"regexp"
	"strings"

	"anelab/coreml/mil"
)

// parts are the tensors of a layer as converters write them and as checkpoints do (spec forward.md §3.2).
var parts = map[string]string{
	"self_attn_q_proj":           "self_attn.q_proj.weight",
	"self_attn_k_proj":           "self_attn.k_proj.weight",
	"self_attn_v_proj":           "self_attn.v_proj.weight",
	"self_attn_o_proj":           "self_attn.o_proj.weight",
	"self_attn_q_norm":           "self_attn.q_norm.weight",
	"self_attn_k_norm":           "self_attn.k_norm.weight",
	"mlp_gate_proj":              "mlp.gate_proj.weight",
	"mlp_up_proj":                "mlp.up_proj.weight",
	"mlp_down_proj":              "mlp.down_proj.weight",
	"input_layernorm":            "input_layernorm.weight",
	"post_attention_layernorm":   "post_attention_layernorm.weight",
	"pre_feedforward_layernorm":  "pre_feedforward_layernorm.weight",
	"post_feedforward_layernorm": "post_feedforward_layernorm.weight",
	"per_layer_input_gate":       "per_layer_input_gate.weight",
	"per_layer_projection":       "per_layer_projection.weight",
	"post_per_layer_input_norm":  "post_per_layer_input_norm.weight",
	"layer_scalar":               scalarName,
}

// tops are the tensors outside the layers.
var tops = map[string]string{
	"per_layer_model_projection": modelProjection,
	"per_layer_projection_norm":  "per_layer_projection_norm.weight",
	"norm":                       finalNorm,
	"lm_head":                    headName,
}

const (
	scalarName      = "layer_scalar"
	modelProjection = "per_layer_model_projection.weight"
	finalNorm       = "norm.weight"
	headName        = "lm_head.weight"
)

// Stored names end in what the passes of a converter did to a weight: layers_2_mlp_up_proj_weight_palettized.
var (
	layerName = regexp.MustCompile(`^(?:.*_)?layers_((?:[a-z][a-z0-9]*_)?[0-9]+)_([a-z_]+?)(?:_weight(?:_.*)?|_promoted.*|_to_fp16.*)?$`)
	topName   = regexp.MustCompile(`^([a-z_]+?)_weight(?:_.*)?$`)
)

// ownName is the name that a constant has kept from the checkpoint, or "" for names that a converter has made up:
// "layers.2.mlp.up_proj.weight", with a label in place of the layer, "2" or, where a chunk was made of two, "c3_2".
func ownName(op *mil.Op) string {
	if m := layerName.FindStringSubmatch(op.Name()); m != nil {
		if part, ok := parts[m[2]]; ok {
			return "layers." + m[1] + "." + part
		}
		return ""
	}
	if m := topName.FindStringSubmatch(op.Name()); m != nil {
		return tops[m[1]]
	}
	return ""
}

// split takes "layers.2.mlp.up_proj.weight" apart; label is "" outside the layers.
func split(name string) (label, part string) {
	rest, ok := strings.CutPrefix(name, "layers.")
	if !ok {
		return "", name
	}
	label, part, _ = strings.Cut(rest, ".")
	return label, part
}
