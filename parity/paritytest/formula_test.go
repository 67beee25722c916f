package paritytest

import (
	"context"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
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
	b := &loudness{Reference: parity.Reference{Model: m}, tokens: len(c.Prompt)}
	r := Run(t, b, golden.Backend{Case: c}, c.ParityCase(), parity.Settings{Tolerances: golden.Float32()})
	t.Log(r.String())
	want, shape, ok := c.Tensor("hidden_rms")
	require.True(t, ok)
	d := parity.Compare(b.rms, want, parity.Options{RowLen: shape[1]})
	t.Logf("rms of %d layers and %d tokens: %s", shape[0], shape[1], d)
	require.NoError(t, parity.Tolerance{Rel: 1e-5}.Check(d))
}

// loudness notes the RMS of every layer's output for every token of the prompt on the way, [L, T]: the recordings hold the
// values of two tokens only.
type loudness struct {
	parity.Reference
	tokens int
	rms    []float32
}

func (b *loudness) Run(ctx context.Context, c parity.Case) iter.Seq2[parity.Tap, error] {
	return func(yield func(parity.Tap, error) bool) {
		for t, err := range b.Reference.Run(ctx, c) {
			if t.Point == gemma4.PointHidden && t.First < b.tokens {
				b.note(t)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func (b *loudness) note(t parity.Tap) {
	d := t.Shape[1]
	for i := 0; i < len(t.Data); i += d {
		sum := 0.0
		for _, x := range t.Data[i : i+d] {
			sum += float64(x) * float64(x)
		}
		b.rms = append(b.rms, float32(math.Sqrt(sum/float64(d))))
	}
}

func TestFormulaFloat32(t *testing.T) { // oracle: transformers 5.24.0, real dimensions
	if testing.Short() {
		t.Skip("half a billion weights: run without -short")
	}
	agreesWithFormula(t, filepath.Join(shareddata.ModuleRoot(t), "testdata/golden/formula/e2b-10L_fp32_T24.safetensors"))
}

func TestLongSharedFormula(t *testing.T) { // oracle: transformers 5.24.0; T600 crosses the window of 512
	long(t)
	for _, path := range shareddata.Cases(t, "golden/formula/*_fp32_*.safetensors") {
		t.Run(filepath.Base(path), func(t *testing.T) { agreesWithFormula(t, path) })
	}
}
