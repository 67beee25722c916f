package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/gemma4"
	"anelab/quant"
)

var _ gemma4.Source = (*Checkpoint)(nil)

const tiny = "../../testdata/golden/tiny-e2b/"

func opened(t *testing.T, path string) *Checkpoint {
	t.Helper()
	c, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestOpenForms(t *testing.T) {
	whole := opened(t, tiny+"bf16")
	require.Len(t, whole.Names(), 160) // oracle: the header of the file, without __metadata__
	require.Equal(t, 48, whole.Config.HiddenSize)
	for _, path := range []string{"multimodal", "mlx-prefix", "bf16/model.safetensors", "bin-bf16", "bin-bf16/pytorch_model.bin"} {
		t.Run(path, func(t *testing.T) { sameTensors(t, whole, opened(t, tiny+path)) })
	}
	t.Run("embedded", func(t *testing.T) {
		c, err := OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
		require.NoError(t, err)
		sameTensors(t, whole, c)
	})
	t.Run("published config", func(t *testing.T) {
		c, err := OpenWithConfig(tiny+"bf16", tiny+"bf16/config_published.json")
		require.NoError(t, err)
		defer c.Close()
		sameTensors(t, whole, c)
	})
}

// sameTensors requires equal names, types, shapes and bytes (invariant of the goldens: all bf16 forms are one model).
func sameTensors(t *testing.T, want, got *Checkpoint) {
	t.Helper()
	require.Equal(t, want.Names(), got.Names())
	for _, name := range want.Names() {
		require.Equal(t, tensor(t, want, name), tensor(t, got, name), name)
	}
}

func tensor(t *testing.T, c *Checkpoint, name string) quant.Tensor {
	t.Helper()
	x, err := c.Tensor(name)
	require.NoError(t, err)
	return x
}

func TestFormulaModels(t *testing.T) {
	c := opened(t, "formula:e2b-10L")
	require.Equal(t, "formula:e2b-10L", c.Path())
	require.Equal(t, []int{2048, 1536}, tensor(t, c, "embed_tokens.weight").Shape)
	require.Equal(t, []byte{0x37, 0x3f}, tensor(t, c, "layers.0.layer_scalar").Data) // oracle: formula_vectors.json
	require.False(t, c.Has("layers.5.self_attn.k_proj.weight"))

	full := opened(t, "formula:e2b-full")
	require.Equal(t, 35, full.Config.NumHiddenLayers)
	x, err := full.Describe("embed_tokens_per_layer.weight")
	require.NoError(t, err)
	require.Equal(t, []int{4096, 8960}, x.Shape)

	_, err = Open("formula:e2b-10l")
	require.ErrorContains(t, err, `did you mean "e2b-10L"?`)
}
