package interp

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

	"anelab/coreml/mlpackage"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/half"
	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

// The fixtures are oracles: packages written by coremltools, outputs of torch in float32 (coreml/README.md).

// entry is what an index says about a package.
type entry struct {
	Cases      []struct{ Name, Function, State string }
	Exact      any
	Tolerance  map[string]bound
	FreeTokens []string `json:"free_tokens"`
}

// bound is how far an output may be from its golden.
type bound struct {
	Atol, Rtol float64
	RelRMS     float64 `json:"rel_rms"`
}

// index reads the index of a folder.
func index(t testing.TB, folder string) map[string]entry {
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	require.NoError(t, err)
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &raw))
	entries := map[string]entry{}
	for name, message := range raw {
		var e entry
		if !strings.HasPrefix(name, "_") {
			require.NoError(t, json.Unmarshal(message, &e), name)
			entries[name] = e
		}
	}
	return entries
}

// fixture is a package with what it should compute.
type fixture struct {
	entry
	name  string
	model *Model
	set   *safetensors.Set
}

func openFixture(t testing.TB, path string, precision Precision) *fixture {
	pkg, err := mlpackage.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { pkg.Close() })
	m, err := New(pkg.Program, Options{Precision: precision, Path: filepath.Base(path)})
	require.NoError(t, err)
	base := strings.TrimSuffix(path, ".mlpackage")
	set, err := safetensors.Open(base + ".safetensors")
	require.NoError(t, err)
	t.Cleanup(func() { set.Close() })
	name := filepath.Base(base)
	e, ok := index(t, filepath.Dir(path))[name]
	require.True(t, ok, "%s is not in the index", name)
	return &fixture{entry: e, name: name, model: m, set: set}
}

// tensors are those under a prefix, by the rest of their names.
func (f *fixture) tensors(t testing.TB, prefix string) map[string]*Tensor {
	found := map[string]*Tensor{}
	for _, name := range f.set.Names() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			q, err := f.set.Tensor(name)
			require.NoError(t, err)
			found[rest], err = FromStored(q)
			require.NoError(t, err)
		}
	}
	return found
}

// run runs all cases in order and hands every output and state to judge.
func (f *fixture) run(t testing.TB, judge func(label, name string, got, want *Tensor, free bool)) (cases int) {
	state := State{}
	for _, c := range f.Cases {
		switch c.State {
		case "zero", "none":
			var err error
			state, err = f.model.NewState(c.Function)
			require.NoError(t, err)
		case "given":
			state = f.tensors(t, c.Name+"/state_in/")
		case "carry":
		default:
			t.Fatalf("%s: state %q", f.name, c.State)
		}
		out, err := f.model.Run(context.Background(), c.Function, f.tensors(t, c.Name+"/in/"), Call{State: state})
		require.NoError(t, err, "%s/%s", f.name, c.Name)
		wanted := f.tensors(t, c.Name+"/out/")
		require.NotEmpty(t, wanted)
		require.Equal(t, len(wanted), len(out), "%s: outputs", f.name)
		for name, want := range wanted {
			judge(f.name+"/"+c.Name, name, out[name], want, slices.Contains(f.FreeTokens, c.Name))
		}
		for name, want := range f.tensors(t, c.Name+"/state_out/") {
			judge(f.name+"/"+c.Name, "states", state[name], want, false)
		}
		cases++
	}
	return cases
}

// finiteError is the worst |got−want|/limit over finite elements, and the relative RMS; others must be equal.
func finiteError(got, want []float32, limit func(want float64) float64) (worst, relRMS float64, err error) {
	var square, diff float64
	for i, w := range want {
		g, w := float64(got[i]), float64(w)
		if math.IsNaN(w) || math.IsInf(w, 0) {
			if g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				return 0, 0, fmt.Errorf("element %d is %v, want %v", i, g, w)
			}
			continue
		}
		d := math.Abs(g - w)
		worst = max(worst, d/limit(w))
		if math.IsNaN(d) {
			worst = math.Inf(1)
		}
		square, diff = square+w*w, diff+d*d
	}
	if diff == 0 {
		return worst, 0, nil
	}
	return worst, math.Sqrt(diff / square), nil
}

// within judges one tensor by the stated tolerance; the result is the share of it that is used.
func (f *fixture) within(t testing.TB, label, name string, got, want *Tensor, free bool) float64 {
	at := label + " " + name
	require.NotNil(t, got, at)
	require.Equal(t, append([]int{}, want.Shape...), append([]int{}, got.Shape...), at)
	if want.Ints != nil {
		if !free {
			require.Equal(t, want.Ints, got.Ints, at)
		}
		return 0
	}
	b, stated := f.Tolerance[name]
	if f.Exact == true || f.Exact == "fp32" || name == "states" && !stated { // states of the small packages only move data
		for i, w := range want.Floats {
			if got.DType.Bits() == 16 {
				w = half.RoundF16(w)
			}
			require.True(t, got.Floats[i] == w || got.Floats[i] != got.Floats[i] && w != w, "%s[%d]: got %v, want %v", at, i, got.Floats[i], w)
		}
		return 0
	}
	require.NotZero(t, b, "%s has no tolerance", at)
	worst, relRMS, err := finiteError(got.Floats, want.Floats, func(w float64) float64 { return b.Atol + b.Rtol*math.Abs(w) })
	require.NoError(t, err, at)
	require.LessOrEqual(t, worst, 1.0, "%s: share of its tolerance", at)
	if b.RelRMS > 0 && !(free && strings.HasPrefix(name, "token")) {
		require.LessOrEqual(t, relRMS, b.RelRMS, "%s: relative rms", at)
		worst = max(worst, relRMS/b.RelRMS)
	}
	return worst
}

// everyFixture runs packages and reports how much of their tolerance was used.
func everyFixture(t *testing.T, packages []string, precision Precision) {
	worst, where, cases := 0.0, "", 0
	for _, path := range packages {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+strings.TrimSuffix(filepath.Base(path), ".mlpackage"), func(t *testing.T) {
			f := openFixture(t, path, precision)
			cases += f.run(t, func(label, name string, got, want *Tensor, free bool) {
				if share := f.within(t, label, name, got, want, free); share > worst {
					worst, where = share, label+" "+name
				}
			})
		})
	}
	t.Logf("%s: %d packages, %d cases; worst: %s at %.2f of its tolerance", precision, len(packages), cases, where, worst)
}

// committed is the path of a package in testdata.
func committed(t testing.TB, name string) string {
	return filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name+".mlpackage")
}

func TestCommittedPackages(t *testing.T) { // oracle
	packages, err := filepath.Glob(committed(t, "*"))
	require.NoError(t, err)
	require.Len(t, packages, 6)
	for _, p := range []Precision{FP16, ANE} {
		everyFixture(t, packages, p)
	}
}

func TestOpFixtures(t *testing.T) {
	everyFixture(t, shareddata.Cases(t, "coreml/ops/*.mlpackage"), FP16)
} // oracle

func TestChunkFixtures(t *testing.T) { // oracle
	everyFixture(t, shareddata.Cases(t, "coreml/chunks*/*/*.mlpackage"), FP16)
}

// The ane precision rounds as fp16 does, except where numbers overflow, and none of the chunks' do.
func TestChunkFixturesInANE(t *testing.T) { // oracle
	everyFixture(t, shareddata.Cases(t, "coreml/chunks*/*/*.mlpackage"), ANE)
}

// ownRounding are outputs that a package itself rounds, whatever the interpreter does: behind constants that the converter has
// folded into fp16 weights (1536^-1/2, 2^-1/2) or rounded to fp16 (1/30), and states, whose goldens are stored as fp16.
var ownRounding = map[string]float64{"per_layer_combined_out": 5e-4, "token_logit": 5e-4, "states": 5e-4}

func TestExactIsWithinOneHundredThousandthOfThePeak(t *testing.T) { // oracle
	worst, where, tensors := 0.0, "", 0
	for _, pattern := range []string{"coreml/ops/*.mlpackage", "coreml/chunks*/*/*.mlpackage"} {
		for _, path := range shareddata.Cases(t, pattern) {
			openFixture(t, path, Exact).run(t, func(label, name string, got, want *Tensor, free bool) {
				if want.Ints != nil {
					require.True(t, free || slices.Equal(want.Ints, got.Ints), "%s %s", label, name)
					return
				}
				peak := 0.0
				for _, w := range want.Floats {
					if w := math.Abs(float64(w)); !math.IsInf(w, 0) {
						peak = math.Max(peak, w)
					}
				}
				off, _, err := finiteError(got.Floats, want.Floats, func(float64) float64 { return max(peak, 1e-30) })
				require.NoError(t, err, label)
				limit, own := ownRounding[name]
				if !own {
					limit, tensors = 1e-5, tensors+1
					if off > worst {
						worst, where = off, label+" "+name
					}
				}
				require.LessOrEqual(t, off, limit, "%s %s", label, name)
			})
		}
	}
	t.Logf("%d tensors; worst: %s, %.2g of its peak", tensors, where, worst)
}

// The constexpr ops of a package decode to the constants of the index.
func TestConstantsOfTheOpFixtures(t *testing.T) { // oracle
	decoded := 0
	for _, path := range shareddata.Cases(t, "coreml/ops/*.mlpackage") {
		f := openFixture(t, path, FP16)
		for name, want := range f.tensors(t, "const/") {
			fn, err := f.model.prepared(f.Cases[0].Function)
			require.NoError(t, err)
			v := fn.constants[name]
			require.NotNil(t, v, "%s: %s", f.name, name)
			require.Equal(t, append([]int{}, want.Shape...), v.shape)
			got, err := v.dense()
			require.NoError(t, err)
			for i, w := range toFloats(ofTensor(want)) {
				require.InDelta(t, w, toFloats(got)[i], math.Abs(float64(w))*0x1p-11+6e-8, "%s: %s[%d]", f.name, name, i)
			}
			m, err := v.matrix(max(1, count(v.shape[:min(1, len(v.shape))])))
			require.NoError(t, err)
			row := make([]float32, m.Cols())
			for r := range m.Rows() { // the form that multiplies reads the same
				m.Row(row, r)
				require.Equal(t, toFloats(got)[r*m.Cols():(r+1)*m.Cols()], row, "%s: %s row %d", f.name, name, r)
			}
			decoded++
		}
	}
	require.NotZero(t, decoded)
	t.Logf("%d constants", decoded)
}
