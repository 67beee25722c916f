package anesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
)

// hand: 2 ms and 0.5 ms expected are 7.5 ms of room on the slow side, and nothing else moves.
func TestUnpricedWorkWidensAndIsNamed(t *testing.T) {
	before, after := predict(t, "@3way", "iphone17pro", anesim.Workload{}), predict(t, "@3way", "iphone17pro", anesim.Workload{})
	after.Widen(nil)
	require.Equal(t, before, after)
	after.Widen([]anesim.Unpriced{{Chunk: 1, Class: "lstm", Ops: 4, ExpectedSeconds: 2e-3}, {Chunk: 1, Class: "cumsum", Ops: 1, ExpectedSeconds: 0.5e-3}})
	require.Equal(t, before.TimeS, after.TimeS)
	require.Equal(t, before.TimeRange.Lo, after.TimeRange.Lo)
	require.InDelta(t, before.TimeRange.Hi+7.5e-3, after.TimeRange.Hi, 1e-12)
	require.InDelta(t, before.Chunks[1].TimeRange.Hi+7.5e-3, after.Chunks[1].TimeRange.Hi, 1e-12)
	require.Equal(t, before.Chunks[0].TimeRange, after.Chunks[0].TimeRange)
	require.InDelta(t, 1/after.TimeRange.Hi, after.Range.Lo, 1e-12)
	require.Equal(t, before.Range.Hi, after.Range.Hi)
	require.Equal(t, len(before.Warnings)+1, len(after.Warnings))
	require.Contains(t, after.Warnings[len(after.Warnings)-1], "L8-24 has work that no term prices (4 lstm, 1 cumsum)")
}
