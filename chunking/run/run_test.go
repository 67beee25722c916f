package run

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/gemmatest"
)

const ctxLen = 24 // three windows of 7 and more

// several returns a model with two kv heads, no sharing, V = K on full layers and no per-layer inputs: the 31B shape.
func several() gemma4.Config {
	c := gemmatest.Config()
	c.NumKVSharedLayers, c.UseDoubleWideMLP, c.HiddenSizePerLayer = 0, false, 0
	c.NumKeyValueHeads, c.NumGlobalKVHeads, c.AttentionKEqV = 4, 2, true
	return c
}

func load(t testing.TB, c gemma4.Config, mode string, policies map[int]attention.Policy) *gemma4.Model {
	t.Helper()
	a, err := arith.New(mode, 2)
	require.NoError(t, err)
	m, err := gemma4.Load(c, gemmatest.New(c, 5), a, gemma4.Options{Policies: policies})
	require.NoError(t, err)
	return m
}

func planFor(t testing.TB, c gemma4.Config, text string) *chunking.Plan {
	t.Helper()
	m, err := chunking.NewModel(c)
	require.NoError(t, err)
	l, err := chunking.Parse(text, m)
	require.NoError(t, err)
	if l.Context == 0 {
		l.Context = ctxLen
	}
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

// taps collects the hidden states, norms and logits of a step by name.
func taps(into map[string][]float32) gemma4.Tracer {
	return func(t gemma4.Tap) {
		into[fmt.Sprintf("%s.%d", t.Point, t.Layer)] = append([]float32(nil), t.Data...)
	}
}

// requireSame steps both through the tokens and compares every tap by ==.
func requireSame(t *testing.T, whole *gemma4.State, s *Session, tokens []int) {
	t.Helper()
	for i, token := range tokens {
		want, got := map[string][]float32{}, map[string][]float32{}
		whole.Listen(taps(want))
		s.Listen(taps(got))
		logits, err := whole.Step(context.Background(), token)
		require.NoError(t, err)
		out, err := s.Step(context.Background(), token)
		require.NoError(t, err)
		for name, w := range want {
			if name == "rope_cos.sliding.-1" || name == "rope_sin.sliding.-1" || name == "rope_cos.full.-1" || name == "rope_sin.full.-1" {
				continue // host inputs
			}
			require.Equal(t, len(w), len(got[name]), name)
			for k := range w {
				require.True(t, w[k] == got[name][k], "step %d %s[%d]: chunked %v, whole %v", i, name, k, got[name][k], w[k])
			}
		}
		best := gemma4.Argmax(logits)
		require.Equal(t, best, out.ID)
		require.Equal(t, logits[best], out.Logit)
	}
}

func prompt(n int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = (i*37 + 11) % 101
	}
	return tokens
}

func TestChunkedEqualsWhole(t *testing.T) { // invariant, every mode, past the window wrap
	for name, c := range map[string]gemma4.Config{"shared": gemmatest.Config(), "several heads": several()} {
		for _, mode := range arith.Modes {
			m := load(t, c, mode, nil)
			for _, text := range []string{"@4way", "@3way", "@topo1", "@2way", "@1way", "L0 | L1-3 | L4 | L5-8 | L9+head", "L0-9 | head", "L0-6 | L7-9+head"} {
				t.Run(name+"/"+mode+"/"+text, func(t *testing.T) {
					s, err := NewSession(m, planFor(t, c, text))
					require.NoError(t, err)
					st, err := m.NewState(ctxLen)
					require.NoError(t, err)
					requireSame(t, st, s, prompt(ctxLen-2))
				})
			}
		}
	}
}

func TestSWA10SWA18PrefillHandsOverToAnyLayout(t *testing.T) { // invariant: prompts below, at and above the window and twice it
	c := gemmatest.Config()
	m := load(t, c, "ane", nil)
	for _, n := range []int{1, 6, 7, 8, 13, 14, 15, 20} {
		for _, text := range []string{"@4way", "@2way", "@topo1"} {
			t.Run(fmt.Sprintf("%s/%d", text, n), func(t *testing.T) {
				st, err := m.NewState(ctxLen)
				require.NoError(t, err)
				_, err = st.Prefill(context.Background(), prompt(n))
				require.NoError(t, err)
				s, err := NewSession(m, planFor(t, c, text))
				require.NoError(t, err)
				require.NoError(t, s.Import(st))
				requireSame(t, st, s, []int{5, 77, 31})
			})
		}
	}
}

func TestWindowedFullLayers(t *testing.T) { // invariant: full layers cut to 9 positions, caches right-aligned, no update mask
	c := gemmatest.Config()
	full := attention.Sliding{Window: 9}
	m := load(t, c, "hf-bf16", map[int]attention.Policy{4: full, 9: full})
	plan := planFor(t, c, "L0-2 | L3-9+head attn=sliding:9")
	s, err := NewSession(m, plan)
	require.NoError(t, err)
	st, err := m.NewState(ctxLen)
	require.NoError(t, err)
	requireSame(t, st, s, prompt(ctxLen-1))
	_, err = NewSession(load(t, c, "f32", nil), plan)
	require.ErrorContains(t, err, "attention of layer 4: full, want sliding:9")
}

func TestPoliciesInChunks(t *testing.T) { // invariant: masks over caches of every position; what fp16 rows cannot hold is refused with a fix
	c := gemmatest.Config()
	for _, text := range []string{"duo:3+5:0110", "flash:7", "wfa:9", "stream:3+5", "duokv:0+6:0", "stream:1+1", "stream:9+40"} {
		p, err := attention.Parse(text)
		require.NoError(t, err)
		m := load(t, c, "ane", map[int]attention.Policy{4: p, 9: p})
		s, err := NewSession(m, planFor(t, c, "L0-2 | L3-9+head attn="+text))
		require.NoError(t, err, text)
		st, err := m.NewState(ctxLen)
		require.NoError(t, err)
		requireSame(t, st, s, prompt(17))
	}
	for text, want := range map[string]string{
		"full/int8": "caches of a chunk hold fp16 rows", "blocks:3x5": "no port carries an index of keys", "full/palu:8": "caches of a chunk hold fp16 rows",
	} {
		p, err := attention.Parse(text)
		require.NoError(t, err)
		_, err = NewSession(load(t, c, "f32", map[int]attention.Policy{4: p, 9: p}), planFor(t, c, "L0-2 | L3-9+head attn="+text))
		require.ErrorContains(t, err, want, text)
	}
}

// inputs makes the first step's inputs of chunk 0.
func inputs(t *testing.T, s *Session) Ports {
	t.Helper()
	return s.chunkInputs(s.e.Decode, 0, s.hostInputs(s.e.Decode, []int{3}))
}

func TestCallRefuses(t *testing.T) {
	c := gemmatest.Config()
	m := load(t, c, "f32", nil)
	for name, f := range map[string]struct {
		change func(in Ports)
		want   string
	}{
		"missing port":        {func(in Ports) { delete(in, "cos_f") }, "cos_f: nothing"},
		"unknown port":        {func(in Ports) { in["cos"] = in["cos_f"] }, "cos: an input the chunk does not declare"},
		"ROPE-04 table width": {func(in Ports) { in["cos_f"] = in["cos_s"] }, "cos_f: shape [1 1 1 12], want [1 1 1 20]"},
		"mask of other context": {func(in Ports) {
			in["causal_mask_full"] = &Tensor{Shape: []int{1, 1, 1, 8}, Data: make([]float32, 8)}
		}, "the mask was built for another context"},
		"future leak":      {func(in Ports) { in["causal_mask_full"].Data[1] = 0 }, "causal_mask_full: 0 at column 1, want -Inf for position 0"},
		"sliding off":      {func(in Ports) { in["causal_mask_sliding"].Data[0] = 0 }, "causal_mask_sliding: 0 at column 0"},
		"two rows written": {func(in Ports) { in["update_mask"].Data[1] = 1 }, "update_mask: 1 at column 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSession(m, planFor(t, c, "@2way"))
			require.NoError(t, err)
			in := inputs(t, s)
			f.change(in)
			_, err = s.e.Call(context.Background(), Invocation{Function: s.e.Decode, In: in}, nil)
			require.ErrorContains(t, err, f.want)
		})
	}
}

func TestSessionRefuses(t *testing.T) {
	c := gemmatest.Config()
	m := load(t, c, "f32", nil)
	s, err := NewSession(m, planFor(t, c, "@2way context=3"))
	require.NoError(t, err)
	_, err = s.Step(context.Background(), 101)
	require.ErrorContains(t, err, "id 101, want 0 to 100")
	for range 3 {
		_, err = s.Step(context.Background(), 1)
		require.NoError(t, err)
	}
	_, err = s.Step(context.Background(), 1)
	require.ErrorContains(t, err, "position 3, want below the compiled context 3")
	_, err = NewSession(m, planFor(t, several(), "@2way"))
	require.NoError(t, err, "same layer count and width")
	other := gemmatest.Config()
	other.HiddenSize = 44
	_, err = NewSession(m, planFor(t, other, "@2way"))
	require.ErrorContains(t, err, "a plan for 10 layers of width 44")
}

func TestCancelledStepChangesNothing(t *testing.T) {
	c := gemmatest.Config()
	m := load(t, c, "f32", nil)
	s, err := NewSession(m, planFor(t, c, "@2way"))
	require.NoError(t, err)
	st, err := m.NewState(ctxLen)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.Step(ctx, 9)
	require.ErrorIs(t, err, context.Canceled)
	_, err = st.Step(ctx, 9)
	require.ErrorIs(t, err, context.Canceled)
	requireSame(t, st, s, prompt(9))
}

func TestMaskedWriteKeepsOldRows(t *testing.T) { // a chunk never writes into its inputs
	c := gemmatest.Config()
	m := load(t, c, "f32", nil)
	s, err := NewSession(m, planFor(t, c, "@2way"))
	require.NoError(t, err)
	in := inputs(t, s)
	out, err := s.e.Call(context.Background(), Invocation{Function: s.e.Decode, In: in}, nil)
	require.NoError(t, err)
	for _, v := range in["K_full_in"].Data {
		require.Zero(t, v)
	}
	var sum float64
	for _, v := range out["K_full_out"].Data {
		sum += math.Abs(float64(v))
	}
	require.Positive(t, sum)
}
