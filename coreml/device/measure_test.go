package device

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim/devicelog"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/shareddata"
)

// cases of a fixture, each with its expected outputs.
func cases(t testing.TB, name string) []Case {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(fixture(t, name)), "index.json"))
	require.NoError(t, err)
	var index map[string]struct {
		Cases     []struct{ Name, Function, State string }
		Tolerance map[string]struct{ Atol, Rtol float64 }
	}
	require.NoError(t, json.Unmarshal(text, &index))
	var list []Case
	for _, c := range index[name].Cases {
		x := Case{Name: c.Name, Function: c.Function, Inputs: inputs(t, name, c.Name+"/in/"), Want: map[string]Expected{}}
		if c.State == "carry" {
			x.Start = Carried
		}
		for output, want := range inputs(t, name, c.Name+"/out/") {
			b := index[name].Tolerance[output]
			x.Want[output] = Expected{Tensor: want, Atol: b.Atol, Rtol: b.Rtol}
		}
		list = append(list, x)
	}
	require.NotEmpty(t, list)
	return list
}

// samples are the packages of testdata with a port type that suits cases.
var samples = []string{"flex_range_dim", "gemma_mlp_block", "ios16_lut_w4", "lut_w4_odd_count", "multifunction", "state_slice_update_attention"}

func sampleSession(t testing.TB) Session {
	s := Session{Experiment: "samples", Units: CPUAndANE, Calls: 12}
	for _, name := range samples {
		s.Subjects = append(s.Subjects, Subject{Path: fixture(t, name), Cases: cases(t, name)})
	}
	return s
}

// within says that every case of a report ran and was as expected.
func within(t testing.TB, r *Report) {
	for _, m := range r.Models {
		require.Empty(t, m.Error, m.Path)
		require.NotEmpty(t, m.Cases, m.Path)
		for _, c := range m.Cases {
			require.Empty(t, c.Error, "%s, case %s", m.Path, c.Name)
			require.NotNil(t, c.Within, "%s, case %s", m.Path, c.Name)
			require.True(t, *c.Within, "%s, case %s: %+v", m.Path, c.Name, c.Outputs)
		}
	}
}

// oracle: the packages of testdata against outputs of torch; with the fake the interpreter computes, with Core ML it does. The report
// is read by package devicelog, and outputs come back out of it.
func TestReportOfTheSamples(t *testing.T) {
	f, rt := newFake(t)
	r, err := measure(t.Context(), rt, sampleSession(t))
	require.NoError(t, err)
	within(t, r)
	f.balanced(t)

	text, err := json.Marshal(r)
	require.NoError(t, err)
	session, err := devicelog.Read("report.json", text, devicelog.Context{})
	require.NoError(t, err)
	require.Len(t, session.Calls, len(samples))
	require.Equal(t, "Fake M1", session.Calls[0].Device)
	require.Equal(t, "cpu+ane", session.Calls[0].Backend)
	require.Positive(t, session.Calls[1].WeightBytes)
	require.Empty(t, session.Doubts)

	back, err := ReadReport("report.json", text)
	require.NoError(t, err)
	require.Equal(t, r, back)
	for i, m := range back.Models {
		for k, c := range m.Cases {
			for j := range c.Outputs {
				got, err := c.Outputs[j].Tensor()
				require.NoError(t, err)
				require.True(t, Expected{Tensor: got}.judge(got).Within)
				require.NotNil(t, r.Models[i].Cases[k].Outputs[j].Error)
			}
		}
	}
}

// TestSmoke runs the same packages on the Core ML of this machine.
func TestSmoke(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	for _, units := range []Units{CPUOnly, CPUAndANE} {
		s := sampleSession(t)
		s.Units = units
		r, err := Measure(t.Context(), s)
		require.NoError(t, err)
		within(t, r)
		t.Logf("%s on %s: %d of %d ops off the Neural Engine", units, r.Device, r.Audit.Off, r.Audit.Ops)
	}
}

// hand: with a layout the packages are its chunks, and a step is their sum.
func TestReportOfALayout(t *testing.T) {
	f, rt := newFake(t)
	s := Session{Experiment: "mine", Device: "Mac Studio", Model: "gemma-4-e2b", Layout: "0-14|15-34+head", Calls: 16, Backing: Surface,
		Subjects: []Subject{{Path: fixture(t, "gemma_mlp_block")}, {Path: fixture(t, "multifunction")}}, Function: "prefill_b4"}
	var told []string
	s.Progress = func(what string) { told = append(told, what) }
	r, err := measure(t.Context(), rt, s)
	require.NoError(t, err)
	f.balanced(t)
	require.Len(t, told, 2+16)
	require.Equal(t, "main", r.Models[0].Function)
	require.Equal(t, "prefill_b4", r.Models[1].Function)
	require.Equal(t, r.Models[1].Ms, r.Chunks[1].Ms)
	require.InDelta(t, r.Chunks[0].Ms[9]+r.Chunks[1].Ms[9], r.StepMs[9], 1e-12)
	for i := range r.Chunks { // the fake takes microseconds; devicelog takes that for seconds
		for k := range r.Chunks[i].Ms {
			r.Chunks[i].Ms[k] += 5
			r.StepMs[k] += 5
		}
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	session, err := devicelog.Read("report.json", text, devicelog.Context{})
	require.NoError(t, err)
	require.Len(t, session.Measurements, 3)
	require.Contains(t, session.Doubts[0], "ops are off the Neural Engine", "the fake places much on its GPU")

	s.Layout = "0-14|15-24|25-34+head"
	_, err = measure(t.Context(), rt, s)
	require.ErrorContains(t, err, "3 parts, want one for each of 2 packages")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Layout = ""
	_, err = measure(ctx, rt, s)
	require.ErrorIs(t, err, context.Canceled)
	f.balanced(t)
}

// hand: a package that fails is named in the report, and the others go on.
func TestReportNamesFailures(t *testing.T) {
	f, rt := newFake(t)
	f.failing["plan"] = "no plan today"
	c := cases(t, "lut_w4_odd_count")
	c[0].Inputs = nil
	s := Session{Layout: "0-14|15-34+head", Calls: 5, Subjects: []Subject{{Path: "nowhere.mlpackage"}, {Path: fixture(t, "lut_w4_odd_count"), Cases: c}}}
	r, err := measure(t.Context(), rt, s)
	require.NoError(t, err)
	require.Contains(t, r.Models[0].Error, "nowhere.mlpackage")
	require.Empty(t, r.Models[1].Error)
	require.Contains(t, r.Models[1].Cases[0].Error, "input missing")
	require.Nil(t, r.Models[1].Cases[0].Within)
	require.Contains(t, r.Models[1].Placement.Error, "no plan today")
	require.Nil(t, r.Audit)
	require.Len(t, r.Chunks, 1)
	require.Equal(t, 2, r.Chunks[0].Index)
	require.Empty(t, r.StepMs, "a step without a chunk is no step")
	f.failing["predictionFromFeatures:options:error:"] = "error code: -14"
	r, err = measure(t.Context(), rt, s)
	require.NoError(t, err)
	require.Contains(t, r.Models[1].Error, "load with units cpu")
	require.Empty(t, r.Models[1].Ms)
	f.balanced(t)
}

func TestDescription(t *testing.T) { // hand: read off the packages
	_, rt := newFake(t)
	for name, want := range map[string][2]int{"ios16_lut_w4": {4, 0}, "lut_w4_odd_count": {4, 0}, "multifunction": {16, 0}} {
		r, err := measure(t.Context(), rt, Session{Subjects: []Subject{{Path: fixture(t, name)}}})
		require.NoError(t, err)
		require.Equal(t, want, [2]int{r.WeightBits, r.GroupSize}, name)
		require.Positive(t, r.Models[0].WeightBytes)
	}
}

func TestJudge(t *testing.T) { // hand
	inf := float32(math.Inf(1))
	want := Expected{Tensor: (*Tensor)(interp.F16([]float32{3, -4, inf}, 3)), Atol: 0.1}
	require.Equal(t, &ReportDeviation{Within: true}, want.judge(want.Tensor))
	require.Equal(t, &ReportDeviation{MaxAbs: 0.0625, RelRMS: 0.0125, Within: true}, want.judge((*Tensor)(interp.F16([]float32{3.0625, -4, inf}, 3))))
	require.False(t, want.judge((*Tensor)(interp.F16([]float32{3.5, -4, inf}, 3))).Within)
	require.Equal(t, 1, want.judge((*Tensor)(interp.F16([]float32{3, -4, -inf}, 3))).NonFinite)
	require.Equal(t, 3, want.judge((*Tensor)(interp.F16([]float32{3, -4, inf}, 1, 3))).NonFinite, "another shape has nothing in common")
	want.Atol, want.RelRMS = 0, 0.02
	require.True(t, want.judge((*Tensor)(interp.F16([]float32{3.0625, -4, inf}, 3))).Within)
	want.RelRMS = 0.01
	require.False(t, want.judge((*Tensor)(interp.F16([]float32{3.0625, -4, inf}, 3))).Within)
	want.RelRMS = 0
	require.False(t, want.judge((*Tensor)(interp.F16([]float32{3.0625, -4, inf}, 3))).Within, "without limits only equal ones are")
}

func TestFiller(t *testing.T) { // hand
	got := Filler([]Port{{Name: "causal_mask_full", DType: mil.Float16, Shape: []int{3}}, {Name: "h", DType: mil.Float16, Shape: []int{1, 3}},
		{Name: "pos", DType: mil.Int32, Shape: []int{1}}, {Name: "update_mask", DType: mil.Float16, Shape: []int{2, 1}}})
	require.Equal(t, []float32{0, 0, 0}, got["causal_mask_full"].Floats)
	require.Equal(t, []float32{-39. / 128, -2. / 128, 35. / 128}, got["h"].Floats)
	require.Equal(t, []int32{0}, got["pos"].Ints)
	require.Equal(t, []float32{1, 0}, got["update_mask"].Floats)
}

// invariant: the schema names what is written.
func TestSchemaNamesEveryKey(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "docs", "schema", "device_report.schema.json"))
	require.NoError(t, err)
	var schema struct {
		Properties map[string]any
		Required   []string
		Defs       map[string]struct {
			Properties map[string]any
			Required   []string
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	keys := func(of any) (list []string) {
		x := reflect.TypeOf(of)
		for i := range x.NumField() {
			name, _, _ := strings.Cut(x.Field(i).Tag.Get("json"), ",")
			list = append(list, name)
		}
		slices.Sort(list)
		return list
	}
	sorted := func(list []string) []string { slices.Sort(list); return list }
	named := func(properties map[string]any) (list []string) {
		for name := range properties {
			list = append(list, name)
		}
		return sorted(list)
	}
	require.Equal(t, keys(Report{}), named(schema.Properties))
	require.Equal(t, keys(Report{}), sorted(schema.Required))
	for name, of := range map[string]any{"chunk": ReportChunk{}, "audit": ReportAudit{}, "model": ReportModel{}, "placement": ReportPlacement{},
		"op": ReportOffOp{}, "case": ReportCase{}, "tensor": ReportTensor{}, "deviation": ReportDeviation{}} {
		require.Equal(t, keys(of), named(schema.Defs[name].Properties), name)
		require.Equal(t, keys(of), sorted(schema.Defs[name].Required), name)
	}
}

// invariant: no bytes make a reader panic; what it takes has as many elements as it says.
func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"format_version": "anelab-device-report/1", "models": [{"cases": [{"outputs": [{"name": "y", "dtype": "fp16", "shape": [2], "base64": "AAAAPA=="}]}]}]}`))
	f.Add([]byte(`{"format_version": "anelab-device-report/1", "models": [{"cases": [{"outputs": [{"dtype": "int32", "shape": [4294967296, 4294967296]}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadReport("fuzz", data)
		if err != nil {
			return
		}
		for _, m := range r.Models {
			for _, c := range m.Cases {
				for i := range c.Outputs {
					if x, err := c.Outputs[i].Tensor(); err == nil && x != nil {
						require.True(t, x.sound())
					}
				}
			}
		}
	})
}
