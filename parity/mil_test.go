package parity_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/miltext"
	"anelab/coreml/mlpackage"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
	"anelab/parity"

	"github.com/stretchr/testify/require"
)

// milFixture opens a package of the committed ones and the tensors of a case: "a/in/", "a/out/", …
func milFixture(t *testing.T, name string, p interp.Precision) (parity.MIL, func(prefix string) map[string]*interp.Tensor) {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name+".mlpackage")
	pkg, err := mlpackage.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { pkg.Close() })
	m, err := interp.New(pkg.Program, interp.Options{Precision: p})
	require.NoError(t, err)
	set, err := safetensors.Open(strings.TrimSuffix(path, ".mlpackage") + ".safetensors")
	require.NoError(t, err)
	t.Cleanup(func() { set.Close() })
	return parity.MIL{Label: name + " " + p.String(), Model: m}, func(prefix string) map[string]*interp.Tensor {
		found := map[string]*interp.Tensor{}
		for _, n := range set.Names() {
			if rest, ok := strings.CutPrefix(n, prefix); ok {
				q, err := set.Tensor(n)
				require.NoError(t, err)
				found[rest], err = interp.FromStored(q)
				require.NoError(t, err)
			}
		}
		return found
	}
}

func TestProgramAgainstItself(t *testing.T) { // invariant
	for _, name := range []string{"gemma_mlp_block", "ios16_lut_w4", "lut_w4_odd_count"} {
		m, tensors := milFixture(t, name, interp.FP16)
		r, err := parity.ComparePrograms(context.Background(), m, m, parity.ProgramCall{Inputs: tensors("a/in/")}, parity.ProgramSettings{})
		require.NoError(t, err)
		require.NoError(t, r.Err())
		require.NotZero(t, r.Compared)
		require.Equal(t, r.Compared, r.Identical)
		require.Zero(t, r.OnlyGot+r.OnlyWant)
	}
}

func TestPrecisionsPartAtTheFirstRounding(t *testing.T) { // invariant: the first op that rounds is where fp16 leaves exact
	a, tensors := milFixture(t, "gemma_mlp_block", interp.FP16)
	b, _ := milFixture(t, "gemma_mlp_block", interp.Exact)
	call := parity.ProgramCall{Inputs: tensors("a/in/")}
	r, err := parity.ComparePrograms(context.Background(), a, b, call, parity.ProgramSettings{})
	require.NoError(t, err)
	require.Equal(t, "layer_norm", r.First.Op)
	require.ErrorContains(t, r.Err(), "gemma_mlp_block fp16 parts from gemma_mlp_block exact at")
	require.Contains(t, r.String(), "cosine")
	require.Contains(t, r.First.Detail, "got-want")

	all, err := parity.ComparePrograms(context.Background(), a, b, call, parity.ProgramSettings{KeepGoing: true})
	require.NoError(t, err)
	require.Equal(t, r.First.Name, all.First.Name)
	require.Greater(t, all.Compared, r.Compared)
	require.Greater(t, all.Partings, 1)
	near, err := parity.ComparePrograms(context.Background(), a, b, call, parity.ProgramSettings{Tolerance: parity.Tolerance{PeakRel: 0.01}})
	require.NoError(t, err)
	require.NoError(t, near.Err())
}

// hand: one op is inserted, all results behind it have new names, and one constant is another; the parting is at that constant's op.
func TestChangedProgramIsAlignedByWhatItsOpsDo(t *testing.T) {
	a, tensors := milFixture(t, "gemma_mlp_block", interp.FP16)
	b, _ := milFixture(t, "gemma_mlp_block", interp.FP16)
	body := a.Model.Program.Functions[0].Body
	renamed := map[string]string{}
	for _, op := range body.Ops {
		for i := range op.Outputs {
			renamed[op.Outputs[i].Name] = op.Outputs[i].Name + "_v2"
			op.Outputs[i].Name += "_v2"
		}
		for _, arg := range op.Inputs {
			for i, binding := range arg.Bindings {
				if to, ok := renamed[binding.Name]; ok {
					arg.Bindings[i].Name = to
				}
			}
		}
	}
	for i, name := range body.Outputs {
		body.Outputs[i] = renamed[name]
	}
	changed := scaledMul(t, body)
	m, err := interp.New(a.Model.Program, interp.Options{Precision: interp.FP16})
	require.NoError(t, err)
	r, err := parity.ComparePrograms(context.Background(), parity.MIL{Label: "new", Model: m}, b, parity.ProgramCall{Inputs: tensors("a/in/")}, parity.ProgramSettings{})
	require.NoError(t, err)
	require.Equal(t, 1, r.OnlyGot)
	require.Zero(t, r.OnlyWant)
	require.Equal(t, changed, r.First.Name)
	require.Equal(t, strings.TrimSuffix(changed, "_v2"), r.First.Other)
	require.Equal(t, "mul", r.First.Op)
}

// scaledMul puts an op nobody needs at the start of a block and doubles the constant of the last product with one.
func scaledMul(t *testing.T, body *mil.Block) (name string) {
	values, last := map[string]*mil.Value{}, (*mil.Value)(nil)
	for _, op := range body.Ops {
		if op.Type == "const" {
			values[op.Outputs[0].Name] = op.Attribute("val")
			continue
		}
		if y := op.Input("y"); op.Type == "mul" && y != nil && values[y[0].Name] != nil && values[y[0].Name].Type.IsScalar() {
			name, last = op.Outputs[0].Name, values[y[0].Name]
		}
	}
	require.NotEmpty(t, name)
	last.Content = mil.Scalar(mil.F16(0x4000)).Content // 2
	for i, op := range body.Ops {
		if op.Type == "layer_norm" {
			extra := &mil.Op{Type: "square", Inputs: []mil.Argument{mil.Arg("x", op.Input("x")[0])}, Outputs: []mil.Variable{{Name: "extra", Type: op.Outputs[0].Type}}}
			body.Ops = append(body.Ops[:i:i], append([]*mil.Op{extra}, body.Ops[i:]...)...)
			break
		}
	}
	return name
}

func TestOutputsAgainstExpectedOnes(t *testing.T) { // oracle: the outputs and states of torch
	m, tensors := milFixture(t, "state_slice_update_attention", interp.FP16)
	state, err := m.Model.NewState("main")
	require.NoError(t, err)
	for _, c := range []string{"s0", "s1", "s2"} {
		expected := tensors(c + "/out/")
		maps.Copy(expected, tensors(c+"/state_out/"))
		call := parity.ProgramCall{Inputs: tensors(c + "/in/"), State: state}
		r, err := parity.CompareOutputs(context.Background(), m, call, expected, parity.ProgramSettings{Tolerance: parity.Tolerance{PeakRel: 0.01}})
		require.NoError(t, err)
		require.NoError(t, r.Err())
		require.Equal(t, len(expected), r.Compared)
	}
	expected := tensors("s0/out/")
	for _, x := range expected {
		x.Floats[0]++
	}
	r, err := parity.CompareOutputs(context.Background(), m, parity.ProgramCall{Inputs: tensors("s0/in/")}, expected, parity.ProgramSettings{Tolerance: parity.Tolerance{PeakRel: 0.01}})
	require.NoError(t, err)
	require.Equal(t, "output", r.First.Op)
	require.Equal(t, 0, r.First.Err.FirstBad)
}

func TestProgramsThatCannotRun(t *testing.T) { // hand
	m, _ := milFixture(t, "gemma_mlp_block", interp.FP16)
	_, err := parity.ComparePrograms(context.Background(), m, m, parity.ProgramCall{}, parity.ProgramSettings{})
	require.ErrorIs(t, err, interp.ErrMissingInput)
	require.ErrorContains(t, err, m.Label)
	m.Function = "prefill"
	_, err = parity.ComparePrograms(context.Background(), m, m, parity.ProgramCall{}, parity.ProgramSettings{})
	require.ErrorIs(t, err, interp.ErrFunction)
}

// asText writes a package in the form that Apple's compiler leaves, as far as a program needs it: text and weights.
func asText(t *testing.T, pkg string) string {
	p, err := mlpackage.Open(pkg)
	require.NoError(t, err)
	defer p.Close()
	folder := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(pkg), ".mlpackage")+".mlmodelc")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "weights"), 0o755))
	var text strings.Builder
	require.NoError(t, miltext.Print(&text, p.Program, miltext.DialectOf(p.Program)))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "model.mil"), []byte(text.String()), 0o644))
	weights, err := os.ReadFile(filepath.Join(pkg, "Data", "com.apple.CoreML", "weights", "weight.bin"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "weights", "weight.bin"), weights, 0o644))
	return folder
}

// invariant: a program is the same in both forms, op by op.
func TestTextFormIsThePackage(t *testing.T) {
	for _, name := range []string{"gemma_mlp_block", "lut_w4_odd_count"} {
		pkg, tensors := milFixture(t, name, interp.FP16)
		compiled, err := coreml.Open(asText(t, filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name+".mlpackage")))
		require.NoError(t, err)
		defer compiled.Close()
		m, err := interp.New(compiled.Program, interp.Options{Precision: interp.FP16})
		require.NoError(t, err)
		r, err := parity.ComparePrograms(context.Background(), parity.MIL{Label: "text", Model: m}, pkg, parity.ProgramCall{Inputs: tensors("a/in/")}, parity.ProgramSettings{})
		require.NoError(t, err)
		require.NoError(t, r.Err())
		require.Equal(t, r.Compared, r.Identical)
		require.Zero(t, r.OnlyGot+r.OnlyWant)
	}
}
