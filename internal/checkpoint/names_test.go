package checkpoint

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/checkpoint/safetensors"
	"anelab/quant"
)

// tensors are the contents of a model file, by stored name.
type tensors map[string]quant.Tensor

// tinyTensors returns the bf16 tiny-e2b, stored under the prefix "model.".
func tinyTensors(t *testing.T) tensors {
	t.Helper()
	s, err := safetensors.Open(tiny + "bf16")
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	m := tensors{}
	for _, name := range s.Names() {
		m[name], err = s.Tensor(name)
		require.NoError(t, err)
	}
	return m
}

// save writes m as model.safetensors beside tiny-e2b's config.
func (m tensors) save(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	config, err := os.ReadFile(tiny + "bf16/" + configFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, configFile), config, 0o600))
	var list []quant.Tensor
	for _, name := range slices.Sorted(maps.Keys(m)) {
		x := m[name]
		x.Name = name
		list = append(list, x)
	}
	require.NoError(t, safetensors.Write(filepath.Join(dir, safetensors.ModelFile), list, nil))
	return dir
}

// rename moves every tensor from the prefix "model." to another.
func (m tensors) rename(prefix string) tensors {
	out := tensors{}
	for name, x := range m {
		out[prefix+strings.TrimPrefix(name, "model.")] = x
	}
	return out
}

func bf16(shape ...int) quant.Tensor {
	x := quant.Tensor{DType: quant.BF16, Shape: shape}
	x.Data = make([]byte, 2*x.Len())
	return x
}

func TestPrefixes(t *testing.T) {
	whole := opened(t, tiny+"bf16")
	for _, p := range prefixes {
		t.Run("prefix "+p, func(t *testing.T) { sameTensors(t, whole, opened(t, tinyTensors(t).rename(p).save(t))) })
	}
}

func TestAcceptedExtras(t *testing.T) {
	whole := opened(t, tiny+"bf16")
	m := tinyTensors(t)
	table := m["model.embed_tokens.weight"]
	for name, x := range map[string]quant.Tensor{
		"model.vision_tower.a.weight": bf16(3), "vision_tower.b.weight": bf16(5, 2), "model.audio_tower.c": bf16(), "audio_tower.d.scales": bf16(1),
		"model.embed_vision.embedding_projection.weight": bf16(2), "embed_audio.embedding_projection.weight": bf16(2), "multi_modal_projector.e": bf16(7),
		"lm_head.weight":                         table, // a copy of the bytes, not an alias
		"model.layers.5.self_attn.k_proj.weight": bf16(3, 1), "model.layers.9.self_attn.v_proj.weight": bf16(2),
		"model.layers.7.self_attn.k_norm.weight": bf16(11), "model.layers.8.self_attn.v_norm.weight": bf16(1),
	} {
		m[name] = x
	}
	c := opened(t, m.save(t))
	sameTensors(t, whole, c)
	require.False(t, c.Has("layers.5.self_attn.k_proj.weight"), "unused keys of a shared layer are not part of the model")
	_, err := c.Tensor("layers.5.self_attn.k_proj.weight")
	require.ErrorContains(t, err, "no such tensor")
}

func TestRefusedTensors(t *testing.T) {
	wide := func(x quant.Tensor, d quant.DType) quant.Tensor {
		x.DType, x.Data = d, make([]byte, x.Len()*d.Size())
		return x
	}
	for _, c := range []struct {
		name   string
		change func(m tensors)
		want   []string
	}{
		{"missing", func(m tensors) { delete(m, "model.layers.3.mlp.up_proj.weight") },
			[]string{"layers.3.mlp.up_proj.weight: no such tensor", "shape [80, 48]"}},
		{"missing keys of an owner", func(m tensors) { delete(m, "model.layers.4.self_attn.k_norm.weight") },
			[]string{"layers.4.self_attn.k_norm.weight: no such tensor", "shape [32]"}},
		{"wrong shape", func(m tensors) { m["model.layers.3.mlp.up_proj.weight"] = bf16(48, 80) },
			[]string{"layers.3.mlp.up_proj.weight: shape [48, 80], want [80, 48]"}},
		{"scalar of rank 0", func(m tensors) { m["model.layers.3.layer_scalar"] = bf16() }, []string{"layers.3.layer_scalar: shape [], want [1]"}},
		{"integers", func(m tensors) { m["model.norm.weight"] = wide(m["model.norm.weight"], quant.I32) }, []string{"norm.weight: type i32"}},
		{"doubles", func(m tensors) { m["model.norm.weight"] = wide(m["model.norm.weight"], quant.F64) }, []string{"norm.weight: type f64"}},
		{"bias", func(m tensors) { m["model.layers.0.self_attn.q_proj.bias"] = bf16(64) },
			[]string{"layers.0.self_attn.q_proj.bias: unknown tensor", `did you mean "layers.0.self_attn.q_proj.weight"?`}},
		{"experts", func(m tensors) {
			m["model.layers.0.router.scale"] = bf16(48)
			m["model.layers.0.router.proj.weight"] = bf16(10, 48)
		},
			[]string{"layers.0.router.proj.weight: unknown tensor (and 1 more)"}},
		{"layer the config does not have", func(m tensors) { m["model.layers.10.layer_scalar"] = bf16(1) }, []string{"layers.10.layer_scalar: unknown"}},
		{"keys of a layer beyond the last", func(m tensors) { m["model.layers.10.self_attn.k_proj.weight"] = bf16(1) }, []string{"unknown"}},
		{"mixed prefixes", func(m tensors) { m["model.language_model.layers.0.layer_scalar"] = bf16(1) },
			[]string{`prefix "model.language_model."`, `"model.", that of embed_tokens.weight`}},
		{"mixed with none", func(m tensors) { m["norm.weight"] = bf16(48) }, []string{`norm.weight: prefix ""`, `"model."`}},
		{"two models", func(m tensors) { m["language_model.model.embed_tokens.weight"] = bf16(1) },
			[]string{`the prefixes "language_model.model.", "model."`}},
		{"no table", func(m tensors) { delete(m, "model.embed_tokens.weight") }, []string{"embed_tokens.weight: nothing", "is this a Gemma 4 checkpoint?"}},
		{"stranger", func(m tensors) { m["classifier.weight"] = bf16(2) }, []string{"classifier.weight: unknown tensor"}},
		{"untied head", func(m tensors) { m["lm_head.weight"] = bf16(320, 48) }, []string{"lm_head.weight: a head that differs"}},
		{"head of another shape", func(m tensors) { m["lm_head.weight"] = bf16(48, 320) }, []string{"a head that differs"}},
		{"MLX", func(m tensors) { m["model.layers.0.mlp.up_proj.scales"] = bf16(80, 3) }, []string{"layers.0.mlp.up_proj.scales", "quantised with MLX"}},
		{"GPTQ", func(m tensors) { m["model.layers.0.mlp.up_proj.qweight"] = bf16(1) }, []string{"quantised with GPTQ"}},
		{"compressed-tensors", func(m tensors) { m["model.layers.0.mlp.up_proj.weight_packed"] = bf16(1) }, []string{"quantised with compressed-tensors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := tinyTensors(t)
			c.change(m)
			_, err := Open(m.save(t))
			for _, want := range append(c.want, safetensors.ModelFile+": ") {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestMixedPrefixesOfABareModel(t *testing.T) {
	m := tinyTensors(t).rename("")
	m["model.norm.weight"] = m["norm.weight"]
	_, err := Open(m.save(t))
	require.ErrorContains(t, err, `model.norm.weight: prefix "model.", want "", that of embed_tokens.weight`)
}
