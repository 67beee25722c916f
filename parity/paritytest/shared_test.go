package paritytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/parity"
	"anelab/parity/golden"
	"anelab/quant"
)

// sharedModel is a folder of the shared data: golden/tiny-NAME with checkpoints and recordings.
func sharedModels(t *testing.T) []string { return shareddata.Cases(t, "golden/tiny-*/fp32") }

// TestSharedGoldens runs every small model on every recording of it that is there. A model that cannot be honoured must be
// refused when it is opened.
func TestSharedGoldens(t *testing.T) { // oracle: transformers 5.24.0
	for _, dir := range sharedModels(t) {
		folder := filepath.Dir(dir)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			if strings.HasSuffix(folder, "-moe") {
				_, err := checkpoint.Open(dir)
				require.ErrorContains(t, err, "enable_moe_block")
				return
			}
			files, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, path := range files {
				t.Run(filepath.Base(path), func(t *testing.T) { agreesWithShared(t, folder, path) })
			}
		})
	}
}

// agreesWithShared compares the whole model with one file, in the numerics mode and within the tolerances its run asks for.
func agreesWithShared(t *testing.T, folder, path string) {
	f, err := golden.Open(path)
	require.NoError(t, err)
	defer f.Close()
	weights := f.Run.Weights
	if _, err := os.Stat(filepath.Join(folder, weights)); err != nil {
		t.Skipf("%s: no checkpoint %q beside it", path, weights)
	}
	mode, tolerances, storage := "f32", golden.Float32(), quant.F32
	if f.Run.Compute == "torch.bfloat16" {
		mode, tolerances, storage = "hf-bf16", golden.BF16(), quant.BF16
		if f.Kind == golden.Decode {
			tolerances = golden.BF16Decode()
		}
	}
	m := Load(t, filepath.Join(folder, weights), mode)
	n, err := f.CheckSharing(m.Layers)
	require.NoError(t, err)
	t.Logf("%d shared layers used their donors", n)
	for _, recorded := range f.Cases() {
		r := Run(t, parity.Reference{Model: m}, golden.Backend{Case: recorded}, recorded.ParityCase(), parity.Settings{Tolerances: tolerances, Storage: storage})
		t.Log(r.String())
	}
}

// TestSharedCheckpointForms loads every form in which the bf16 weights are there: all must give the same logits.
func TestSharedCheckpointForms(t *testing.T) { // invariant
	want := parity.Reference{Label: "bf16", Model: TinyE2B(t, "bf16", "f32")}
	forms := []string{"bf16", "bf16-sharded", "bin-bf16", "multimodal", "mlx-prefix"}
	c := Golden(t, "golden_bf16w-fp32.safetensors").Cases()[3].ParityCase()
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			got := parity.Reference{Label: form, Model: Load(t, filepath.Join(shareddata.Dir(t, "golden/tiny-e2b"), form), "f32")}
			Run(t, got, want, c, parity.Settings{})
		})
	}
}
