package run

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/gemmatest"
)

// pair is a whole model and a session of its chunks.
func pair(t *testing.T, c gemma4.Config, mode, text string) (*gemma4.State, *Session) {
	t.Helper()
	m := load(t, c, mode, nil)
	st, err := m.NewState(ctxLen)
	require.NoError(t, err)
	s, err := NewSession(m, planFor(t, c, text))
	require.NoError(t, err)
	return st, s
}

// invariant: a prompt in one call, of any length up to the function's, leaves the caches that tokens one by one leave. Its window is
// whole also where the prompt is longer (spec forward.md ⚠ D is upstream's, not ours).
func TestPrefillIsSteps(t *testing.T) {
	for _, c := range []gemma4.Config{gemmatest.Config(), several()} {
		for _, n := range []int{1, 2, 6, 7, 8, 13, 16} {
			t.Run(fmt.Sprintf("%d layers share, %d tokens", c.NumKVSharedLayers, n), func(t *testing.T) {
				st, s := pair(t, c, "hf-bf16", "@3way")
				f, err := PrefillOf(s.e.Plan, 16)
				require.NoError(t, err)
				want, err := st.Prefill(context.Background(), prompt(n))
				require.NoError(t, err)
				best := gemma4.Argmax(want)
				logit := want[best]
				got, err := s.Prefill(context.Background(), f, prompt(n))
				require.NoError(t, err)
				require.Equal(t, Token{ID: best, Logit: logit}, got)
				require.Equal(t, n, s.Next())
				requireSame(t, st, s, []int{5, 77, 31})
			})
		}
	}
}

// invariant: with whole windows a verify call says what steps would say, before, at and past the wrap, in every mode; it changes
// nothing, and what is accepted of it is as if it had been stepped.
func TestVerifyIsSteps(t *testing.T) {
	for _, mode := range arith.Modes {
		for _, text := range []string{"@4way", "@1way", "L0-9 | head"} {
			st, s := pair(t, gemmatest.Config(), mode, text)
			f, err := VerifyOf(s.e.Plan, 4, WholeWindow)
			require.NoError(t, err)
			tokens := prompt(ctxLen)
			for accepted := 0; s.Next()+4 < ctxLen; accepted = (accepted + 1) % 5 {
				at := s.Next()
				got, err := s.Verify(context.Background(), f, tokens[at:at+4])
				require.NoError(t, err)
				require.Equal(t, at, s.Next())
				require.NoError(t, s.Accept(accepted))
				for i := range accepted {
					logits, err := st.Step(context.Background(), tokens[at+i])
					require.NoError(t, err)
					require.Equal(t, gemma4.Argmax(logits), got[i], "%s %s position %d", mode, text, at+i)
				}
				requireSame(t, st, s, tokens[s.Next():s.Next()+1])
			}
		}
	}
}

// invariant: a shifted window gives the same while nothing has been shifted out that a row needs, and other rows after that; the
// last row of a call has lost nothing.
func TestShiftedWindowLosesTheOldest(t *testing.T) {
	c := gemmatest.Config()
	plan := planFor(t, c, "@2way")
	policies, err := Shiftable(plan)
	require.NoError(t, err)
	m := load(t, c, "ane", policies)
	hidden := func(start int, w VerifyWindow) []float32 {
		s, err := NewSession(m, plan)
		require.NoError(t, err)
		for _, token := range prompt(start) {
			_, err := s.Step(context.Background(), token)
			require.NoError(t, err)
		}
		f, err := VerifyOf(plan, 3, w)
		require.NoError(t, err)
		var last []float32
		s.Watch(func(v Invocation, out Ports) { last = out["hidden_states_out"].Data })
		_, err = s.Verify(context.Background(), f, []int{9, 17, 33})
		require.NoError(t, err)
		return last
	}
	for start := range 15 {
		shifted, whole := hidden(start, ShiftedWindow), hidden(start, WholeWindow)
		if start+3 <= c.SlidingWindow {
			require.Equal(t, whole, shifted, "start %d", start)
			continue
		}
		require.NotEqual(t, whole[:c.HiddenSize], shifted[:c.HiddenSize], "start %d: row 0 sees two positions less", start)
	}
	s, err := NewSession(load(t, c, "ane", nil), plan)
	require.NoError(t, err)
	f, err := VerifyOf(plan, 3, ShiftedWindow)
	require.NoError(t, err)
	_, err = s.Verify(context.Background(), f, []int{1, 2, 3})
	require.ErrorContains(t, err, "load the model with the policies of Shiftable")
}

func TestBatchesRefuse(t *testing.T) { // hand
	_, s := pair(t, gemmatest.Config(), "f32", "@2way")
	ctx := context.Background()
	prefill, err := PrefillOf(s.e.Plan, 8)
	require.NoError(t, err)
	verify, err := VerifyOf(s.e.Plan, 3, WholeWindow)
	require.NoError(t, err)
	refused := func(_ any, err error) string {
		require.Error(t, err)
		return err.Error()
	}
	require.Contains(t, refused(s.Prefill(ctx, verify, []int{1})), "function: verify_qK, want a prefill function")
	require.Contains(t, refused(s.Prefill(ctx, prefill, prompt(9))), "prompt: 9 tokens, want 1 to 8")
	require.Contains(t, refused(s.Prefill(ctx, prefill, []int{101})), "id 101, want 0 to 100")
	require.Contains(t, refused(s.Verify(ctx, prefill, prompt(8))), "8 tokens for function prefill_b8")
	require.Contains(t, refused(s.Verify(ctx, verify, prompt(2))), "2 tokens for function verify_qK, want 3")
	require.ErrorContains(t, s.Accept(0), "the verify call just made")
	_, err = s.Verify(ctx, verify, prompt(3))
	require.NoError(t, err)
	require.ErrorContains(t, s.Accept(4), "4 rows")
	_, err = s.Step(ctx, 1)
	require.NoError(t, err)
	require.ErrorContains(t, s.Accept(1), "the verify call just made")
	require.Contains(t, refused(s.Prefill(ctx, prefill, prompt(3))), "position 1, want a new sequence")

	_, s = pair(t, gemmatest.Config(), "f32", "@2way")
	in := s.chunkInputs(prefill, 1, s.hostInputs(prefill, prompt(3)))
	clear(in["last_position_mask"].Data)
	_, err = s.e.Call(ctx, Invocation{Function: prefill, Chunk: 1, In: in}, nil)
	require.ErrorContains(t, err, "last_position_mask: 0 marked rows")
}
