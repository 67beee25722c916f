package anesim_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
)

func calibration(t testing.TB) *anesim.Calibration {
	c, err := anesim.Calibrate(measured(t), options(t))
	require.NoError(t, err)
	return c
}

// oracle: whole steps of left-out experiments, beside a predictor that knows what other sessions of the very same layout
// took. The bounds are the project's promise.
func TestLeftOutSteps(t *testing.T) {
	s := calibration(t).Steps
	t.Logf("steps left out: %+v; oracle %+v; apart %+v; inside 90 %%: %.1f %%", s.LOO, s.Oracle, s.Apart, float64(s.Coverage))
	require.Equal(t, 33, s.LOO.N)
	require.LessOrEqual(t, float64(s.LOO.Median), 3.0)
	require.LessOrEqual(t, float64(s.LOO.P90), 8.0)
	require.LessOrEqual(t, float64(s.LOO.Max), 12.0)
	require.GreaterOrEqual(t, float64(s.Coverage), 84.0)
	require.InDelta(t, 2.1, float64(s.Oracle.Median), 0.3, "the oracle is a property of the data")
	require.InDelta(t, 10.4, float64(s.Oracle.Max), 0.1)
	require.Len(t, s.Baselines, 2)
	for name, b := range s.Baselines {
		t.Logf("%s: %+v", name, b)
		require.Greater(t, float64(b.Median), 5*float64(s.LOO.Median))
	}
	// The one session that timed chunks at 8192 is predicted without any: its range must say so.
	var apart, known anesim.StepResidual
	for _, r := range s.Rows {
		if r.Apart {
			apart = r
		} else if r.Context == 8192 {
			known = r
		}
	}
	require.Equal(t, 8192, apart.Context)
	require.True(t, apart.Inside)
	wide := func(r anesim.StepResidual) float64 { return (r.Range.Hi - r.Range.Lo) / r.PredictedS }
	require.Greater(t, wide(apart), 2*wide(known))
}

// oracle: intervals of left-out rows against a constant band that covers as many.
func TestIntervalsAreSharperThanABand(t *testing.T) {
	c := calibration(t)
	t.Logf("%+v; without the fold of the 8K session %+v", c.Intervals, c.IntervalsKnown)
	require.Equal(t, 53, c.Intervals.Rows)
	require.Equal(t, 49, c.IntervalsKnown.Rows)
	for _, s := range []anesim.Sharpness{c.Intervals, c.IntervalsKnown} {
		require.GreaterOrEqual(t, float64(s.Coverage), 84.0)
		require.LessOrEqual(t, float64(s.Coverage), 96.0)
		require.Less(t, float64(s.Winkler), float64(s.BandWinkler))
		require.Less(t, float64(s.HalfWidthPct), float64(s.BandHalfWidthPct))
	}
	for _, e := range c.Experiments { // what a fold knew less, its range shows
		require.Equal(t, e.Apart, float64(e.HalfWidth) > 2*float64(c.IntervalsKnown.HalfWidthPct), e.Experiment)
	}
}

// invariant: with the times dealt out at random there is nothing to learn, and the report's own control says so.
func TestShuffledControl(t *testing.T) {
	c := calibration(t)
	require.Equal(t, c.LOO.ChunkRaw.N, c.Control.ChunkRaw.N)
	require.Greater(t, float64(c.Control.ChunkRaw.Median), 10*float64(c.LOO.ChunkRaw.Median))
	require.Equal(t, c.Control.ChunkRaw, calibration(t).Control.ChunkRaw, "the control is the same every time")
}

// oracle: a term is on because left-out error falls, or its reason names the ground without rows.
func TestTermsAreEarned(t *testing.T) {
	checks := calibration(t).TermChecks
	require.Len(t, checks, 9)
	earned := 0
	for _, k := range checks {
		t.Logf("%+v", k)
		require.NotEmpty(t, k.Reason)
		if k.Earned {
			earned++
			require.Less(t, float64(k.With), float64(k.Without))
		} else {
			require.Contains(t, k.Reason, "no rows")
		}
	}
	require.GreaterOrEqual(t, earned, 7, "all but the two that the rows cannot tell from others: dispatch, handoff_call")
}

// oracle: what the engine's description suggests besides does not lower the error of the shipped rows. hand: one more unknown that is
// zero in every row changes nothing.
func TestCandidatesAreTriedAndLeftOut(t *testing.T) {
	c := calibration(t)
	require.Len(t, c.Candidates, 4)
	for _, k := range c.Candidates {
		t.Logf("%+v", k)
		require.False(t, k.Earned, k.Term)
		require.Equal(t, c.TermChecks[0].With, k.Without)
		require.NotEqual(t, k.With, k.Without, "%s was not in the fit", k.Term)
	}
}

// oracle: at 2K the import of 4.7 MB and the call that imports it are one quantity; the weight stream stands alone.
func TestIdentifiability(t *testing.T) {
	pins := map[string]anesim.Identified{}
	for _, i := range anesim.Identify(device(t, "iphone17pro")) {
		pins[i.Constant] = i
		require.GreaterOrEqual(t, i.IfKnown, i.Share-1e-9, "knowing the others cannot make a constant less known")
		require.LessOrEqual(t, i.IfKnown, 1.0)
	}
	require.Equal(t, anesim.PinData, pins["weight_stream"].Pin)
	require.Equal(t, anesim.PinJoint, pins["handoff_bytes"].Pin)
	require.Contains(t, pins["handoff_bytes"].Partners, "handoff_call")
	require.Equal(t, anesim.PinPrior, pins["dispatch"].Pin, "no row has a call of another length with equal work")

	// Before any row everything is prior and nothing has a partner.
	for _, i := range anesim.Identify(device(t, "mac").FromPriors()) {
		require.Equal(t, anesim.PinPrior, i.Pin)
		require.InDelta(t, 0, i.Share, 1e-9)
		require.Empty(t, i.Partners)
	}
}

// invariant: one line per experiment, in step with the rows.
func TestExperimentResiduals(t *testing.T) {
	c := calibration(t)
	rows, inside := 0, 0
	for _, e := range c.Experiments {
		rows += e.Rows
		inside += e.Inside
		require.Equal(t, e.Context == 8192, e.Apart, e.Experiment)
	}
	require.Len(t, c.Experiments, 15)
	require.Equal(t, c.LOO.ChunkRaw.N, rows)
	require.InDelta(t, float64(c.Coverage90), 100*float64(inside)/float64(rows), 1e-9)
}

// hand: the additions to the report do not touch the keys that scripts read.
func TestReportAdditions(t *testing.T) {
	data, err := json.Marshal(calibration(t))
	require.NoError(t, err)
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &top))
	for _, key := range []string{"fit", "loo", "score", "coverage90_pct", "baselines", "rows", "sessions", "constants", "excluded", "doubts",
		"steps", "intervals", "intervals_known", "control", "experiments", "terms", "identifiability"} {
		require.Contains(t, top, key)
	}
}
