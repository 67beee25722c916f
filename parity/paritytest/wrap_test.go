package paritytest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/parity"
)

// wholeStep is one token of the whole model: what every layout must give again.
type wholeStep struct {
	token  int
	hidden []float32 // [D], final-normed
	best   int
	logit  float32
}

// Invariant: at real width the presets equal the whole model past the wrap of the window of 512, in every mode. The prompt of 508
// tokens goes through the whole model once and is handed over to every layout, as a phone does after a batched prefill.
func TestLongChunkedAtRealWidth(t *testing.T) {
	long(t)
	const prompt, steps = 508, 8
	for _, mode := range arith.Modes {
		t.Run(mode, func(t *testing.T) {
			m := Load(t, "formula:e2b-10L", mode)
			whole := prefilled(t, m, prompt)
			var sessions []*run.Session
			var names []string
			for _, preset := range chunking.Presets() {
				s := session(t, m, preset.Name)
				require.NoError(t, s.Import(whole))
				sessions, names = append(sessions, s), append(names, preset.Name)
			}
			require.Len(t, sessions, 5)
			for _, want := range stepWhole(t, whole, steps) {
				for i, s := range sessions {
					got, err := s.Step(t.Context(), want.token)
					require.NoError(t, err)
					Agree(t, got.Hidden, want.hidden, parity.Options{}, parity.Tolerance{})
					require.Equal(t, want.best, got.ID, names[i])
					require.Equal(t, want.logit, got.Logit, names[i])
				}
			}
			t.Logf("%d layouts equal the whole model at positions %d to %d", len(sessions), prompt, prompt+steps-1)
		})
	}
}

func session(t *testing.T, m *gemma4.Model, layout string) *run.Session {
	t.Helper()
	cm, err := chunking.NewModel(m.Config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout+" context=640", cm)
	require.NoError(t, err)
	plan, err := l.Plan(cm)
	require.NoError(t, err)
	s, err := run.NewSession(m, plan)
	require.NoError(t, err)
	return s
}

func prefilled(t *testing.T, m *gemma4.Model, n int) *gemma4.State {
	t.Helper()
	st, err := m.NewState(640)
	require.NoError(t, err)
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = (i*389 + 17) % m.Config.VocabSize
	}
	_, err = st.Prefill(context.Background(), tokens)
	require.NoError(t, err)
	return st
}

// stepWhole feeds n tokens and keeps what the head saw and said.
func stepWhole(t *testing.T, st *gemma4.State, n int) []wholeStep {
	t.Helper()
	var steps []wholeStep
	st.Listen(func(tap gemma4.Tap) {
		if tap.Point == gemma4.PointFinalNorm {
			steps[len(steps)-1].hidden = append([]float32(nil), tap.Data...)
		}
	})
	for i := range n {
		steps = append(steps, wholeStep{token: (i*577 + 5) % 2048})
		logits, err := st.Step(t.Context(), steps[i].token)
		require.NoError(t, err)
		steps[i].best = gemma4.Argmax(logits)
		steps[i].logit = logits[steps[i].best]
		require.NotEmpty(t, steps[i].hidden, fmt.Sprintf("step %d", i))
	}
	return steps
}
