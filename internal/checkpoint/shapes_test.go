package checkpoint

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
)

func publishedShapes(t *testing.T, name string) map[string][]int {
	t.Helper()
	path := "../../testdata/configs/" + name + ".json"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	c, err := gemma4.ParseConfig(path, text)
	require.NoError(t, err)
	m, err := shapes(c)
	require.NoError(t, err)
	return m
}

// TestShapesOfE2B is the table of spec forward.md §3.2 (hand).
func TestShapesOfE2B(t *testing.T) {
	m := publishedShapes(t, "e2b")
	for name, want := range map[string][]int{
		"embed_tokens.weight":                       {262144, 1536},
		"embed_tokens_per_layer.weight":             {262144, 8960},
		"per_layer_model_projection.weight":         {8960, 1536},
		"per_layer_projection_norm.weight":          {256},
		"norm.weight":                               {1536},
		"layers.0.post_per_layer_input_norm.weight": {1536},
		"layers.34.layer_scalar":                    {1},
		"layers.3.self_attn.q_proj.weight":          {2048, 1536},
		"layers.4.self_attn.q_proj.weight":          {4096, 1536},
		"layers.3.self_attn.o_proj.weight":          {1536, 2048},
		"layers.4.self_attn.o_proj.weight":          {1536, 4096},
		"layers.13.self_attn.v_proj.weight":         {256, 1536},
		"layers.14.self_attn.k_proj.weight":         {512, 1536},
		"layers.14.self_attn.k_norm.weight":         {512},
		"layers.34.self_attn.q_norm.weight":         {512},
		"layers.14.mlp.gate_proj.weight":            {6144, 1536},
		"layers.15.mlp.down_proj.weight":            {1536, 12288},
		"layers.20.per_layer_input_gate.weight":     {256, 1536},
		"layers.20.per_layer_projection.weight":     {1536, 256},
	} {
		require.Equal(t, want, m[name], name)
	}
	require.NotContains(t, m, "layers.15.self_attn.k_proj.weight")
	// 5 outside the layers; 17 in each of 15 owners, 14 in each of 20 shared layers.
	require.Len(t, m, 5+15*17+20*14)
}

func TestShapesOf31B(t *testing.T) { // hand: no per-layer inputs, and full layers take V from the raw key projection
	m := publishedShapes(t, "31b")
	require.Equal(t, []int{4 * 512, 5376}, m["layers.5.self_attn.k_proj.weight"])
	require.NotContains(t, m, "layers.5.self_attn.v_proj.weight")
	require.Equal(t, []int{16 * 256, 5376}, m["layers.4.self_attn.v_proj.weight"])
	for name := range m {
		require.False(t, strings.Contains(name, "per_layer"), name)
	}
}
