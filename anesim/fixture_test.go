package anesim

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/shareddata"
)

// e2b is the one model that was measured.
func e2b(t testing.TB) *chunking.Model {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", "e2b.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	return m
}

func planOf(t testing.TB, m *chunking.Model, text string) *chunking.Plan {
	l, err := chunking.Parse(text, m)
	require.NoError(t, err)
	p, err := l.Plan(m)
	require.NoError(t, err)
	return p
}

// measuredFile is one of the committed files of measurements.
func measuredFile(t testing.TB, name string) []byte {
	data, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "testdata", "measured", name))
	require.NoError(t, err)
	return data
}

func measurements(t testing.TB) []Measurement {
	rows, err := ReadMeasurements("experiments.csv", bytes.NewReader(measuredFile(t, "experiments.csv")))
	require.NoError(t, err)
	return rows
}

// phone is a device with round constants, so that sums can be worked by hand.
func phone() Device {
	d := Device{Name: "phone", Title: "Phone", Class: IPhone, MeasuredAs: []string{"Phone"}, Noise: Noise{Chunk: 0.01, Session: 0.02, Step: 0.02}}
	for t, v := range map[Term]float64{
		Dispatch: 0.5e-3, WeightStream: 10e-12, AttentionOwn: 1e-6, AttentionShared: 0.5e-6, HandoffBytes: 100e-12,
		HandoffCall: 0.25e-3, HandoffFirst: 0.125e-3, CopyBackBytes: 20e-12, PLEProjection: 1e-3, HostStep: 0.75e-3, HostPositions: 0.1e-6,
	} {
		d.Constants[t] = Constant{Unit: t.Unit(), Group: "g", Prior: Prior{Value: v, SD: v / 2, Source: "round"}}
	}
	return d.FromPriors()
}
