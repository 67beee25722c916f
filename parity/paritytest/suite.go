package paritytest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/parity"
	"anelab/parity/golden"
	"anelab/quant"
)

// Subject is a backend under test.
type Subject struct {
	New     func(m *gemma4.Model, src gemma4.Source) (parity.Backend, error) // for a loaded model and its weights
	Batches []int                                                            // ways to cut a prompt into calls, as in parity.Case; at least one
	Modes   []string                                                         // that it computes in; nil for all
	Points  []gemma4.Point                                                   // that it must yield, all there are of each; nil for those of a layer's inside and outside
}

// allPoints are what a backend yields that has no graph of its own.
var allPoints = []gemma4.Point{gemma4.PointEmbeds, gemma4.PointPLE, gemma4.PointProbs, gemma4.PointHidden, gemma4.PointLogits}

// RunAll runs every test of the suite as a subtest.
func RunAll(t *testing.T, s Subject) {
	if s.Modes == nil {
		s.Modes = arith.Modes
	}
	if s.Points == nil {
		s.Points = allPoints
	}
	for _, mode := range s.Modes {
		t.Run("equals the whole model in "+mode, func(t *testing.T) { equalsReference(t, s, mode) })
	}
	for _, r := range Recordings() {
		if !slices.Contains(s.Modes, r.Mode) {
			continue
		}
		t.Run("agrees with "+r.String(), func(t *testing.T) { agreesWithRecording(t, s, r) })
	}
	t.Run("stops when its context ends", func(t *testing.T) { stops(t, s) })
	t.Run("refuses an unknown token", func(t *testing.T) { refuses(t, s) })
}

// Recording is one golden of the small model, and how to run the model to be comparable.
type Recording struct {
	File       string // in testdata/golden/tiny-e2b
	Checkpoint string // folder of its weights
	Mode       string // numerics mode
	Tolerances parity.Tolerances
	Storage    quant.DType // unit of ULPs
}

// String names the file and the mode.
func (r Recording) String() string { return r.File + " in " + r.Mode }

// Recordings are the goldens of testdata/ with the tolerances they are held to.
func Recordings() []Recording {
	return []Recording{
		{"golden_fp32.safetensors", "fp32", "f32", golden.Float32(), quant.F32},
		{"golden_bf16w-fp32.safetensors", "bf16", "f32", golden.Float32(), quant.F32},
		{"golden_bf16.safetensors", "bf16", "hf-bf16", golden.BF16(), quant.BF16},
		{"decode_fp32.safetensors", "fp32", "f32", golden.Float32(), quant.F32},
		{"decode_bf16w-fp32.safetensors", "bf16", "f32", golden.Float32(), quant.F32},
		{"decode_bf16.safetensors", "bf16", "hf-bf16", golden.BF16Decode(), quant.BF16},
	}
}

// build loads the small model and makes the backend for it.
func build(t *testing.T, s Subject, checkpoint, mode string) (*gemma4.Model, parity.Backend) {
	t.Helper()
	src, err := opened(t, tiny(t, checkpoint))
	require.NoError(t, err)
	m := loaded(t, src, mode)
	b, err := s.New(m, src)
	require.NoError(t, err)
	return m, b
}

// equalsReference compares all taps with those of the whole model, bit for bit, over every way to cut the prompt.
func equalsReference(t *testing.T, s Subject, mode string) {
	m, b := build(t, s, "bf16", mode)
	f := Golden(t, "decode_bf16.safetensors")
	for _, batch := range s.Batches {
		c := f.Cases()[0].ParityCase()
		c.Batch, c.Name = batch, fmt.Sprintf("decode, prompt in calls of %d", batch)
		r := Run(t, b, parity.Reference{Model: m}, c, parity.Settings{})
		require.Empty(t, r.OnlyGot)
		for _, p := range s.Points {
			require.Zero(t, r.OnlyWant[p], "every %s is there", p)
		}
	}
}

// agreesWithRecording plays every case of a golden.
func agreesWithRecording(t *testing.T, s Subject, r Recording) {
	_, b := build(t, s, r.Checkpoint, r.Mode)
	for _, recorded := range Golden(t, r.File).Cases() {
		for _, batch := range s.Batches {
			c := recorded.ParityCase()
			c.Batch = batch
			report := Run(t, b, golden.Backend{Case: recorded}, c, parity.Settings{Tolerances: r.Tolerances, Storage: r.Storage})
			require.NotZero(t, report.Compared)
			t.Logf("prompt in calls of %d, %s", batch, report.String())
		}
	}
}

func stops(t *testing.T, s Subject) {
	_, b := build(t, s, "bf16", s.Modes[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	taps := 0
	for _, err := range b.Run(ctx, caseOf(s, 5, 6, 7)) {
		cancel()
		last = err
		taps++
	}
	require.ErrorIs(t, last, context.Canceled)
	require.Less(t, taps, 60, "not much is computed after the end")
}

func refuses(t *testing.T, s Subject) {
	_, b := build(t, s, "bf16", s.Modes[0])
	var last error
	for _, err := range b.Run(t.Context(), caseOf(s, 5, 320, 7)) {
		last = err
	}
	require.ErrorContains(t, last, "320")
}

func caseOf(s Subject, prompt ...int) parity.Case {
	return parity.Case{Name: "crafted", Prompt: prompt, Batch: s.Batches[0]}
}
