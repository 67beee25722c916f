package recorded_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/shareddata"
	"anelab/parity"
	"anelab/parity/recorded"
)

// chain is the packages of one converter run and the checkpoint they were made of.
type chain struct {
	folder string
	base   *checkpoint.Checkpoint
	src    *converted.Source
	rows   int // context of the plan
}

func openChain(t *testing.T, folder string) *chain {
	c := &chain{folder: folder}
	var err error
	c.base, err = checkpoint.Open(filepath.Dir(folder))
	require.NoError(t, err)
	t.Cleanup(func() { c.base.Close() })
	paths, err := filepath.Glob(filepath.Join(folder, "*.mlpackage"))
	require.NoError(t, err)
	c.src, err = converted.Open(c.base.Config, c.base, paths...)
	require.NoError(t, err)
	t.Cleanup(func() { c.src.Close() })
	for _, chunk := range c.src.Chunks {
		for _, f := range chunk.Functions {
			c.rows = max(c.rows, int(coreml.Context(f)), coreml.Tokens(f))
		}
	}
	return c
}

// palettes reports whether weights were changed when the packages were made.
func (c *chain) palettes(t *testing.T) bool {
	m, err := c.src.Matrix("layers.0.mlp.up_proj.weight")
	require.NoError(t, err)
	return m.Encoding().Palette()
}

// weightsFrom says where the Go model takes its weights.
type weightsFrom string

const (
	fromCheckpoint weightsFrom = "checkpoint"
	fromPackages   weightsFrom = "packages"
)

// shiftedIn is the window of a verify call that has shifted its rows in: nothing before lo is left for any row. To the plan it is the
// window that it is.
type shiftedIn struct {
	attention.Sliding
	lo int
}

// Visible is lo … pos.
func (s shiftedIn) Visible(dst []swaSpan, _ int, pos int) []swaSpan {
	return append(dst, swaSpan{Lo: max(s.lo, pos-s.Window+1), Hi: pos + 1})
}

// executor is the chunked Go model for one kind of call.
func (c *chain) executor(t *testing.T, from weightsFrom, call *recordedCall) *run.Executor {
	layers, err := c.base.Config.Layers()
	require.NoError(t, err)
	policies := map[int]attention.Policy{}
	layout := chunking.Layout{Context: c.rows}
	for _, chunk := range c.src.Chunks {
		layout.Cuts = append(layout.Cuts, chunking.Cut{Lo: chunk.Lo, Hi: chunk.Hi, Head: chunk.Hi == len(layers)})
	}
	for i, y := range layers {
		switch {
		case y.Kind != gemma4.Sliding:
		case call.kind == run.Prefill: // upstream's prefill has no window (spec forward.md §4.9, D)
			policies[i] = attention.Full{}
			layout.Attn = append(layout.Attn, chunking.LayerAttn{Layer: i, Policy: "full"})
		case call.kind == run.Verify:
			policies[i] = shiftedIn{attention.Sliding{Window: y.Window}, max(0, call.pos+call.tokens-y.Window)}
		}
	}
	var weights gemma4.Source = c.base
	a := arith.NewANE(c.src.Choices.Rules, 0)
	if from == fromPackages {
		weights, a = c.src, c.src.Arithmetic(0)
	}
	model, err := gemma4.Load(c.base.Config, weights, a, gemma4.Options{Policies: policies})
	require.NoError(t, err)
	cm, err := chunking.NewModel(c.base.Config)
	require.NoError(t, err)
	plan, err := layout.Plan(cm)
	require.NoError(t, err)
	e, err := run.New(model, plan)
	require.NoError(t, err)
	return e
}

// figures sum up a set.
type figures struct {
	calls  int
	relRMS float64 // greatest share of an allowed rel_rms
	where  string
}

// replay runs all recorded calls of all chunks of a set through the Go model.
func (c *chain) replay(t *testing.T, from weightsFrom) (sum figures) {
	executors := map[string]*run.Executor{}
	for i, chunk := range c.src.Chunks {
		f, err := recorded.Open(filepath.Join(c.folder, chunk.Name()+".safetensors"))
		require.NoError(t, err)
		defer f.Close()
		for _, cs := range f.Cases {
			call := c.recorded(t, f, cs, chunk)
			key := fmt.Sprint(call.kind, call.tokens)
			if call.kind == run.Verify {
				key += fmt.Sprint(call.pos)
			}
			if executors[key] == nil {
				executors[key] = c.executor(t, from, call)
			}
			got := call.run(t, executors[key], i)
			want, err := f.Expected(cs, parity.Tolerance{})
			require.NoError(t, err)
			label := chunk.Name() + "/" + cs.Name
			r := parity.Judge(label, got, want.Tensors, parity.ProgramSettings{Own: want.Tolerances, Free: want.Free, KeepGoing: true}, nil)
			require.NoError(t, r.Err(), r.String())
			require.Zero(t, r.OnlyWant, "%s: %v are not all of %v", label, keys(got), keys(want.Tensors))
			sum.add(label, &r)
		}
	}
	return sum
}

func (f *figures) add(label string, r *parity.ProgramReport) {
	f.calls++
	for _, o := range r.Outputs {
		if limit := o.Tolerance.MaxRelRMS; limit > 0 && o.Difference.RelRMS/limit > f.relRMS {
			f.relRMS, f.where = o.Difference.RelRMS/limit, label+" "+o.Name
		}
	}
}

// oracle: outputs of CoreML-LLM's torch modules, for every step of every set: decode, states, prefill and verify, with weights of the
// checkpoint and with those of the packages; sets of palettes with those of the packages only.
func TestChunkedModelOnRecordedCalls(t *testing.T) {
	for _, index := range shareddata.Cases(t, "coreml/chunks*/*/index.json") {
		folder := filepath.Dir(index)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c := openChain(t, folder)
			sources := []weightsFrom{fromCheckpoint, fromPackages}
			if c.palettes(t) {
				sources = sources[1:]
			}
			for _, from := range sources {
				sum := c.replay(t, from)
				require.NotZero(t, sum.calls)
				t.Logf("weights of the %s: %d calls; at most %.2f of the allowed rel_rms, in %s", from, sum.calls, sum.relRMS, sum.where)
			}
		})
	}
}

// recorded finds out what kind of call a case is.
func (c *chain) recorded(t *testing.T, f *recorded.File, cs recorded.Case, chunk converted.Chunk) *recordedCall {
	in, err := f.Call(cs)
	require.NoError(t, err)
	fn := chunk.Program.Function(cs.Function)
	require.NotNil(t, fn, cs.Function)
	call := &recordedCall{in: in.Inputs, states: in.State, kind: run.Decode, tokens: coreml.Tokens(fn), window: c.base.Config.SlidingWindow, lo: chunk.Lo}
	mask := in.Inputs["causal_mask_full"]
	switch {
	case in.Inputs["causal_mask"] != nil:
		call.kind = run.Prefill
		return call
	case call.tokens > 1:
		call.kind = run.Verify
	}
	row := mask.Floats[:mask.Shape[3]]
	call.pos = len(row) - 1
	for call.pos > 0 && row[call.pos] != 0 {
		call.pos--
	}
	call.ring = isRing(fn)
	return call
}

// isRing reports whether windows are rings: chunks with states take masks that are filled with the least number.
func isRing(f *mil.Function) bool {
	return f.Input("ring_pos") != nil || len(f.States()) > 0 || slices.Contains(f.Body.Outputs, "hidden_normed") || f.Input("update_mask") == nil && coreml.Tokens(f) == 1
}

func keys(m map[string]*interp.Tensor) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var background = context.Background()
