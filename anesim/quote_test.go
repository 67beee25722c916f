package anesim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
)

// invariant: a quote is the prediction without its parts, on a device with evidence as well as on one without.
func TestQuoteEqualsPrediction(t *testing.T) {
	m, rows := e2b(t), measurements(t)
	fitted := phone()
	fitted.MeasuredAs = []string{"iPhone 17 Pro"}
	c, err := Calibrate(rows, Options{Devices: []Device{fitted}, Models: map[string]*chunking.Model{fitModel: m}})
	require.NoError(t, err)
	for _, d := range []Device{phone(), c.Devices[0]} {
		for _, w := range []Workload{{}, {CopyBack: CopyBackSync}} {
			quoter, planner, n := NewQuoter(d, w), chunking.NewPlanner(m), 0
			for l := range chunking.Enumerate(m, 4) {
				if n++; n%211 != 0 {
					continue
				}
				l.Context = []int{512, 2048, 8192}[n%3]
				p, err := planner.Plan(l)
				require.NoError(t, err)
				x, q := Predict(p, d, w), quoter.Quote(p)
				require.InEpsilon(t, x.TimeS, q.Seconds, 1e-12)
				require.InEpsilon(t, x.TimeRange.Lo, q.TimeRange.Lo, 1e-9)
				require.InEpsilon(t, x.TimeRange.Hi, q.TimeRange.Hi, 1e-9)
				by, share := boundBy(x.Terms(), x.TimeS)
				require.Equal(t, by, q.BoundBy)
				require.InEpsilon(t, share, q.BoundShare, 1e-9)
			}
			require.Equal(t, 5984, n) // C(34, 3)
		}
	}
}

func TestQuotingAllocatesNothing(t *testing.T) { // invariant
	p, quoter := planOf(t, e2b(t), "@4way"), NewQuoter(phone(), Workload{})
	quoter.Quote(p)
	require.Zero(t, testing.AllocsPerRun(100, func() { quoter.Quote(p) }))
}
