package emit_test

import (
	"context"
	"fmt"
	"testing"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/chunking/run"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/gemmatest"
	"anelab/quant"

	"github.com/stretchr/testify/require"
)

const tiny = "../../testdata/golden/tiny-e2b/bf16" // 10 layers, window 7

// subject is a model, its plan, and the graphs made of both.
type subject struct {
	model  *gemma4.Model
	plan   *chunking.Plan
	chunks []*emit.Chunk
	graphs []*interp.Model
}

// checkpointOf is the tiny golden model, or one of random weights.
func checkpointOf(t testing.TB, c *gemma4.Config) (gemma4.Config, gemma4.Source) {
	if c != nil {
		return *c, gemmatest.New(*c, 5)
	}
	src, err := checkpoint.Open(tiny)
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	return src.Config, src
}

// palettes makes a Go model multiply with the palettes that a graph has.
func palettes(e quant.Encoding) func(name string, m quant.Matrix) (quant.Matrix, error) {
	return func(_ string, m quant.Matrix) (quant.Matrix, error) {
		if !e.Palette() || m.Rows()*m.Cols() <= 2048 || []int{m.Rows(), m.Cols()}[e.Axis]%max(e.Group, 1) != 0 {
			return m, nil
		}
		return quant.Palettize(context.Background(), quant.AsF16(m), quant.Options{Bits: e.Bits, Group: e.Group, Axis: e.Axis, Vector: e.Vector}, nil)
	}
}

func planOf(t testing.TB, c gemma4.Config, text string) *chunking.Plan {
	t.Helper()
	m, err := chunking.NewModel(c)
	require.NoError(t, err)
	l, err := chunking.Parse(text, m)
	require.NoError(t, err)
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

// newSubject emits text, such as "@3way context=24", with weights in one encoding.
func newSubject(t testing.TB, config *gemma4.Config, text, weights string, o emit.Options) *subject {
	t.Helper()
	c, src := checkpointOf(t, config)
	e, err := quant.ParseEncoding(weights)
	require.NoError(t, err)
	plan := planOf(t, c, text)
	l := plan.Layout
	l.Cuts = append([]chunking.Cut(nil), l.Cuts...)
	for i := range l.Cuts {
		l.Cuts[i].Weights = e
	}
	s := &subject{}
	s.plan, err = l.Plan(plan.Model)
	require.NoError(t, err)
	policies, err := run.Shiftable(s.plan)
	require.NoError(t, err)
	s.model, err = gemma4.Load(c, src, arith.NewANE(arith.ANERules{}, 1), gemma4.Options{Policies: policies, Linear: palettes(e)})
	require.NoError(t, err)
	s.chunks, err = emit.Emit(context.Background(), s.plan, src, o)
	require.NoError(t, err)
	for _, chunk := range s.chunks {
		g, err := interp.New(chunk.Package.Program, interp.Options{Precision: interp.ANE, Threads: 1, Path: chunk.Name})
		require.NoError(t, err)
		s.graphs = append(s.graphs, g)
	}
	return s
}

// function is the name that a function has in the package of a chunk: main if it is alone.
func (s *subject) function(f *run.Function) string {
	if len(s.chunks[0].Package.Program.Functions) == 1 {
		return "main"
	}
	return f.Name
}

// tensorOf is a port's value as the interpreter takes it.
func tensorOf(x *run.Tensor) *interp.Tensor {
	if x.IDs != nil {
		return interp.I32(x.IDs, x.Shape...)
	}
	return interp.F16(x.Data, x.Shape...)
}

// watcher runs every call of a chunk as a graph, too, on the same inputs, and wants the same outputs: ==, so that −0 is 0.
func (s *subject) watcher(t testing.TB, calls *int) run.Watcher {
	return func(v run.Invocation, out run.Ports) {
		in := map[string]*interp.Tensor{}
		for name, x := range v.In {
			in[name] = tensorOf(x)
		}
		got, err := s.graphs[v.Chunk].Run(context.Background(), s.function(v.Function), in, interp.Call{})
		require.NoError(t, err)
		where := fmt.Sprintf("%s of chunk %d at %d", v.Function.Name, v.Chunk+1, v.Pos)
		require.Len(t, got, len(out), where)
		for name, want := range out {
			requireEqual(t, where+": "+name, want, got[name])
		}
		*calls++
	}
}

func requireEqual(t testing.TB, where string, want *run.Tensor, got *interp.Tensor) {
	t.Helper()
	require.NotNil(t, got, where)
	require.Equal(t, want.Shape, got.Shape, where)
	require.Equal(t, want.IDs, got.Ints, where)
	for i, x := range want.Data {
		require.True(t, x == got.Floats[i], "%s[%d]: graph %v, model %v", where, i, got.Floats[i], x)
	}
}

func prompt(n, vocab int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = (i*37 + 11) % vocab
	}
	return tokens
}

// invariant: what the graphs compute is what the Go model computes, bit for bit, call by call: steps past the wrap of the window,
// prompts in one call, drafts on trial and their acceptance.
func TestGraphsAreTheModel(t *testing.T) {
	for i, c := range []struct{ text, weights string }{
		{"@4way", "f16"}, {"@4way", "int4g16"}, {"@3way", "int4g32"}, {"@3way", "f16"}, {"@topo1", "f16"}, {"@topo1", "int4g16"}, {"@2way", "int4g16"}, {"@2way", "f16"},
		{"@1way", "f16"}, {"L0 | L1-3 | L4 | L5-8 | L9+head", "f16"}, {"L0-9 | head", "f16"}, {"L0-6 | L7-9+head", "int3g8"}, {"L0-4 | L5-9+head", "int2c16"},
	} {
		o := emit.Options{Prefill: []int{8}, Verify: 3, Window: run.VerifyWindow(i % 2)}
		t.Run(fmt.Sprintf("%s/%s/%s", c.weights, c.text, o.Window), func(t *testing.T) {
			t.Parallel()
			exercise(t, newSubject(t, nil, c.text+" context=20", c.weights, o), o)
		})
	}
}

// several is a model with two KV heads and more, no sharing, V = K on full layers and no per-layer inputs: the 31B shape.
func several() *gemma4.Config {
	c := gemmatest.Config()
	c.NumKVSharedLayers, c.UseDoubleWideMLP, c.HiddenSizePerLayer = 0, false, 0
	c.NumKeyValueHeads, c.NumGlobalKVHeads, c.AttentionKEqV = 4, 2, true
	return &c
}

// invariant: the same on models of other shapes, and where full layers have a window or sliding layers have none.
func TestGraphsOfOtherModels(t *testing.T) {
	e2b := gemmatest.Config()
	noCap := gemmatest.Config()
	noCap.FinalLogitSoftcapping = 0
	for i, c := range []struct {
		config *gemma4.Config
		text   string
	}{
		{several(), "@3way"}, {several(), "@1way"}, {&e2b, "@4way"}, {&noCap, "@2way"},
		{&e2b, "L0-2 | L3-9+head attn=sliding:9"}, {several(), "L0-4 | L5-9+head attn=sliding:9 @4 attn=sliding:11"},
		{&e2b, "@2way @4 attn=duo:2+5:1001 @9 attn=duo:0+4:0110"}, {&e2b, "@4way @9 attn=sliding:6"}, {several(), "@3way attn=duokv:3+4:10"}, {&e2b, "@3way attn=flash:7"},
		{several(), "L0-4 | L5-9+head @4 attn=flash:16"}, {&e2b, "@2way attn=wfa:9"},
		{&e2b, "@3way attn=stream:2+6"}, {&e2b, "@4way @4 attn=stream:3+5 @9 attn=stream:3+4"}, {several(), "@3way @4 attn=stream:1+7"}, {several(), "L0-4 | L5-9+head @9 attn=duokv:3+5:00 @4 attn=sliding:6"},
		{&e2b, "@1way @0 attn=stream:4+5 @1 attn=stream:2+4 @2 attn=stream:2+4"}, {&e2b, "@2way @3 attn=stream:30+3 attn=stream:5+4"},
		{&e2b, "@2way @7 attn=sliding:5"}, {&e2b, "@2way @1 attn=sliding:5 @2 attn=sliding:9"},
	} {
		o := emit.Options{Prefill: []int{12}, Verify: 4, Window: run.VerifyWindow(i % 2)}
		t.Run(fmt.Sprintf("%s/%s", c.text, o.Window), func(t *testing.T) {
			t.Parallel()
			exercise(t, newSubject(t, c.config, c.text+" context=25", "f16", o), o)
		})
	}
}

// exercise drives a session through every function.
func exercise(t testing.TB, s *subject, o emit.Options) {
	t.Helper()
	ctx, calls, n, k := context.Background(), 0, o.Prefill[0], o.Verify
	session, err := run.NewSession(s.model, s.plan)
	require.NoError(t, err)
	session.Watch(s.watcher(t, &calls))
	prefill, err := run.PrefillOf(s.plan, n)
	require.NoError(t, err)
	verify, err := run.VerifyOf(s.plan, k, o.Window)
	require.NoError(t, err)
	tokens := prompt(s.plan.Context, s.model.Config.VocabSize)
	_, err = session.Prefill(ctx, prefill, tokens[:n-2])
	require.NoError(t, err)
	for i := 0; session.Next()+k <= s.plan.Context; i++ {
		at := session.Next()
		_, err = session.Verify(ctx, verify, tokens[at:at+k])
		require.NoError(t, err)
		require.NoError(t, session.Accept(i%(k+1)))
		if session.Next() < s.plan.Context {
			_, err = session.Step(ctx, tokens[session.Next()])
			require.NoError(t, err)
		}
	}
	require.NotZero(t, calls)
}
