package talk

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/coreml/bundle"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/quant"
)

// A bundle that we write says what the Go model says that reads the same int8 tables, greedy and sampled.
func TestBundlesSayWhatTheModelSays(t *testing.T) { // invariant, past the window
	src, err := checkpoint.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata", "golden", "tiny-e2b", "bf16"))
	require.NoError(t, err)
	defer src.Close()
	for _, layout := range []string{"@2way", "@3way", "@4way", "@topo1", "L0-3 | L4-9+head", "@3way attn=stream:2+5", "@2way @4 attn=stream:1+4"} {
		b, policies := written(t, src, layout)
		model, err := gemma4.Load(src.Config, src, arith.NewANE(arith.ANERules{}, 1), gemma4.Options{Rows: b.Tables, Policies: policies})
		require.NoError(t, err)
		programs, whole := &Engine{Context: 33, Speaker: Programs{b}}, &Engine{Context: 33, Speaker: Whole{model}}
		for _, s := range []gemma4.Sampling{gemma4.Greedy(), {Temperature: 1.5, TopK: 40, Seed: 5}} {
			r := Request{Prompt: []int{2, 105, 37}, Most: 17, Sampling: s}
			want, _, _ := said(t, whole, r)
			got, _, result := said(t, programs, r)
			require.Equal(t, want, got, layout)
			require.Equal(t, Length, result.Finish)
		}
		require.Positive(t, programs.Speaker.StepBytes())
		require.Positive(t, programs.Speaker.KVBytes(33))
		require.Contains(t, programs.Speaker.Ends(), 106)
	}
}

// written is a bundle of a layout.
func written(t *testing.T, src *checkpoint.Checkpoint, layout string) (*bundle.Bundle, map[int]attention.Policy) {
	t.Helper()
	m, err := chunking.NewModel(src.Config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	l.Context = 33
	for i := range l.Cuts {
		l.Cuts[i].Weights = quant.Encoding{DType: quant.F16, Bits: 16}
	}
	policies, err := l.Policies(m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	chunks, err := emit.Emit(context.Background(), plan, src, emit.Options{})
	require.NoError(t, err)
	dir := t.TempDir()
	for _, c := range chunks {
		_, err := c.Write(context.Background(), dir, nil)
		require.NoError(t, err)
	}
	require.NoError(t, bundle.Write(context.Background(), dir, bundle.Contents{Model: src.Config, Source: src, Context: 33}, nil))
	b, err := bundle.Open(dir, bundle.Options{Precision: interp.ANE, Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b, policies
}
