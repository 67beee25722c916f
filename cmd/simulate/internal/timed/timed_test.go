package timed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/anesim"
	"anelab/chunking"
	"anelab/gemma4"
)

func row(change func(*anesim.Measurement)) anesim.Measurement {
	m := anesim.Measurement{Experiment: "a", Device: "Phone", Model: "gemma-4-e4b", KVMode: "explicit-io", Context: 2048, QueryTokens: 1, WeightBits: 4, GroupSize: 32,
		Component: "1", Lo: 0, Hi: 12, Seconds: 0.02, Timed: true, ColdWarm: "warm", Quality: "A", Note: "copyback=sync; x"}
	if change != nil {
		change(&m)
	}
	return m
}

func TestFill(t *testing.T) { // hand
	text, err := anelab.Files.ReadFile("testdata/configs/e4b.json")
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig("e4b.json", text)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	l, err := chunking.Parse("L0-11 | L12-41+head", m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	rows := Rows{
		row(nil),
		row(func(m *anesim.Measurement) { m.Seconds, m.Experiment = 0.03, "b" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Note = 0.01, "copyback=async" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Note = 9, "nothing said" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Quality = 9, "X" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.ColdWarm = 9, "cold" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Device = 9, "Mac" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Model = 9, "gemma-4-e2b" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Context = 9, 512 }),
		row(func(m *anesim.Measurement) { m.Seconds, m.GroupSize = 9, 16 }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Hi = 9, 11 }),
		row(func(m *anesim.Measurement) { m.Seconds, m.Component = 9, "step" }),
		row(func(m *anesim.Measurement) { m.Seconds, m.QueryTokens = 9, 3 }),
	}
	d := &anesim.Device{MeasuredAs: []string{"Phone"}}
	known := []anesim.MeasuredChunk{{Rows: 7}}
	p := &anesim.Prediction{CopyBack: anesim.CopyBackAsync, Chunks: make([]anesim.ChunkPrediction, 2)}
	p.Chunks[1].Measured = known
	rows.Fill(p, plan, d, "gemma-4-e4b")
	require.Equal(t, []anesim.MeasuredChunk{
		{Model: "gemma-4-e4b", Chunk: "L0-11", Context: 2048, Weights: "int4g32", CopyBack: "async", Rows: 1, Experiments: 1, MedianSeconds: 0.01, MinSeconds: 0.01, MaxSeconds: 0.01},
		{Model: "gemma-4-e4b", Chunk: "L0-11", Context: 2048, Weights: "int4g32", CopyBack: "sync", Rows: 2, Experiments: 2, MedianSeconds: 0.025, MinSeconds: 0.02, MaxSeconds: 0.03},
	}, p.Chunks[0].Measured)
	require.Equal(t, known, p.Chunks[1].Measured, "what the device knows stays")
}
