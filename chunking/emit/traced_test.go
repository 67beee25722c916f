package emit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/chunking/run"
	"anelab/coreml/interp"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
	"anelab/quant"

	"github.com/stretchr/testify/require"
)

// tracedEntry is what an index says about a package of CoreML-LLM's.
type tracedEntry struct {
	Cases      []struct{ Name, Function string }
	Tolerance  map[string]struct{ Atol, Rtol, RelRMS float64 }
	FreeTokens []string
}

// tracedIndex reads the index of a folder.
func tracedIndex(t *testing.T, folder string) map[string]tracedEntry {
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	require.NoError(t, err)
	text = []byte(strings.NewReplacer(`"rel_rms"`, `"RelRMS"`, `"free_tokens"`, `"FreeTokens"`).Replace(string(text)))
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &raw))
	entries := map[string]tracedEntry{}
	for name, message := range raw {
		if strings.HasPrefix(name, "_") {
			continue
		}
		var e tracedEntry
		require.NoError(t, json.Unmarshal(message, &e), name)
		entries[name] = e
	}
	return entries
}

// under lists the tensors below a prefix.
func under(t *testing.T, set *safetensors.Set, prefix string) map[string]*interp.Tensor {
	found := map[string]*interp.Tensor{}
	for _, name := range set.Names() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			x, err := set.Tensor(name)
			require.NoError(t, err)
			found[rest], err = interp.FromStored(x)
			require.NoError(t, err)
		}
	}
	return found
}

// oracle: CoreML-LLM's own modules in torch, float32, on the inputs of its chunks. Our programs of the same layouts take the same
// ports, states included, and give the same tensors within the tolerance that its own packages have. A prefill of more tokens than
// the window is compared with a layout without windows: the modules have none there (spec forward.md ⚠ D).
func TestEmittedChunksAreTheTracedOnes(t *testing.T) {
	dir := shareddata.Dir(t, "coreml/chunks")
	src, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer src.Close()
	model, err := chunking.NewModel(src.Config)
	require.NoError(t, err)
	noWindow := ""
	for _, y := range model.Layers {
		noWindow += fmt.Sprintf(" @%d attn=full", y.Index)
	}
	for _, c := range []struct {
		folder, layout, pattern string
		o                       emit.Options
		only                    string // one case of many
	}{
		{"4chunk_fp16", "@4way", "chunk%d", emit.Options{}, ""},
		{"3chunk_fp16", "@3way", "", emit.Options{}, ""},
		{"stateful_fp16", "@4way", "chunk_%d", emit.Options{Caches: emit.StateCaches}, ""},
		{"prefill_fp16", "@4way", "prefill_chunk%d", emit.Options{Prefill: []int{8}}, "b8"},
		{"prefill_fp16", "@4way" + noWindow, "prefill_chunk%d", emit.Options{Prefill: []int{16}}, "b16"},
		{"verify_fp16", "@4way", "chunk%d", emit.Options{Verify: 3, Window: run.ShiftedWindow}, ""},
	} {
		t.Run(c.folder+c.only, func(t *testing.T) {
			l, err := chunking.Parse(c.layout+" context=32", model)
			require.NoError(t, err)
			for i := range l.Cuts {
				l.Cuts[i].Weights = quant.DenseF16
			}
			plan, err := l.Plan(model)
			require.NoError(t, err)
			chunks, err := emit.Emit(context.Background(), plan, src, c.o)
			require.NoError(t, err)
			folder := filepath.Join(dir, c.folder)
			index := tracedIndex(t, folder)
			for i, chunk := range chunks {
				name := chunk.Name
				if c.pattern != "" {
					name = fmt.Sprintf(c.pattern, i+1)
				}
				compareTraced(t, filepath.Join(folder, name), index[name], chunk, c.only)
			}
		})
	}
}

// compareTraced runs the cases of one package.
func compareTraced(t *testing.T, path string, e tracedEntry, chunk *emit.Chunk, only string) {
	set, err := safetensors.Open(path + ".safetensors")
	require.NoError(t, err)
	defer set.Close()
	graph, err := interp.New(chunk.Package.Program, interp.Options{Precision: interp.ANE, Path: chunk.Name})
	require.NoError(t, err)
	ran := 0
	for _, c := range e.Cases {
		if only != "" && c.Name != only {
			continue
		}
		where := filepath.Base(path) + " " + c.Name
		state := interp.State(under(t, set, c.Name+"/state_in/"))
		out, err := graph.Run(context.Background(), c.Function, under(t, set, c.Name+"/in/"), interp.Call{State: state})
		require.NoError(t, err, where)
		want := under(t, set, c.Name+"/out/")
		require.Len(t, out, len(want), where)
		for name, x := range want {
			requireWithin(t, where+" "+name, x, out[name], e, slices.Contains(e.FreeTokens, c.Name), name)
		}
		for name, x := range under(t, set, c.Name+"/state_out/") {
			requireWithin(t, where+" "+name, x, state[name], e, false, "states")
		}
		ran++
	}
	require.NotZero(t, ran)
}

// requireWithin judges a tensor by the tolerance that the index gives it.
func requireWithin(t *testing.T, where string, want, got *interp.Tensor, e tracedEntry, free bool, name string) {
	require.NotNil(t, got, where)
	require.Equal(t, want.Shape, got.Shape, where)
	if want.Ints != nil || free && strings.HasPrefix(name, "token") {
		require.True(t, free || slices.Equal(want.Ints, got.Ints), "%s: %v, want %v", where, got.Ints, want.Ints)
		return
	}
	b, ok := e.Tolerance[name]
	require.True(t, ok, where)
	var square, diff float64
	for i, x := range want.Floats {
		d := math.Abs(float64(got.Floats[i]) - float64(x))
		require.LessOrEqual(t, d, b.Atol+b.Rtol*math.Abs(float64(x)), "%s[%d]", where, i)
		square, diff = square+float64(x)*float64(x), diff+d*d
	}
	if diff > 0 {
		require.LessOrEqual(t, math.Sqrt(diff/square), b.RelRMS, where)
	}
}
