package place

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/coreml/census"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/gemma4"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/quant"

	"github.com/stretchr/testify/require"
)

func modelOf(t *testing.T, path string) *chunking.Model {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, text)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	return m
}

func planOf(t *testing.T, m *chunking.Model, text string) *chunking.Plan {
	l, err := chunking.Parse(text, m)
	require.NoError(t, err)
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

// requireSamePlan holds a plan that was read against that of the layout: totals of every chunk, and the price on two devices.
func requireSamePlan(t *testing.T, want *chunking.Plan, r *Reading) {
	t.Helper()
	got := r.Plan
	require.Empty(t, r.Unknown)
	require.Equal(t, want.Layout.String(), got.Layout.String())
	require.Equal(t, want.Context, got.Context)
	require.Len(t, got.Chunks, len(want.Chunks))
	for i, w := range want.Chunks {
		require.Equal(t, w.Totals, got.Chunks[i].Totals, w)
		require.Equal(t, w.String(), got.Chunks[i].String())
		require.Equal(t, w.Weights, got.Chunks[i].Weights)
		require.Equal(t, portsByName(w.Inputs), portsByName(got.Chunks[i].Inputs))
		require.Equal(t, portsByName(w.Outputs), portsByName(got.Chunks[i].Outputs))
	}
	for _, name := range []string{"iphone17pro", "mac"} {
		d, err := devices.Load(name)
		require.NoError(t, err)
		a, b := anesim.Predict(want, d, anesim.Workload{}), anesim.Predict(got, d, anesim.Workload{})
		require.InEpsilon(t, a.TimeS, b.TimeS, 0.01)
		require.InEpsilon(t, a.TimeRange.Hi, b.TimeRange.Hi, 0.01)
	}
}

// portsByName leaves out which layers stand behind a port, which no package says.
func portsByName(ports []chunking.Port) map[string]chunking.Port {
	all := map[string]chunking.Port{}
	for _, p := range ports {
		p.Layers = nil
		all[p.Name] = p
	}
	return all
}

// oracle: packages of another converter against the plan of their layout.
func TestPlansOfConvertedChunks(t *testing.T) {
	folder := shareddata.Dir(t, "coreml/chunks")
	m := modelOf(t, filepath.Join(folder, "config.json"))
	four, three := []string{"chunk1", "chunk2", "chunk3", "chunk4"}, []string{"chunk1", "chunk2_3way", "chunk3_3way"}
	for _, c := range []struct {
		folder, layout, function string
		files                    []string
	}{
		{"4chunk_fp16", "L0-4 w=f16 | L5-9 w=f16 | L10-14 w=f16 | L15-19+head w=f16 context=32", "main", four},
		{"4chunk_w4", "L0-4 | L5-9 | L10-14 | L15-19+head context=32", "main", four},
		{"3chunk_fp16", "L0-4 w=f16 | L5-14 w=f16 | L15-19+head w=f16 context=32", "main", three},
		{"3chunk_w4", "L0-4 | L5-14 | L15-19+head context=32", "main", three},
		{"verify_fp16", "L0-4 w=f16 | L5-9 w=f16 | L10-14 w=f16 | L15-19+head w=f16 context=32 tokens=3", "verify_qK", four},
	} {
		t.Run(c.folder, func(t *testing.T) {
			var functions []*mil.Function
			for _, name := range c.files {
				p, err := mlpackage.Open(filepath.Join(folder, c.folder, name+".mlpackage"))
				require.NoError(t, err)
				t.Cleanup(func() { p.Close() })
				functions = append(functions, p.Program.Function(c.function))
			}
			r, err := ReadPlan(functions)
			require.NoError(t, err)
			requireSamePlan(t, planOf(t, m, c.layout), r)
		})
	}
}

// oracle: packages with states have the weights and products of the decode plan and no caches among their ports; those of a prompt
// in batches, the weights and products of a plan of as many tokens whose context is the batch.
func TestPlansOfOtherFunctions(t *testing.T) {
	folder := shareddata.Dir(t, "coreml/chunks")
	m := modelOf(t, filepath.Join(folder, "config.json"))
	for _, c := range []struct{ folder, prefix, function, layout string }{
		{"stateful_fp16", "chunk_", "main", "L0-4 w=f16 | L5-9 w=f16 | L10-14 w=f16 | L15-19+head w=f16 context=32"},
		{"stateful_w4", "chunk_", "main", "L0-4 | L5-9 | L10-14 | L15-19+head context=32"},
		{"prefill_fp16", "prefill_chunk", "prefill_b8", "L0-4 w=f16 | L5-9 w=f16 | L10-14 w=f16 | L15-19+head w=f16 context=8 tokens=8"},
		{"prefill_w4", "prefill_chunk", "prefill_b8", "L0-4 | L5-9 | L10-14 | L15-19+head context=8 tokens=8"},
	} {
		t.Run(c.folder, func(t *testing.T) {
			want := planOf(t, m, c.layout)
			var functions []*mil.Function
			for i := range want.Chunks {
				p, err := mlpackage.Open(filepath.Join(folder, c.folder, fmt.Sprintf("%s%d.mlpackage", c.prefix, i+1)))
				require.NoError(t, err)
				t.Cleanup(func() { p.Close() })
				functions = append(functions, p.Program.Function(c.function))
			}
			r, err := ReadPlan(functions)
			require.NoError(t, err)
			require.Empty(t, r.Unknown)
			for i, w := range want.Chunks {
				a, b := w.Totals, r.Plan.Chunks[i].Totals
				require.Zero(t, b.CacheInBytes)
				if w.Head && want.Layout.QueryTokens > 1 { // of a prompt only the last token needs logits
					a.MACs -= int64(want.Layout.QueryTokens-1) * int64(m.Config.VocabSize*m.Config.HiddenSize)
				}
				for _, x := range []*chunking.Totals{&a, &b} {
					x.CacheBytes, x.CacheInBytes, x.InputBytes, x.OutputBytes = 0, 0, 0, 0
				}
				require.Equal(t, a, b, w)
			}
		})
	}
}

// emitted are the decode functions of a plan's chunks.
func emitted(t *testing.T, p *chunking.Plan, src gemma4.Source) (functions []*mil.Function) {
	chunks, err := emit.Emit(context.Background(), p, src, emit.Options{})
	require.NoError(t, err)
	for _, c := range chunks {
		functions = append(functions, c.Package.Program.Functions[0])
	}
	return functions
}

// invariant: what is emitted of a plan reads back as that plan.
func TestPlansOfEmittedChunks(t *testing.T) {
	root := shareddata.ModuleRoot(t)
	m := modelOf(t, filepath.Join(root, "testdata", "configs", "e2b.json"))
	zeros := blank{m, make([]byte, 2*m.Config.VocabSize*m.Config.HiddenSize)}
	t.Run("e2b", func(t *testing.T) {
		for _, text := range []string{"@4way", "@3way", "@2way context=8192", "@topo1 context=512"} {
			p := planOf(t, m, text)
			r, err := ReadPlan(emitted(t, p, zeros))
			require.NoError(t, err)
			requireSamePlan(t, p, r)
		}
	})
	t.Run("tiny-e2b", func(t *testing.T) {
		src, err := checkpoint.Open(filepath.Join(root, "testdata", "golden", "tiny-e2b", "bf16"))
		require.NoError(t, err)
		defer src.Close()
		m, err := chunking.NewModel(src.Config)
		require.NoError(t, err)
		for _, text := range []string{"L0-9+head w=f16 context=24", "L0-4 w=f16 | L5-9+head w=f16 context=16", "L0-2 w=f16 | L3-6 w=f16 | L7-9+head w=f16 context=24"} {
			p := planOf(t, m, text)
			r, err := ReadPlan(emitted(t, p, src))
			require.NoError(t, err)
			requireSamePlan(t, p, r)
		}
	})
}

// blank is a checkpoint of zeros, which take no memory until somebody looks at them.
type blank struct {
	m     *chunking.Model
	bytes []byte // as many as the largest tensor has
}

func (blank) Path() string         { return "zeros" }
func (blank) Has(name string) bool { return true }
func (b blank) Tensor(name string) (quant.Tensor, error) {
	shape := b.shape(name)
	n := 2
	for _, d := range shape {
		n *= d
	}
	return quant.Tensor{Name: name, DType: quant.BF16, Shape: shape, Data: b.bytes[:n]}, nil
}

// shape is that of a tensor of the checkpoint: a weight's as the plan has it, else a gain's.
func (b blank) shape(name string) []int {
	c := b.m.Config
	var layer int
	_, err := fmt.Sscanf(name, "layers.%d.", &layer)
	l := b.m.Layers[layer]
	switch {
	case name == "embed_tokens.weight":
		return []int{c.VocabSize, c.HiddenSize}
	case name == "per_layer_model_projection.weight":
		return []int{len(b.m.Layers) * c.HiddenSizePerLayer, c.HiddenSize}
	case name == "per_layer_projection_norm.weight":
		return []int{c.HiddenSizePerLayer}
	case err != nil:
		return []int{c.HiddenSize}
	}
	for part, shape := range map[string][]int{
		"q_proj": {l.Heads * l.HeadDim, c.HiddenSize}, "k_proj": {l.KVWidth(), c.HiddenSize}, "v_proj": {l.KVWidth(), c.HiddenSize}, "o_proj": {c.HiddenSize, l.Heads * l.HeadDim},
		"gate_proj": {l.FFN, c.HiddenSize}, "up_proj": {l.FFN, c.HiddenSize}, "down_proj": {c.HiddenSize, l.FFN}, "q_norm": {l.HeadDim}, "k_norm": {l.HeadDim},
		"per_layer_input_gate": {c.HiddenSizePerLayer, c.HiddenSize}, "per_layer_projection": {c.HiddenSize, c.HiddenSizePerLayer}, "layer_scalar": {1},
	} {
		if strings.Contains(name, part) {
			return shape
		}
	}
	return []int{c.HiddenSize}
}

// hand: of E2B's chunks all that is known to be on the CPU is the end of the head (limits.csv: 8 ops on a phone, 9 of 841 on a
// Mac), in the plan and in the emitted graphs.
func TestPlacementOfE2B(t *testing.T) {
	m := modelOf(t, filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", "e2b.json"))
	p := planOf(t, m, "@3way")
	for i, at := range PredictPlan(p, Options{}) {
		require.True(t, at.Passes(), at.Function)
		off := len(at.Ops) - at.Count("ANE")
		if i < 2 {
			require.Zero(t, off, at.Function)
		} else {
			require.Equal(t, 8, off, "soft-cap, argmax and what follows")
		}
	}
	tail := setOf("squeeze transpose real_div tanh mul reduce_argmax gather_along_axis identity") // of our head; the first transpose ties
	for i, f := range emitted(t, p, blank{m, make([]byte, 2*m.Config.VocabSize*m.Config.HiddenSize)}) {
		at := Predict(f, Options{})
		t.Logf("chunk %d: %d of %d ops on the engine", i+1, at.Count("ANE"), len(at.Ops))
		for _, op := range at.Ops {
			if op.Backend != ANE {
				require.True(t, tail[op.Type], "%s %s: %s", op.Type, op.Name, op.Why())
			}
		}
		require.True(t, at.Passes())
	}
	old := Before16
	require.False(t, PredictPlan(planOf(t, m, "@1way w=f16"), Options{})[0].Passes(), "4 GB go to the GPU")
	require.True(t, PredictPlan(p, Options{Limits: old})[0].Passes())
}

// invariant: any package can be read: what has no term is named, and no weight is lost.
func TestAnyPackageReadsAsAPlan(t *testing.T) {
	named := map[string]int{}
	for _, path := range shareddata.Cases(t, "coreml/*/*.mlpackage") {
		p, err := mlpackage.Open(path)
		if err != nil {
			continue // coreml/corrupt
		}
		for _, f := range p.Program.Functions {
			r, err := ReadPlan([]*mil.Function{f})
			require.NoError(t, err, path)
			var stored int64
			for _, s := range census.Tally(census.Weights(f)) {
				if s.Encoding != "int32" {
					stored += s.Bytes
				}
			}
			require.LessOrEqual(t, r.Plan.Totals().WeightBytes, stored+64, path)
			for _, u := range r.Unknown {
				named[u.Class] += u.Ops
			}
			at := Predict(f, Options{})
			require.Equal(t, len(at.Ops), at.Count("ANE")+at.Count("CPU"))
		}
		require.NoError(t, p.Close())
	}
	t.Log(named)
	require.NotEmpty(t, named)
}
