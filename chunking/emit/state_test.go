package emit_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"anelab/chunking/emit"
	"anelab/chunking/run"
	"anelab/coreml/interp"

	"github.com/stretchr/testify/require"
)

// ringHost runs the graphs with states beside a session of the Go model whose caches are ports. Windows are rings: slot i holds the
// newest position that is i modulo the window.
type ringHost struct {
	*subject
	t      testing.TB
	states []interp.State
	handed map[string]*interp.Tensor // hand-offs as the graphs pass them
	as     string                    // function to run in place of a verify call: prefill_bN writes its rows, verify_qK does not
}

func newRingHost(t testing.TB, s *subject) *ringHost {
	h := &ringHost{subject: s, t: t}
	for i, g := range s.graphs {
		state, err := g.NewState(s.chunks[i].Package.Program.Functions[0].Name)
		require.NoError(t, err)
		h.states = append(h.states, state)
	}
	return h
}

// watch runs a call as a graph over states and compares what both know.
func (h *ringHost) watch(v run.Invocation, out run.Ports) {
	if v.Chunk == 0 {
		h.handed = map[string]*interp.Tensor{}
	}
	name := h.function(v.Function)
	if v.Function.Kind == run.Verify {
		name = h.as
	}
	function := h.chunks[v.Chunk].Package.Program.Function(name)
	in := map[string]*interp.Tensor{}
	for _, port := range function.Inputs {
		switch {
		case h.handed[port.Name] != nil:
			in[port.Name] = h.handed[port.Name]
		case port.Name == "causal_mask_sliding":
			in[port.Name] = interp.F16(h.ringMask(v), v.In[port.Name].Shape...)
		case port.Name == "current_pos":
			in[port.Name] = interp.I32([]int32{int32(v.Pos)}, 1)
		case port.Name == "ring_pos":
			in[port.Name] = interp.I32([]int32{int32(v.Pos % h.model.Config.SlidingWindow)}, 1)
		case port.Name == "last_position_mask":
			last := make([]float32, v.Function.Tokens)
			last[len(last)-1] = 1
			in[port.Name] = interp.F16(last, 1, len(last), 1)
		case v.In[port.Name] != nil:
			in[port.Name] = tensorOf(v.In[port.Name])
		}
	}
	got, err := h.graphs[v.Chunk].Run(context.Background(), name, in, interp.Call{State: h.states[v.Chunk]})
	require.NoError(h.t, err)
	h.compare(v, out, got)
}

// ringMask is the sliding mask of a call: of a ring with its own row in it, or of a ring with the new rows behind.
func (h *ringHost) ringMask(v run.Invocation) []float32 {
	w, tokens := h.model.Config.SlidingWindow, v.Function.Tokens
	columns := w
	if tokens > 1 {
		columns += tokens
	}
	mask := make([]float32, tokens*columns)
	for t := range tokens {
		for i := range columns {
			q := v.Pos + i - w // a new row
			if i < w {
				q = newest(i, w, h.ringEnd(v)) // the ring as it is read
			}
			if q < 0 || q > v.Pos+t || v.Pos+t-q >= w {
				mask[t*columns+i] = float32(math.Inf(-1))
			}
		}
	}
	return mask
}

// ringEnd is the position behind the newest in the ring: a single token reads it with its own row written.
func (h *ringHost) ringEnd(v run.Invocation) int {
	if v.Function.Tokens > 1 {
		return v.Pos
	}
	return v.Pos + 1
}

// newest is the greatest position below end in slot i of a ring, negative if there is none.
func newest(i, w, end int) int { return end - 1 - ((end-1-i)%w+w)%w }

// compare wants equal streams, tokens and rows; hand-offs of windows have their rows in the order of the ring.
func (h *ringHost) compare(v run.Invocation, out run.Ports, got map[string]*interp.Tensor) {
	for name, x := range got {
		where := v.Function.Name + " " + name
		switch want := out[name]; {
		case strings.HasPrefix(name, "kv13"):
			h.handed[name] = x
			h.requireRing(where, v, want, x)
		case strings.HasPrefix(name, "kv14"):
			h.handed[name] = x
			requireEqual(h.t, where, want, x)
		case name == "hidden_normed" && out["hidden_states_out"] != nil && v.Function.Kind == run.Decode:
			requireEqual(h.t, where, out["hidden_states_out"], x)
		case name == "token_id" && out["token_ids"] != nil:
			require.Equal(h.t, out["token_ids"].IDs[v.Function.Tokens-1], x.Ints[0], where)
		case name == "token_logit" && want == nil:
		default:
			require.NotNil(h.t, want, where)
			requireEqual(h.t, where, want, x)
		}
	}
}

// requireRing compares the rows of positions; those behind the ring are in order.
func (h *ringHost) requireRing(where string, v run.Invocation, want *run.Tensor, got *interp.Tensor) {
	w, d, rows := h.model.Config.SlidingWindow, want.Shape[3], want.Shape[2]
	for i := range rows {
		q := v.Pos + i - w
		if i < w {
			q = newest(i, w, h.ringEnd(v))
		}
		at := q - (v.Pos + v.Function.Tokens - rows) // row of the position in the model's window
		for c := 0; q >= 0 && c < d; c++ {
			require.True(h.t, want.Data[at*d+c] == got.Floats[i*d+c], "%s: position %d column %d: graph %v, model %v", where, q, c, got.Floats[i*d+c], want.Data[at*d+c])
		}
	}
}

// invariant: with states the graphs compute what the Go model computes with caches in ports: steps round the ring, blocks of a
// prompt at any position that does not straddle the end of the ring, and drafts whose rows are not written.
func TestStatesAreTheModel(t *testing.T) {
	for text, weights := range map[string]string{"@4way": "f16", "@3way": "int4g16", "@2way": "f16", "@1way": "f16", "L0-2 | L3 | L4-6 | L7-9+head": "f16", "L0-9 | head": "f16"} {
		t.Run(weights+"/"+text, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, nil, text+" context=24", weights, emit.Options{Prefill: []int{4}, Verify: 3, Caches: emit.StateCaches})
			h := newRingHost(t, s)
			session, err := run.NewSession(s.model, s.plan)
			require.NoError(t, err)
			session.Watch(h.watch)
			block, err := run.VerifyOf(s.plan, 4, run.WholeWindow)
			require.NoError(t, err)
			verify, err := run.VerifyOf(s.plan, 3, run.WholeWindow)
			require.NoError(t, err)
			tokens := prompt(s.plan.Context, s.model.Config.VocabSize)
			for session.Next()+4 <= s.plan.Context {
				at := session.Next()
				h.as = "verify_qK"
				_, err = session.Verify(context.Background(), verify, tokens[at:at+3])
				require.NoError(t, err)
				require.NoError(t, session.Accept(0))
				if at%s.model.Config.SlidingWindow <= s.model.Config.SlidingWindow-4 && at%3 == 0 {
					h.as = "prefill_b4"
					_, err = session.Verify(context.Background(), block, tokens[at:at+4])
					require.NoError(t, err)
					require.NoError(t, session.Accept(4))
					continue
				}
				_, err = session.Step(context.Background(), tokens[at])
				require.NoError(t, err)
			}
		})
	}
}

// hand: two states at most, K and V of an owner side by side, and the ports of spec forward.md §4.11.
func TestStatePorts(t *testing.T) {
	s := newSubject(t, nil, "@2way context=24", "f16", emit.Options{Caches: emit.StateCaches})
	first := s.chunks[0].Package.Description
	require.Equal(t, []string{"hidden_states", "causal_mask_full", "causal_mask_sliding", "per_layer_raw", "cos_s", "sin_s", "cos_f", "sin_f", "current_pos", "ring_pos"}, featureNames(first.Inputs))
	require.Equal(t, []string{"hidden_states_out", "per_layer_combined_out", "kv13_k", "kv13_v", "kv14_k", "kv14_v"}, featureNames(first.Outputs))
	require.Equal(t, []string{"kv_cache_sliding", "kv_cache_full"}, featureNames(first.States))
	require.Equal(t, []int64{8, 1, 7, 32}, first.States[0].Array.Shape)
	require.Equal(t, []int64{2, 1, 24, 32}, first.States[1].Array.Shape)
	second := s.chunks[1].Package.Description
	require.Equal(t, []string{"token_id", "token_logit", "hidden_normed"}, featureNames(second.Outputs))
	require.Empty(t, second.States)
	require.Equal(t, "chunk_1", s.chunks[0].Name)
}
