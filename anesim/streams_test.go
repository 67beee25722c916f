package anesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
)

// hand: 0.3 ms and 8 ps per byte make 2.3 ms of 250 MB and 8.3 ms of 1000 MB; the fit finds both constants between its prior
// and the calls, and leaves everything else to the relative.
func TestStreamsTellTwoConstants(t *testing.T) {
	mac := device(t, "mac")
	target := anesim.Device{Name: "x", Title: "X", Class: anesim.Mac}
	tr, err := anesim.TransferStreams(target, mac, []anesim.Stream{{"a", 250e6, 2.3e-3}, {"b", 1000e6, 8.3e-3}})
	require.NoError(t, err)
	k := tr.Device.Constants
	require.InEpsilon(t, 8e-12, k[anesim.WeightStream].Value, 0.03)
	require.InDelta(t, 0.3e-3, k[anesim.Dispatch].Value, 0.1e-3)
	require.Less(t, k[anesim.WeightStream].SD, 0.1*k[anesim.WeightStream].Value)
	require.InEpsilon(t, mac.Constants[anesim.AttentionOwn].Value, k[anesim.AttentionOwn].Value, 1e-9)
	require.GreaterOrEqual(t, k[anesim.AttentionOwn].SD, 0.35*k[anesim.AttentionOwn].Value)
	require.Less(t, float64(tr.Fit.Max), 2.0)
	require.Equal(t, 2, tr.Device.Evidence.Rows)

	x := anesim.Predict(planned(t, "@3way"), tr.Device, anesim.Workload{})
	require.Len(t, x.Warnings, 1)
	require.Contains(t, x.Warnings[0], "only its stream of weights")
	require.Equal(t, "one calibration session, which none was left to test on", x.Basis)
	require.Greater(t, x.TimeRange.Hi/x.TimeS, 1.2, "attention is a relative's")
}

// hand: what is refused.
func TestStreamsRefuse(t *testing.T) {
	mac := device(t, "mac")
	for _, c := range []struct {
		name  string
		calls []anesim.Stream
		want  string
	}{
		{"none", nil, "none, want timed calls on the Neural Engine"},
		{"no size", []anesim.Stream{{"a", 0, 1e-3}}, "calls: a: 0 MB in 1 ms"},
		{"seconds for milliseconds", []anesim.Stream{{"a", 250e6, 2.3e-6}}, "0.1 ms to a minute"},
		{"one of them on another engine", []anesim.Stream{{"a", 250e6, 2.3e-3}, {"b", 1000e6, 8.3e-3}, {"c", 500e6, 9e-3}}, "calls: c: 9 ms"},
	} {
		_, err := anesim.TransferStreams(mac, mac, c.calls)
		require.ErrorContains(t, err, c.want, c.name)
	}
}

// invariant: one session of each device leaves nothing to test a fit on, and the report claims nothing.
func TestOneSessionClaimsNoAccuracy(t *testing.T) {
	var one []anesim.Measurement
	for _, m := range measured(t) {
		if m.Experiment == "iphone17pro-e2b-4chunk-2k-20260414" {
			one = append(one, m)
		}
	}
	c, err := anesim.Calibrate(one, options(t))
	require.NoError(t, err)
	require.Zero(t, c.LOO.ChunkRaw.N)
	require.Empty(t, c.TermChecks)
	d := c.Devices[0]
	require.Zero(t, d.Evidence.WorstMiss)
	require.InDelta(t, 1.645, d.Evidence.IntervalFactor, 1e-9)
	require.NotContains(t, anesim.Predict(planned(t, "@4way"), d, anesim.Workload{}).Basis, "worst miss")
}

// oracle: E4B on the phone was timed twice. Constants of E2B price it 10 to 15 % low, and the range of another model says so.
func TestOtherModelsAreWide(t *testing.T) {
	m := e2bAndE4B(t)["gemma-4-e4b"]
	p := plannedFor(t, m, "L0-11 | L12-23 | L24-32 | L33-41+head")
	x := anesim.Predict(p, device(t, "iphone17pro"), anesim.Workload{CopyBack: anesim.CopyBackSync})
	held := 0
	for i, seconds := range [][2]float64{{21.7e-3, 20.3e-3}, {21.6e-3, 20.7e-3}, {11.3e-3, 11e-3}, {16e-3, 15.4e-3}} {
		for _, s := range seconds {
			if inside(x.Chunks[i].TimeRange, s) {
				held++
			}
		}
	}
	require.GreaterOrEqual(t, held, 7, "of eight timed chunks; a 90 % range may miss one")
	require.Less(t, x.TimeRange.Lo, 67.8e-3)
	require.Less(t, 71.4e-3, x.TimeRange.Hi)
}
