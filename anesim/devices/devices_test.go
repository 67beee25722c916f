package devices

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/internal/shareddata"
)

var update = flag.Bool("update", false, "write the device files that testdata/measured calibrates to")

// calibrated fits the shipped priors to the measurements in testdata.
func calibrated(t testing.TB) *anesim.Calibration {
	root := shareddata.ModuleRoot(t)
	path := filepath.Join(root, "testdata", "configs", "e2b.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	model, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	f, err := os.Open(filepath.Join(root, "testdata", "measured", "experiments.csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := anesim.ReadMeasurements("experiments.csv", f)
	require.NoError(t, err)
	all, err := All()
	require.NoError(t, err)
	c, err := anesim.Calibrate(rows, anesim.Options{Devices: all, Models: map[string]*chunking.Model{"gemma-4-e2b": model}})
	require.NoError(t, err)
	return c
}

// oracle: the shipped constants are what calibration makes of the shipped measurements.
func TestShippedDevicesAreCalibrated(t *testing.T) {
	c := calibrated(t)
	require.Len(t, c.Devices, 2)
	for _, d := range c.Devices {
		if *update {
			require.NoError(t, os.WriteFile(d.Name+".yaml", Write(d), 0o644))
			continue
		}
		shipped, err := Load(d.Name)
		require.NoError(t, err)
		for term := range anesim.NumTerms {
			fitted, file := d.Constants[term], shipped.Constants[term]
			require.InDelta(t, fitted.Value, file.Value, 1e-6*fitted.SD, "%s %s: run the test with -update", d.Name, term)
			require.InEpsilon(t, fitted.SD, file.SD, 1e-6, "%s %s", d.Name, term)
		}
		want, err := Read(d.Name, Write(d))
		require.NoError(t, err)
		for _, x := range [][2]*float64{{&want.Evidence.WorstMiss, &shipped.Evidence.WorstMiss},
			{&want.Evidence.IntervalFactor, &shipped.Evidence.IntervalFactor}, {&want.Evidence.HostSDSeconds, &shipped.Evidence.HostSDSeconds}} {
			require.InEpsilon(t, *x[0], *x[1], 1e-6, d.Name)
			*x[0] = *x[1]
		}
		require.Equal(t, want.Evidence, shipped.Evidence, d.Name)
	}
}

// invariant: what Write writes Read reads, and writing it again gives the same bytes.
func TestRoundTrip(t *testing.T) {
	for _, d := range calibrated(t).Devices {
		once := Write(d)
		back, err := Read(d.Name, once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(Write(back)))
	}
}

func TestReadErrors(t *testing.T) { // hand
	good, err := shipped.ReadFile("mac.yaml")
	require.NoError(t, err)
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "title:", "titel:", `did you mean "title"?`},
		{"unknown constant", "  dispatch:", "  dispach:", `did you mean "dispatch"?`},
		{"unit", "unit: s/byte", "unit: GB/s", `constants.weight_stream.unit: "GB/s", want "s/byte"`},
		{"class", `class: "mac"`, `class: "mca"`, `did you mean "mac"?`},
		{"version", "anelab-device/1", "anelab-device/9", `"anelab-device/9", want "anelab-device/1"`},
		{"not a number", "session: 0.02", "session: .nan", "noise.session: NaN"},
		{"no scatter of steps", "step: 0.021, ", "", "noise.step: 0, want a number above zero"},
		{"negative", "session: 0.02", "session: -0.02", "noise.session: -0.02"},
		{"syntax", "name:", "name: [", "mac.yaml:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, string(good), c.old)
			bad := strings.Replace(string(good), c.old, c.new, 1)
			_, err := Read("mac.yaml", []byte(bad))
			var e *format.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestLoadUnknown(t *testing.T) { // hand
	_, err := Load("iphone17por")
	require.ErrorContains(t, err, `did you mean "iphone17pro"?`)
	require.Equal(t, []string{"iphone17pro", "mac"}, Names())
}

// hand: profiles of devices that nobody measured are labelled so, name a source for every prior, and predict with wide
// ranges around what published figures allow.
func TestPriorsAreLabelled(t *testing.T) {
	require.Equal(t, []string{"a17pro", "a18pro", "m1", "m2", "m3", "m3max", "m4", "m4pro", "m5", "m5max"}, PriorNames())
	all, err := Priors()
	require.NoError(t, err)
	root := shareddata.ModuleRoot(t)
	data, err := os.ReadFile(filepath.Join(root, "testdata", "configs", "e2b.json"))
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig("e2b.json", data)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	layout, err := chunking.Parse("@3way", m)
	require.NoError(t, err)
	plan, err := layout.Plan(m)
	require.NoError(t, err)
	for i, d := range all {
		require.Equal(t, PriorNames()[i], d.Name)
		require.Zero(t, d.Evidence.Experiments)
		for term := range anesim.NumTerms {
			require.Contains(t, d.Constants[term].Source, "prior: ", "%s %s", d.Name, term)
			require.NotEmpty(t, d.Constants[term].Prior.Source, "%s %s", d.Name, term)
		}
		x := anesim.Predict(plan, d, anesim.Workload{})
		t.Logf("%-7s %5.1f tok/s (%.0f–%.0f)", d.Name, x.TokPerSec, x.Range.Lo, x.Range.Hi)
		require.Equal(t, "priors only: no measurement of this device", x.Basis)
		require.Contains(t, x.Warnings[0], "was never measured")
		require.Greater(t, x.Range.Hi/x.Range.Lo, 1.25, "%s: a prior is no measurement", d.Name)
		require.Greater(t, x.TokPerSec, 10.0)
		require.Less(t, x.TokPerSec, 80.0)
		once := Write(d)
		back, err := Read(d.Name, once)
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range append(Names(), "prior/m5max") {
		data, err := shipped.ReadFile(name + ".yaml")
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("format: anelab-device/1\nconstants: {dispatch: {value: .inf}}\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read("fuzz.yaml", data)
		if err != nil {
			return
		}
		for term := range anesim.NumTerms {
			require.GreaterOrEqual(t, d.Constants[term].Value, 0.0)
		}
		_, err = Read("again.yaml", Write(d))
		require.NoError(t, err)
	})
}
