package recorded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/coreml/interp"
	"anelab/coreml/mlpackage"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
	"anelab/parity"
	"anelab/parity/recorded"
	"anelab/quant"
)

// judge runs every recorded call of a package in a precision; it returns the number of cases.
func judge(t *testing.T, pkg string, p interp.Precision) int {
	open, err := mlpackage.Open(pkg)
	require.NoError(t, err)
	defer open.Close()
	m, err := interp.New(open.Program, interp.Options{Precision: p, Path: pkg})
	require.NoError(t, err)
	f, err := recorded.Open(strings.TrimSuffix(pkg, ".mlpackage") + ".safetensors")
	require.NoError(t, err)
	defer f.Close()
	var state interp.State
	for _, c := range f.Cases {
		call, err := f.Call(c)
		require.NoError(t, err)
		switch {
		case call.State != nil:
			state = call.State
		case c.State != recorded.CarryState:
			state, err = m.NewState(c.Function)
			require.NoError(t, err)
		}
		call.State = state
		want, err := f.Expected(c, parity.Tolerance{})
		require.NoError(t, err)
		r, err := parity.CompareOutputs(context.Background(), parity.MIL{Label: filepath.Base(pkg), Model: m, Function: c.Function}, call, want.Tensors,
			parity.ProgramSettings{Own: want.Tolerances, Free: want.Free, KeepGoing: true})
		require.NoError(t, err)
		require.NoError(t, r.Err(), c.Name)
		require.Equal(t, len(want.Tensors), r.Compared, c.Name)
	}
	return len(f.Cases)
}

func TestCommittedCalls(t *testing.T) { // oracle: outputs of torch, for packages of coremltools
	packages, err := filepath.Glob(filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", "*.mlpackage"))
	require.NoError(t, err)
	require.Len(t, packages, 6)
	cases := 0
	for _, pkg := range packages {
		cases += judge(t, pkg, interp.FP16)
	}
	require.Greater(t, cases, 8, "flexible shapes, two functions, three steps on one state")
}

func TestSharedCalls(t *testing.T) { // oracle
	for _, pattern := range []string{"coreml/ops/*.mlpackage", "coreml/chunks*/*/*.mlpackage"} {
		cases := 0
		for _, pkg := range shareddata.Cases(t, pattern) {
			cases += judge(t, pkg, interp.FP16)
		}
		t.Logf("%d calls of %s", cases, pattern)
	}
}

// save writes tensors of one element under the given names.
func save(t *testing.T, path string, names ...string) {
	var all []quant.Tensor
	for _, name := range names {
		all = append(all, quant.Tensor{Name: name, DType: quant.F16, Shape: []int{1}, Data: []byte{0, 0x3C}})
	}
	require.NoError(t, safetensors.Write(path, all, nil))
}

// hand: without an index, the names of the tensors say which calls there are and in which order.
func TestCasesOfNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.safetensors")
	save(t, path, "s10/in/x", "s10/out/y", "s9/in/x", "s9/out/y", "given/state_in/k", "given/in/x", "given/out/y")
	f, err := recorded.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []recorded.Case{{Name: "given", State: "given"}, {Name: "s9", State: "carry"}, {Name: "s10", State: "carry"}}, f.Cases)
	call, err := f.Call(f.Cases[0])
	require.NoError(t, err)
	require.Contains(t, call.State, "k")
	require.Equal(t, []float32{1}, call.Inputs["x"].Floats)
}

func TestFlatNames(t *testing.T) { // hand
	path := filepath.Join(t.TempDir(), "inputs.safetensors")
	save(t, path, "hidden_states", "cos_s")
	f, err := recorded.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []recorded.Case{{State: "zero"}}, f.Cases)
	call, err := f.Call(f.Cases[0])
	require.NoError(t, err)
	require.Len(t, call.Inputs, 2)
	require.Nil(t, call.State)
}

// hand: what is wrong with an index is said with its place.
func TestBrokenIndexes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":            {`{`, "unexpected end"},
		"a case twice":       {`{"x":{"cases":[{"name":"a"},{"name":"a"}]}}`, `x/cases: the name "a"`},
		"an unknown state":   {`{"x":{"cases":[{"name":"a","state":"old"}]}}`, `x/a: state "old", want none, zero, carry or given`},
		"a negative limit":   {`{"x":{"tolerance":{"y":{"atol":-1}}}}`, "x/tolerance/y: -1"},
		"a vague exactness":  {`{"x":{"exact":"nearly"}}`, "true, false"},
		"cases of elsewhere": {`{"x":{"cases":[{"name":"b"}]}}`, "no tensor of a case in the index, want b/in/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			save(t, filepath.Join(folder, "x.safetensors"), "a/in/x", "a/out/y")
			require.NoError(t, os.WriteFile(filepath.Join(folder, "index.json"), []byte(c.text), 0o644))
			_, err := recorded.Open(filepath.Join(folder, "x.safetensors"))
			require.ErrorContains(t, err, c.want)
		})
	}
}
