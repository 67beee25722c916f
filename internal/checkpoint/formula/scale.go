package formula

import (
	"math"
	"strings"
)

// scale is the range c ± a of a tensor's weights; both are dyadic.
type scale struct{ c, a float64 }

// scales holds the tensors with one range for every shape, by the last parts of their names.
var scales = []struct {
	suffix string
	scale
}{
	{"embed_tokens.weight", scale{0, 9.0 / 256}},
	{"embed_tokens_per_layer.weight", scale{0, 111.0 / 1024}},
	{"per_layer_model_projection.weight", scale{0, 181.0 / 4096}},
	{"per_layer_projection_norm.weight", scale{1, 0.5}},
	{"layer_scalar", scale{115.0 / 128, 38.0 / 128}},
	{"self_attn.q_norm.weight", scale{3.0 / 8, 1.0 / 8}},
	{"self_attn.k_norm.weight", scale{3.0 / 8, 1.0 / 8}},
	{"input_layernorm.weight", scale{1, 0.5}},
	{"post_attention_layernorm.weight", scale{1, 0.5}},
	{"pre_feedforward_layernorm.weight", scale{1, 0.5}},
	{"post_feedforward_layernorm.weight", scale{1, 0.5}},
	{"post_per_layer_input_norm.weight", scale{1, 0.5}},
	{"norm.weight", scale{6, 2}},
	{"self_attn.q_proj.weight", scale{0, 181.0 / 4096}},
	{"self_attn.k_proj.weight", scale{0, 181.0 / 4096}},
	{"self_attn.v_proj.weight", scale{0, 181.0 / 4096}},
	{"mlp.gate_proj.weight", scale{0, 181.0 / 4096}},
	{"mlp.up_proj.weight", scale{0, 181.0 / 4096}},
	{"per_layer_input_gate.weight", scale{0, 181.0 / 4096}},
	{"per_layer_projection.weight", scale{0, 111.0 / 1024}},
}

// scaleOf returns the range of a tensor.
func scaleOf(name string, shape []int) (scale, bool) {
	for _, suffix := range []string{"self_attn.o_proj.weight", "mlp.down_proj.weight"} {
		if endsIn(name, suffix) && len(shape) == 2 {
			return byColumns(shape[1]), true
		}
	}
	for _, s := range scales {
		if endsIn(name, s.suffix) {
			return s.scale, true
		}
	}
	return scale{}, false
}

// endsIn reports whether the last dotted parts of name are suffix.
func endsIn(name, suffix string) bool {
	return name == suffix || strings.HasSuffix(name, "."+suffix)
}

// byColumns is √(3/columns), which keeps the variance of a product with unit inputs at one, rounded to a multiple of 2^-13.
// It gives the four ranges of formula.md: 157/4096 at 2048 columns, 111/4096 at 4096, 181/8192 at 6144, 128/8192 at 12288.
func byColumns(columns int) scale {
	return scale{0, math.Round(8192*math.Sqrt(3/float64(columns))) / 8192}
}
