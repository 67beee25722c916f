package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder makes a directory of files; a value that names a file of tiny-e2b is a copy of it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if data, err := os.ReadFile(tiny + text); err == nil && text != "" {
			text = string(data)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const tinyConfig = "bf16/config.json"

func TestSafetensorsWinOverPickles(t *testing.T) {
	c := opened(t, folder(t, map[string]string{
		configFile: tinyConfig, "model.safetensors": "bf16/model.safetensors", "pytorch_model.bin": "nonsense", "model.safetensors.index.json": "nonsense"}))
	require.True(t, c.Has("norm.weight"))
	require.Equal(t, "model.safetensors", filepath.Base(c.Path()))
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		open  string // within the directory
		want  string
	}{
		{"no config", map[string]string{"model.safetensors": "bf16/model.safetensors"}, "", "config.json: no such file"},
		{"no weights", map[string]string{configFile: tinyConfig}, "", "no weights, want model.safetensors"},
		{"sharded pickle", map[string]string{configFile: tinyConfig, "pytorch_model.bin.index.json": "{}"}, "", "pytorch_model.bin.index.json: a sharded pickle"},
		{"other family", map[string]string{configFile: `{"model_type":"llama"}`, "model.safetensors": ""}, "", `config.json: model_type: "llama"`},
		{"empty weights", map[string]string{configFile: tinyConfig, "model.safetensors": ""}, "", "model.safetensors: 0 bytes"},
		{"pickle that is none", map[string]string{configFile: tinyConfig, "pytorch_model.bin": "hello"}, "", "pytorch_model.bin: no zip archive"},
		{"GGUF", map[string]string{configFile: tinyConfig, "m.gguf": "GGUF"}, "m.gguf", "m.gguf: a GGUF file"},
		{"other file", map[string]string{configFile: tinyConfig, "m.onnx": ""}, "m.onnx", "m.onnx: an unknown kind of file"},
		{"nothing there", nil, "sub", "sub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(filepath.Join(folder(t, c.files), c.open))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestFormulaDescriptions(t *testing.T) {
	dir := folder(t, map[string]string{"bad.json": `{"name":"x"}`, "text.json": `"x"`, "moe.json": `{"name":"x","seed":"y","config":{"model_type":"llama"}}`})
	for name, want := range map[string]string{"bad.json": "no seed", "text.json": "cannot unmarshal", "moe.json": "llama", "none.json": "no such file"} {
		_, err := Open("formula:" + filepath.Join(dir, name))
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, want)
	}
	c := opened(t, "formula:../../testdata/golden/formula/e2b-10L.json")
	require.Equal(t, "formula:e2b-10L", c.Path())
	require.Equal(t, opened(t, "formula:e2b-10L").Config, c.Config)
}
