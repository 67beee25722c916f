package contrast

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab"
	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/gemma4"
)

func predict(t *testing.T, layout string) (Side, *anesim.Device) {
	t.Helper()
	text, err := anelab.Files.ReadFile("testdata/configs/e2b.json")
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig("e2b.json", text)
	require.NoError(t, err)
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, m)
	require.NoError(t, err)
	plan, err := l.Plan(m)
	require.NoError(t, err)
	d, err := devices.Load("iphone17pro")
	require.NoError(t, err)
	p := anesim.Predict(plan, d, anesim.Workload{})
	return Side{plan, &p}, &d
}

func TestNothingDiffersFromItself(t *testing.T) { // invariant
	a, d := predict(t, "@3way")
	x := Of(a, a, d, anesim.Workload{})
	require.Zero(t, x.TimeS)
	require.Zero(t, x.TimeRange)
	require.False(t, x.Certain)
}

// invariant: the difference turns its sign with its sides, and its parts add up to it.
func TestDifferenceIsAntisymmetric(t *testing.T) {
	a, d := predict(t, "@4way")
	b, _ := predict(t, "@3way")
	ab, ba := Of(a, b, d, anesim.Workload{}), Of(b, a, d, anesim.Workload{})
	require.InDelta(t, ab.TimeS, -ba.TimeS, 1e-12)
	require.InDelta(t, ab.TimeRange.Lo, -ba.TimeRange.Hi, 1e-12)
	var sum float64
	for _, r := range ab.Resources {
		require.InDelta(t, r.B-r.A, r.Delta, 1e-15)
		sum += r.Delta
	}
	require.InDelta(t, ab.TimeS, sum, 1e-12)
	require.InDelta(t, b.Prediction.TokPerSec-a.Prediction.TokPerSec, ab.TokPerSec, 1e-9)
}

// invariant: what both have in common cancels, so the difference is known better than either; its width is that of the constants
// that differ (hand: one call less, one hand-off less).
func TestDifferenceIsKnownBetterThanEither(t *testing.T) {
	a, d := predict(t, "@4way")
	b, _ := predict(t, "@3way")
	x := Of(a, b, d, anesim.Workload{})
	width := x.TimeRange.Hi - x.TimeRange.Lo
	require.Less(t, width, (b.Prediction.TimeRange.Hi-b.Prediction.TimeRange.Lo)/1.5)
	require.Greater(t, width, d.Evidence.IntervalFactor*d.Constants[anesim.Dispatch].SD)
	require.True(t, x.Certain)
	require.Negative(t, x.Slower)
}

func TestChunksOfOneSideBringTheirDoubt(t *testing.T) { // hand: a chunk that nobody timed is less sure than its neighbour that was
	a, d := predict(t, "@3way")
	timed, _ := predict(t, "@4way")
	untimed, _ := predict(t, "L0-12 | L13-34+head")
	x, y := Of(a, timed, d, anesim.Workload{}), Of(a, untimed, d, anesim.Workload{})
	require.Greater(t, y.TimeRange.Hi-y.TimeRange.Lo, x.TimeRange.Hi-x.TimeRange.Lo)
}
