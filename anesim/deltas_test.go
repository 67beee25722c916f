package anesim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/anesim/evidence"
)

// oracle: effects.csv. Signs are right where a millisecond or more was measured, and errors stay within 0.7 ms; the merge
// into one program is a rule with a range.
func TestLayoutDeltas(t *testing.T) {
	all, err := devices.All()
	require.NoError(t, err)
	deltas := anesim.LayoutDeltas(model(t), all)
	require.Len(t, deltas, 7)
	rules := 0
	for _, d := range deltas {
		t.Logf("%-28s %-12s measured %+.2f ms, predicted %+.2f (%+.2f to %+.2f) %s", d.Effect, d.Device, 1e3*d.MeasuredS, 1e3*d.PredictS, 1e3*d.Range.Lo, 1e3*d.Range.Hi, d.Rule)
		require.True(t, d.Held, d.Effect)
		require.InDelta(t, d.PredictS-d.MeasuredS, d.ErrorS, 1e-12)
		if d.Rule != "" {
			rules++
			require.Greater(t, d.Range.Hi-d.Range.Lo, 5e-3, "one session is no ground for a narrow range")
			continue
		}
		require.InDelta(t, d.MeasuredS, d.PredictS, 0.7e-3, d.Effect)
	}
	require.Equal(t, 1, rules)
	require.Empty(t, anesim.LayoutDeltas(model(t), nil))
}

// oracle: rates with a state, by the terms of explicit caches without a copy; the rule about it widens the range.
func TestStateIsPricedWithoutCopies(t *testing.T) {
	for _, c := range []struct {
		layout, device string
		tokPerSec      float64
	}{{"@4way", "mac", 32.6}, {"@3way", "mac", 34.6}, {"@4way", "iphone17pro", 32}, {"@3way", "iphone17pro", 33.2}, {"@1way", "mac", 30.8}} {
		w := anesim.Workload{KV: anesim.KVState}
		p, d := planned(t, c.layout), device(t, c.device)
		plain := anesim.Predict(p, d, w)
		require.Equal(t, anesim.CopyBackNone, plain.CopyBack)
		x := anesim.WithEmpirical(plain, p, d, w)
		t.Logf("%s %s: %.1f tok/s (%.1f–%.1f), measured %.1f", c.device, c.layout, x.TokPerSec, x.Range.Lo, x.Range.Hi, c.tokPerSec)
		require.True(t, inside(x.Range, c.tokPerSec), c)
		require.Greater(t, x.TimeRange.Hi-x.TimeRange.Lo, plain.TimeRange.Hi-plain.TimeRange.Lo)
		require.Contains(t, x.Warnings[len(x.Warnings)-1], "empirical rule")
	}
	p, d := planned(t, "@3way"), device(t, "mac")
	require.Empty(t, anesim.EmpiricalFactors(p, d, anesim.Workload{}))
	require.Len(t, anesim.EmpiricalFactors(p, d, anesim.Workload{KV: anesim.KVStateless}), 1)
	for _, f := range append(anesim.EmpiricalFactors(planned(t, "@1way"), d, anesim.Workload{}), anesim.EmpiricalFactors(p, d, anesim.Workload{KV: anesim.KVState})...) {
		for _, id := range f.Effect {
			_, ok := evidence.FindEffect(id)
			require.True(t, ok, id)
		}
	}
}

// SIM-04, layout-4to2-iphone-*: two chunks were timed in a session that timed nothing else, so what they save rests on the sum law
// alone, and the range must hold what was measured of it: 31.0 to 31.7 tok/s, and 31.2 to 30.9 ms of chunks across sessions. Three
// chunks were timed beside four, and are known better. (oracle: effects.csv)
func TestSIM04DifferencesAreAsSureAsTheSessionsBehindThem(t *testing.T) {
	d := device(t, "iphone17pro")
	seconds, two := anesim.Difference(planned(t, "@4way"), planned(t, "@2way"), d, anesim.Workload{})
	for _, effect := range []string{"layout-4to2-iphone-tps", "layout-4to2-iphone-sum"} {
		e, ok := evidence.FindEffect(effect)
		require.True(t, ok)
		before, after, _ := e.Times()
		t.Logf("%s: measured %+.2f ms, predicted %+.2f (%+.2f to %+.2f)", effect, 1e3*(after-before), 1e3*seconds, 1e3*two.Lo, 1e3*two.Hi)
		require.Less(t, two.Lo, after-before)
		require.Greater(t, two.Hi, after-before)
	}
	_, three := anesim.Difference(planned(t, "@4way"), planned(t, "@3way"), d, anesim.Workload{})
	require.Negative(t, three.Hi, "timed side by side: the sign is known")
	require.Less(t, three.Hi-three.Lo, 0.7*(two.Hi-two.Lo))
}

// invariant: no other layout is known at 8K: the sign of no change is certain there.
func TestDifferencesAt8KAreOpen(t *testing.T) {
	for _, name := range []string{"iphone17pro", "mac"} {
		for _, layout := range []string{"@3way", "@2way", "@topo1", "L0-13 | L14-34+head"} {
			_, r := anesim.Difference(planned(t, "@4way context=8192"), planned(t, layout+" context=8192"), device(t, name), anesim.Workload{})
			require.Negative(t, r.Lo, "%s %s", name, layout)
			require.Positive(t, r.Hi, "%s %s", name, layout)
		}
	}
}

// invariant: engines that decode every palette at one rate gain nothing by fewer bits (spec ane.md §0.3), so a range between
// encodings that were never timed nearly reaches no change at all.
func TestDifferencesOfEncodingsHoldTheDecodeLimit(t *testing.T) {
	d := device(t, "iphone17pro")
	for _, weights := range []string{"int2g32", "int8g32"} {
		seconds, r := anesim.Difference(planned(t, "L0-14 | L15-34+head"), planned(t, "L0-14 w="+weights+" | L15-34+head w="+weights), d, anesim.Workload{})
		nearest := min(math.Abs(r.Lo), math.Abs(r.Hi))
		if r.Lo < 0 && r.Hi > 0 {
			nearest = 0
		}
		require.Less(t, nearest, 0.45*math.Abs(seconds), weights)
	}
}
