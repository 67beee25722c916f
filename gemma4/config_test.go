package gemma4

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func published(t *testing.T, name string) Config {
	t.Helper()
	path := "../testdata/configs/" + name + ".json"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	c, err := ParseConfig(path, data)
	require.NoError(t, err)
	return c
}

func fullLayers(t *testing.T, c Config) (full []int, donors map[Kind]int) {
	t.Helper()
	layers, err := c.Layers()
	require.NoError(t, err)
	donors = map[Kind]int{}
	for _, l := range layers {
		if l.Kind == Full {
			full = append(full, l.Index)
		}
		if !l.OwnsKV() {
			donors[l.Kind] = l.KVSource
		}
	}
	return full, donors
}

func TestFWD10LayerMaps(t *testing.T) { // hand: spec forward.md §1
	full, donors := fullLayers(t, published(t, "e2b"))
	require.Equal(t, []int{4, 9, 14, 19, 24, 29, 34}, full)
	require.Equal(t, map[Kind]int{Sliding: 13, Full: 14}, donors)
	full, donors = fullLayers(t, published(t, "e4b"))
	require.Equal(t, []int{5, 11, 17, 23, 29, 35, 41}, full)
	require.Equal(t, map[Kind]int{Sliding: 22, Full: 23}, donors)
}

func TestLayersOfE2B(t *testing.T) { // hand
	layers, err := published(t, "e2b").Layers()
	require.NoError(t, err)
	require.Equal(t, Layer{Index: 14, Kind: Full, Heads: 8, KVHeads: 1, HeadDim: 512, FFN: 6144, KVSource: 14, Rope: Rope{1e6, 64}}, layers[14])
	require.Equal(t, Layer{Index: 33, Kind: Sliding, Heads: 8, KVHeads: 1, HeadDim: 256, FFN: 12288, Window: 512, KVSource: 13, Rope: Rope{1e4, 128}}, layers[33])
}

func TestLayersOf31B(t *testing.T) { // hand: num_global_key_value_heads counts only because attention_k_eq_v is set
	c := published(t, "31b")
	layers, err := c.Layers()
	require.NoError(t, err)
	require.Equal(t, Layer{Index: 5, Kind: Full, Heads: 32, KVHeads: 4, HeadDim: 512, FFN: 21504, KVSource: 5, Rope: Rope{1e6, 64}, KEqV: true}, layers[5])
	require.Equal(t, 16, layers[4].KVHeads)
	c.AttentionKEqV = false
	layers, err = c.Layers()
	require.NoError(t, err)
	require.Equal(t, 16, layers[5].KVHeads)
}

// edited returns the E2B text config with some fields changed; nil deletes.
func edited(t *testing.T, change map[string]any) []byte {
	t.Helper()
	data, err := os.ReadFile("../testdata/configs/e2b.json")
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(data, &doc))
	text := doc["text_config"].(map[string]any)
	for k, v := range change {
		if v == nil {
			delete(text, k)
		} else {
			text[k] = v
		}
	}
	out, err := json.Marshal(text)
	require.NoError(t, err)
	return out
}

func TestConfigRefusesByName(t *testing.T) {
	sliding35 := slices.Repeat([]string{"sliding_attention"}, 35)
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"FWD-10 missing size":     {map[string]any{"hidden_size": nil}, "hidden_size: nothing"},
		"moe":                     {map[string]any{"enable_moe_block": true}, "enable_moe_block: true"},
		"FWD-12 erf gelu":         {map[string]any{"hidden_activation": "gelu"}, `hidden_activation: "gelu"`},
		"other family":            {map[string]any{"model_type": "gemma3_text"}, `model_type: "gemma3_text"`},
		"FWD-01 gemma 3 scale":    {map[string]any{"query_pre_attn_scalar": 256}, "query_pre_attn_scalar: 256"},
		"FWD-09 rope scaling":     {map[string]any{"rope_scaling": map[string]any{"factor": 8}}, "rope_scaling"},
		"ROPE-03 rope type":       {map[string]any{"rope_parameters": map[string]any{"sliding_attention": map[string]any{"rope_type": "yarn", "rope_theta": 1e4}}}, `rope_type: "yarn"`},
		"FWD-09 rope factor":      {map[string]any{"rope_parameters": map[string]any{"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 1e4, "factor": 8}}}, "rope_parameters"},
		"ROPE-04 one theta":       {map[string]any{"rope_parameters": map[string]any{"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 1e4}}}, "rope_parameters.full_attention: nothing"},
		"unknown field":           {map[string]any{"slidding_window": 4}, `did you mean "sliding_window"?`},
		"unknown feature":         {map[string]any{"altup_num_inputs": 4}, "altup_num_inputs: unknown field set to 4"},
		"layer count":             {map[string]any{"num_hidden_layers": 34}, "layer_types: 35 entries, want 34"},
		"layer type":              {map[string]any{"layer_types": append(slices.Clone(sliding35[:34]), "chunked_attention")}, "layer_types[34]"},
		"no donor":                {map[string]any{"layer_types": sliding35}, "num_kv_shared_layers: layer 34 is full and shared"},
		"LOAD-07 empty widths":    {map[string]any{"intermediate_size": []int{}}, "intermediate_size"},
		"LOAD-07 some widths":     {map[string]any{"intermediate_size": []int{8192, 4096}}, "intermediate_size: 2 widths"},
		"override of no layer":    {map[string]any{"per_layer_config": map[string]any{"35": map[string]any{"head_dim": 4}}}, `per_layer_config: key "35"`},
		"override twice":          {map[string]any{"per_layer_config": map[string]any{"4": map[string]any{"head_dim": 4}, "04": map[string]any{"head_dim": 4}}}, "layer 4 twice"},
		"override of other field": {map[string]any{"per_layer_config": map[string]any{"4": map[string]any{"rope_theta": 4}}}, "per_layer_config"},
		"negative":                {map[string]any{"sliding_window": -1}, "sliding_window: -1"},
		"text for a number":       {map[string]any{"head_dim": "256"}, "head_dim"},
		"heads":                   {map[string]any{"num_key_value_heads": 3}, "8 query heads of width 256 over 3 kv heads"},
		"all shared":              {map[string]any{"num_kv_shared_layers": 35}, "num_kv_shared_layers: 35"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig("c.json", edited(t, c.change))
			require.ErrorContains(t, err, "c.json: ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConfigThreeFormsAgree(t *testing.T) { // invariant
	nested := published(t, "e2b")
	overrides := map[string]any{}
	for _, l := range []string{"04", "9", "14", "19", "24", "29", "34"} {
		overrides[l] = map[string]any{"head_dim": 512}
	}
	want, err := nested.Layers()
	require.NoError(t, err)
	for name, change := range map[string]map[string]any{
		"flat old": {}, "flat new": {"global_head_dim": nil, "num_global_key_value_heads": nil, "per_layer_config": overrides},
		"LOAD-07 uniform list": {"intermediate_size": slices.Repeat([]int{6144}, 35)},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseConfig("c.json", edited(t, change))
			require.NoError(t, err)
			got, err := c.Layers()
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestLastLayerIsForcedFull(t *testing.T) { // spec forward.md §2.11
	c := published(t, "e2b")
	c.LayerTypes = slices.Clone(c.LayerTypes)
	c.LayerTypes[34] = "sliding_attention"
	layers, err := c.Layers()
	require.NoError(t, err)
	require.Equal(t, Full, layers[34].Kind)
}

func TestMixedWidthsPerLayer(t *testing.T) { // LOAD-07
	widths := slices.Repeat([]int{6144}, 35)
	widths[7] = 96
	_, err := ParseConfig("c.json", edited(t, map[string]any{"intermediate_size": widths}))
	require.ErrorContains(t, err, "together with use_double_wide_mlp")
	c, err := ParseConfig("c.json", edited(t, map[string]any{"intermediate_size": widths, "use_double_wide_mlp": false}))
	require.NoError(t, err)
	layers, err := c.Layers()
	require.NoError(t, err)
	require.Equal(t, 96, layers[7].FFN)
	require.Equal(t, 6144, layers[8].FFN)
}

func FuzzParseConfig(f *testing.F) {
	for _, name := range []string{"e2b", "31b"} {
		data, err := os.ReadFile("../testdata/configs/" + name + ".json")
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"text_config":null}`))
	f.Add([]byte(`{"text_config":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig("fuzz.json", data)
		if err != nil {
			return
		}
		layers, err := c.Layers()
		require.NoError(t, err)
		require.Len(t, layers, len(c.LayerTypes))
		for _, l := range layers {
			require.LessOrEqual(t, l.KVSource, l.Index)
		}
	})
}

func TestConfigFieldsAreKnown(t *testing.T) { // a field listed twice would be read two ways
	seen := map[string]bool{}
	for _, f := range fixedFields {
		seen[f.name] = true
	}
	for _, n := range append(fieldNames(), ignoredFields...) {
		require.False(t, seen[n], n)
		seen[n] = true
	}
	require.NotContains(t, slices.Collect(maps.Keys(seen)), "")
}

func TestConfigTextReadsBack(t *testing.T) { // invariant
	for _, name := range []string{"e2b", "e4b", "31b"} {
		c := published(t, name)
		text, err := c.Text()
		require.NoError(t, err)
		again, err := ParseConfig("again.json", text)
		require.NoError(t, err)
		require.Equal(t, c, again)
	}
}
