package checkpoint

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// TestEveryGoldenCheckpoint opens each checkpoint of the conformance data with each config beside it.
func TestEveryGoldenCheckpoint(t *testing.T) {
	e2b := map[string]*Checkpoint{}
	for _, config := range shareddata.Cases(t, "golden/tiny-*/*/config*.json") {
		dir := filepath.Dir(config)
		model, form := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
		t.Run(model+"/"+form+"/"+filepath.Base(config), func(t *testing.T) {
			c, err := OpenWithConfig(dir, config)
			if model == "tiny-26b-moe" {
				require.ErrorContains(t, err, "enable_moe_block")
				s, err := safetensors.Open(dir)
				require.NoError(t, err)
				require.NotEmpty(t, s.Names())
				require.NoError(t, s.Close())
				return
			}
			require.NoError(t, err)
			require.NoError(t, Check(c.Config, c))
			if model == "tiny-e2b" {
				e2b[path.Join(form, filepath.Base(config))] = c
				return
			}
			require.NoError(t, c.Close())
		})
	}
	one, other := e2b["bf16/config.json"], map[string]quant.DType{"fp32": quant.F32, "bin-fp16": quant.F16}
	for name, c := range e2b {
		t.Run("tiny-e2b/"+name+" is the same model", func(t *testing.T) {
			if d, ok := other[path.Dir(name)]; ok {
				require.Equal(t, one.Names(), c.Names())
				require.Equal(t, d, tensor(t, c, "norm.weight").DType)
				return
			}
			sameTensors(t, one, c)
		})
	}
	for _, c := range e2b {
		require.NoError(t, c.Close())
	}
}

// TestIndexTotals: total_size counts every tensor, total_parameters leaves out the ten layer scalars (oracle: golden/README.md).
func TestIndexTotals(t *testing.T) {
	for _, file := range shareddata.Cases(t, "golden/*/*/model.safetensors.index.json") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var ix struct {
			Metadata struct {
				Parameters int `json:"total_parameters"`
				Size       int `json:"total_size"`
			}
		}
		require.NoError(t, json.Unmarshal(text, &ix))
		s, err := safetensors.Open(filepath.Dir(file))
		require.NoError(t, err)
		elements, size := 0, 0
		for _, name := range s.Names() {
			x, err := s.Tensor(name)
			require.NoError(t, err)
			elements, size = elements+x.Len(), size+len(x.Data)
		}
		require.NoError(t, s.Close())
		require.Equal(t, ix.Metadata.Size, size)
		require.Equal(t, ix.Metadata.Parameters+10, elements)
	}
}

// TestFormulaConfigs compares the models known by name with the descriptions the goldens were made from.
func TestFormulaConfigs(t *testing.T) {
	for _, file := range shareddata.Cases(t, "golden/formula/*.json") {
		described := opened(t, "formula:"+file)
		known := opened(t, described.Path())
		want, got := described.Config, known.Config
		want.DType, got.DType = "", "" // the published config names one, the descriptions do not
		require.Equal(t, want, got)
		require.Equal(t, tensor(t, described, "layers.9.per_layer_projection.weight"), tensor(t, known, "layers.9.per_layer_projection.weight"))
		layers, err := gemma4.Config.Layers(got)
		require.NoError(t, err)
		require.Len(t, layers, got.NumHiddenLayers)
	}
}
