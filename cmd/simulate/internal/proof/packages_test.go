package proof

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/chunking/run"
	"anelab/coreml"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
)

// smallModel is the committed checkpoint.
func smallModel(t *testing.T) *checkpoint.Checkpoint {
	c, err := checkpoint.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata/golden/tiny-e2b/bf16"))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// emitted are the packages of a layout, written and opened.
func emitted(t *testing.T, c *checkpoint.Checkpoint, layout string, o emit.Options) []*coreml.Model {
	m, err := chunking.NewModel(c.Config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	chunks, err := emit.Emit(t.Context(), plan, c, o)
	require.NoError(t, err)
	var programs []*coreml.Model
	for _, chunk := range chunks {
		path := filepath.Join(t.TempDir(), chunk.Name+".mlpackage")
		require.NoError(t, mlpackage.Write(t.Context(), path, chunk.Package, nil))
		p, err := coreml.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { p.Close() })
		programs = append(programs, p)
	}
	return programs
}

// comparison finds one of the comparisons.
func comparison(t *testing.T, r *Result, got string) *Comparison {
	for i := range r.Comparisons {
		if r.Comparisons[i].Got == got {
			return &r.Comparisons[i]
		}
	}
	t.Fatalf("nothing of %s was compared", got)
	return nil
}

// comparisonOr is one of the comparisons, empty if it was not made.
func comparisonOr(r *Result, got string) *Comparison {
	for i := range r.Comparisons {
		if r.Comparisons[i].Got == got {
			return &r.Comparisons[i]
		}
	}
	return &Comparison{}
}

// invariant: what our emitter writes of a checkpoint is that checkpoint: weights, chunks and graphs, with palettes and with states.
func TestPackagesOfOurOwn(t *testing.T) {
	c := smallModel(t)
	for name, x := range map[string]struct {
		layout     string
		options    emit.Options
		compressed bool
		also       []string
	}{
		"f16":                {"@3way w=f16 context=40", emit.Options{}, false, nil},
		"palettes":           {"L0-4 w=int4g32|L5-9+head w=int8 context=40", emit.Options{}, true, []string{"whole = whole with the checkpoint's weights"}},
		"states":             {"@4way w=f16 context=40", emit.Options{Caches: emit.StateCaches}, false, nil},
		"one file, states":   {"@1way w=f16 context=40", emit.Options{Caches: emit.StateCaches}, false, nil},
		"three, states":      {"@3way w=f16 context=40", emit.Options{Caches: emit.StateCaches}, false, nil},
		"blocks into states": {"@2way w=f16 context=40", emit.Options{Caches: emit.StateCaches, Prefill: []int{3}, Verify: 2}, false, []string{"prefill_b3 = whole", "verify_qK = whole"}},
		"many functions":     {"@2way w=f16 context=40", emit.Options{Prefill: []int{4, 19}, Verify: 3, Window: run.WholeWindow}, false, []string{"prefill_b19 = whole", "prefill_b4 = whole", "verify_qK = whole"}},
		"a wide window":      {"@2way w=f16 context=40 attn=wfa:16", emit.Options{}, false, nil},
		"streaming":          {"L0-4 w=f16|L5-9+head w=f16 context=40 @9 attn=stream:2+3", emit.Options{Prefill: []int{19}}, false, []string{"prefill_b19 = whole"}},
		"shifted drafts":     {"@3way w=f16 context=40", emit.Options{Verify: 3}, false, []string{"verify_qK = whole"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := RunPackages(context.Background(), &PackageSubject{Config: c.Config, Checkpoint: c, Programs: emitted(t, c, x.layout, x.options), Tokens: 19}, nil)
			require.NoError(t, err)
			require.True(t, r.OK())
			require.Len(t, r.Weights, 1)
			require.Equal(t, x.compressed, r.Weights[0].Compressed())
			require.Greater(t, comparison(t, r, "packages").Taps, 24*4*10)
			var compared []string
			for _, c := range r.Comparisons {
				compared = append(compared, c.Got+" = "+c.Want)
			}
			require.Equal(t, append([]string{"chunks = whole", "packages = whole"}, x.also...), compared)
			require.Equal(t, name == "many functions" || name == "blocks into states", len(comparisonOr(r, "verify_qK").Cases) == 2, "drafts in a window and in a full one")
		})
	}
}

// invariant: every decode set that CoreML-LLM's converter made is the model, bit for bit, with the choices that its graphs show.
func TestPackagesOfTheConverter(t *testing.T) {
	for _, index := range shareddata.Cases(t, "coreml/chunks*/*/index.json") {
		folder := filepath.Dir(index)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c, err := checkpoint.Open(filepath.Dir(folder))
			require.NoError(t, err)
			defer c.Close()
			paths, err := filepath.Glob(filepath.Join(folder, "*.mlpackage"))
			require.NoError(t, err)
			s := &PackageSubject{Config: c.Config, Checkpoint: c, Tokens: 11}
			for _, path := range paths {
				p, err := coreml.Open(path)
				require.NoError(t, err)
				defer p.Close()
				s.Programs = append(s.Programs, p)
			}
			r, err := RunPackages(context.Background(), s, nil)
			require.NoError(t, err)
			require.True(t, r.OK())
			for _, x := range r.Comparisons {
				if x.Exact {
					t.Logf("%s = %s: %d tensors, every element", x.Got, x.Want, x.Taps)
				}
			}
			if strings.HasPrefix(filepath.Base(folder), "prefill") {
				require.Equal(t, "whole without windows", r.Comparisons[1].Want)
				require.Contains(t, strings.Join(r.Warnings, "\n"), "prefill_b16 knows no window")
			}
		})
	}
}

// ops yields the ops of a type in a layer's part of a program, by the names that our emitter gives them.
func findOp(t *testing.T, p *coreml.Model, name string) *mil.Op {
	for _, op := range p.Functions[0].Body.Ops {
		if op.Name() == name {
			return op
		}
	}
	t.Fatalf("%s has no op %s", p.Path, name)
	return nil
}

// hand: a graph with one op changed parts first where that op's result is used, and the report names tensor, op, layer and package.
func TestPlantedFaultsAreNamed(t *testing.T) {
	c := smallModel(t)
	for name, x := range map[string]struct {
		plant      func(t *testing.T, p *coreml.Model) // on the second package
		tensor, op string
		layer      int
		wrong      string // weight
	}{
		"gelu of another form": {plant: func(t *testing.T, p *coreml.Model) {
			for _, op := range p.Functions[0].Body.Ops {
				if op.Type == "gelu" {
					setText(t, p, op, "mode", "EXACT")
					return
				}
			}
		}, tensor: "ffn_out.5 [0,1)", op: "layers_5_mlp_down_proj", layer: 5},
		"another soft-cap": {plant: func(t *testing.T, p *coreml.Model) { doubleFactor(t, p, "tanh") }, tensor: "logits [0,1)", op: "", layer: -1},
		"a gain is scaled": {plant: func(t *testing.T, p *coreml.Model) {
			v := findOp(t, p, "layers_7_post_attention_layernorm_weight").Attribute("val")
			raw, err := v.Bytes()
			require.NoError(t, err)
			changed := append([]byte{}, raw...)
			changed[1] ^= 4 // twice or half as much
			v.Content = mil.Raw(changed)
		}, wrong: "layers.7.post_attention_layernorm.weight"},
	} {
		t.Run(name, func(t *testing.T) {
			programs := emitted(t, c, "L0-4 w=f16|L5-9+head w=f16 context=40", emit.Options{})
			x.plant(t, programs[1])
			r, err := RunPackages(context.Background(), &PackageSubject{Config: c.Config, Checkpoint: c, Programs: programs, Tokens: 5}, nil)
			require.NoError(t, err)
			require.False(t, r.OK())
			if x.wrong != "" {
				require.Equal(t, x.wrong, r.Weights[0].First.Name)
				require.Contains(t, r.Weights[0].First.Err.Error(), "of 48 elements differ")
				return
			}
			f := comparison(t, r, "packages").First
			require.Equal(t, x.tensor, f.Tensor)
			require.Equal(t, x.layer, f.Layer)
			require.Contains(t, f.Op, x.op)
			require.Contains(t, f.Op, "main/")
			if x.layer >= 0 {
				require.Equal(t, "merged_chunk2", f.Chunk)
			}
		})
	}
}

// setText changes a string parameter of an op.
func setText(t *testing.T, p *coreml.Model, op *mil.Op, param, text string) {
	b := op.Input(param)
	require.NotEmpty(t, b, param)
	if b[0].Value != nil {
		b[0].Value.Content = mil.Strings{text}
		return
	}
	value := mil.Scalar(text)
	at := &mil.Op{Type: "const", Outputs: []mil.Variable{{Name: "planted", Type: value.Type}}, Attributes: []mil.Attribute{{Name: "val", Value: value}}}
	body := p.Functions[0].Body
	body.Ops = append([]*mil.Op{at}, body.Ops...)
	b[0].Name = "planted"
}

// doubleFactor changes the constant that the result of the last op of a type is multiplied with.
func doubleFactor(t *testing.T, p *coreml.Model, kind string) {
	f := p.Functions[0]
	for _, op := range f.Body.Ops {
		if op.Type != kind {
			continue
		}
		for _, next := range f.Body.Consumers()[op.Outputs[0].Name] {
			v := findOp(t, p, next.Input("y")[0].Name).Attribute("val")
			v.Content = mil.Scalar(mil.F16(0x5000)).Content // 32
			return
		}
	}
	t.Fatal("no such product")
}
