package paritytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
	"anelab/parity"
	"anelab/parity/golden"
)

// long skips a test that takes minutes unless it is asked for.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("ANELAB_LONG") == "" {
		t.Skip("takes minutes: set ANELAB_LONG=1")
	}
}

// agreesWithFormula runs a model of real dimensions in float32 against a recording of it.
func agreesWithFormula(t *testing.T, path string) {
	f, err := golden.Open(path)
	require.NoError(t, err)
	defer f.Close()
	model, _, _ := strings.Cut(filepath.Base(path), "_")
	m := Load(t, "formula:"+model, "f32")
	c := f.Cases()[0]
	r := Run(t, parity.Reference{Model: m}, golden.Backend{Case: c}, c.ParityCase(), parity.Settings{Tolerances: golden.Float32()})
	t.Log(r.String())
}

func TestLongFormulaFloat32(t *testing.T) { // oracle: transformers 5.24.0
	long(t)
	agreesWithFormula(t, filepath.Join(shareddata.ModuleRoot(t), "testdata/golden/formula/e2b-10L_fp32_T24.safetensors"))
}

func TestLongSharedFormula(t *testing.T) { // oracle: transformers 5.24.0; T600 crosses the window of 512
	long(t)
	for _, path := range shareddata.Cases(t, "golden/formula/*_fp32_*.safetensors") {
		t.Run(filepath.Base(path), func(t *testing.T) { agreesWithFormula(t, path) })
	}
}
