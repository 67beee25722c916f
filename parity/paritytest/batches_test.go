package paritytest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
)

// tokensOf are n tokens from position first on, the same for every way to feed them.
func tokensOf(first, n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = ((first+i)*389 + 17) % 320
	}
	return ids
}

// stepwise is what the model says after n tokens one at a time, and one more.
func stepwise(t *testing.T, m *gemma4.Model, n int) (last, next []float32) {
	st, err := m.NewState(64)
	require.NoError(t, err)
	for i, id := range tokensOf(0, n+1) {
		logits, err := st.Step(t.Context(), id)
		require.NoError(t, err)
		if i == n-1 {
			last = append(last, logits...)
		}
		next = logits
	}
	return last, next
}

// invariant: row r of a batch that starts at s is position s+r, for prompts that are no multiple of the batch, from the start and from
// inside a sequence.
func TestCHK05RowsOfABatchHaveTheirOwnPositions(t *testing.T) {
	m := TinyE2B(t, "bf16", "ane")
	for _, start := range []int{0, 7} {
		for _, n := range []int{3, 4, 5, 8, 9} {
			t.Run(fmt.Sprintf("%d tokens from %d", n, start), func(t *testing.T) {
				st, err := m.NewState(64)
				require.NoError(t, err)
				for _, id := range tokensOf(0, start) {
					_, err := st.Step(t.Context(), id)
					require.NoError(t, err)
				}
				st.SetBatch(4)
				got, err := st.Prefill(t.Context(), tokensOf(start, n))
				require.NoError(t, err)
				last, next := stepwise(t, m, start+n)
				require.Equal(t, last, got)
				got, err = st.Step(t.Context(), tokensOf(start+n, 1)[0])
				require.NoError(t, err)
				require.Equal(t, next, got, "what the batch left behind")
			})
		}
	}
}

// invariant: one prefill function serves every prompt that fits, and functions of several lengths give the same: rows behind the prompt
// leave nothing that a later step can see.
func TestCHK03CHK05PrefillFunctionsOfEveryLength(t *testing.T) {
	m := TinyE2B(t, "bf16", "ane")
	cm, err := chunking.NewModel(m.Config)
	require.NoError(t, err)
	l, err := chunking.Parse("L0-4 | L5-9+head context=64", cm)
	require.NoError(t, err)
	plan, err := l.Plan(cm)
	require.NoError(t, err)
	for _, length := range []int{9, 16, 64} {
		f, err := run.PrefillOf(plan, length)
		require.NoError(t, err)
		for _, n := range []int{3, 4, 5, 8, 9} {
			s, err := run.NewSession(m, plan)
			require.NoError(t, err)
			token, err := s.Prefill(t.Context(), f, tokensOf(0, n))
			require.NoError(t, err)
			last, next := stepwise(t, m, n)
			require.Equal(t, gemma4.Argmax(last), token.ID, "%d tokens in %s", n, f.Name)
			token, err = s.Step(t.Context(), tokensOf(n, 1)[0])
			require.NoError(t, err)
			require.Equal(t, gemma4.Argmax(next), token.ID)
			require.Equal(t, next[token.ID], token.Logit)
		}
	}
}
