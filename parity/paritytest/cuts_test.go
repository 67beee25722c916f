package paritytest

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/parity"
)

// every lists all layouts of n chunks.
func every(m *chunking.Model, n int) []chunking.Layout {
	var all []chunking.Layout
	for l := range chunking.Enumerate(m, n) {
		l.Cuts = slices.Clone(l.Cuts) // valid until the next one only
		all = append(all, l)
	}
	return all
}

// presets lists the preset layouts of a model.
func presets(t *testing.T, m *chunking.Model) []chunking.Layout {
	var all []chunking.Layout
	for _, p := range chunking.Presets() {
		l, ok := m.Preset(p.Name)
		require.True(t, ok, p.Name)
		all = append(all, l)
	}
	return all
}

// equalWhole steps a model and every layout through more than three windows and compares token, logit and normed row by ==.
func equalWhole(t *testing.T, m *gemma4.Model, cm *chunking.Model, layouts []chunking.Layout) {
	t.Helper()
	n := 3*m.Config.SlidingWindow + 2
	var sessions []*run.Session
	for _, l := range layouts {
		l.Context = n
		plan, err := l.Plan(cm)
		require.NoError(t, err)
		s, err := run.NewSession(m, plan)
		require.NoError(t, err)
		sessions = append(sessions, s)
	}
	st, err := m.NewState(n)
	require.NoError(t, err)
	var hidden []float32
	st.Listen(func(tap gemma4.Tap) {
		if tap.Point == gemma4.PointFinalNorm {
			hidden = slices.Clone(tap.Data)
		}
	})
	for i := range n {
		token := (i*37 + 5) % m.Config.VocabSize
		logits, err := st.Step(t.Context(), token)
		require.NoError(t, err)
		best := gemma4.Argmax(logits)
		for k, s := range sessions {
			got, err := s.Step(t.Context(), token)
			require.NoError(t, err)
			Agree(t, got.Hidden, hidden, parity.Options{}, parity.Tolerance{})
			require.Equal(t, best, got.ID, "%s, step %d", layouts[k], i)
			require.Equal(t, logits[best], got.Logit, "%s, step %d", layouts[k], i)
		}
	}
}

func TestEveryCutInTwo(t *testing.T) { // invariant: nine cuts, three modes, past the wrap
	for _, mode := range arith.Modes {
		t.Run(mode, func(t *testing.T) {
			m := TinyE2B(t, "bf16", mode)
			cm, err := chunking.NewModel(m.Config)
			require.NoError(t, err)
			layouts := every(cm, 2)
			require.Len(t, layouts, 9)
			equalWhole(t, m, cm, layouts)
		})
	}
}

func TestPresetsOfEveryTinyModel(t *testing.T) { // invariant, on every dense model of the shared data
	models := 0
	for _, path := range shareddata.Cases(t, "golden/tiny-*/bf16") {
		if _, err := checkpoint.Open(path); err != nil {
			require.ErrorContains(t, err, "enable_moe_block", "only mixture-of-experts models are refused")
			continue
		}
		models++
		for _, mode := range arith.Modes {
			t.Run(fmt.Sprintf("%s/%s", filepath.Base(filepath.Dir(path)), mode), func(t *testing.T) {
				m := Load(t, path, mode)
				cm, err := chunking.NewModel(m.Config)
				require.NoError(t, err)
				equalWhole(t, m, cm, presets(t, cm))
			})
		}
	}
	require.Positive(t, models)
}
