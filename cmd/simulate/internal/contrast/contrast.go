package contrast

import (
	"math"

	"anelab/anesim"
)

// Delta is B minus A.
type Delta struct {
	TimeS      float64      `json:"time_s"`
	TimeRange  anesim.Range `json:"time_range90_s"`
	Slower     float64      `json:"slower"`                // TimeS over A's time; negative when B is faster
	SlowerIn90 anesim.Range `json:"slower_range90"`        // its interval
	Resources  []Resource   `json:"resources"`             // in the order of the terms
	TokPerSec  float64      `json:"tok_per_s"`             // difference of the rates
	Certain    bool         `json:"outside_zero_in_90pct"` // the interval does not hold zero
}

// Resource is the time that both layouts spend on one thing.
type Resource struct {
	Name  string  `json:"resource"`
	A     float64 `json:"a_s"`
	B     float64 `json:"b_s"`
	Delta float64 `json:"delta_s"`
}

// Of compares two predictions made for the same device and workload.
func Of(a, b *anesim.Prediction, d *anesim.Device) Delta {
	out := Delta{TimeS: b.TimeS - a.TimeS, TokPerSec: b.TokPerSec - a.TokPerSec, Resources: resources(a, b)}
	half := d.Evidence.IntervalFactor * sd(a, b, d)
	out.TimeRange = anesim.Range{Lo: out.TimeS - half, Hi: out.TimeS + half}
	out.Slower = out.TimeS / a.TimeS
	out.SlowerIn90 = anesim.Range{Lo: out.TimeRange.Lo / a.TimeS, Hi: out.TimeRange.Hi / a.TimeS}
	out.Certain = out.TimeRange.Lo > 0 || out.TimeRange.Hi < 0
	return out
}

// resources adds up the terms of both sides.
func resources(a, b *anesim.Prediction) []Resource {
	sums := map[string]*Resource{}
	var all []*Resource
	for t := range anesim.NumTerms {
		if sums[t.Resource()] == nil {
			sums[t.Resource()] = &Resource{Name: t.Resource()}
			all = append(all, sums[t.Resource()])
		}
	}
	for _, c := range a.Terms() {
		sums[c.Resource].A += c.TimeS
	}
	for _, c := range b.Terms() {
		sums[c.Resource].B += c.TimeS
	}
	var out []Resource
	for _, r := range all {
		if r.Delta = r.B - r.A; r.A != 0 || r.B != 0 {
			out = append(out, *r)
		}
	}
	return out
}

// quantities of a prediction or of a chunk, by term.
type quantities [anesim.NumTerms]float64

func (q *quantities) add(costs []anesim.Cost, sign float64) {
	for _, c := range costs {
		if t, ok := anesim.ParseTerm(c.Term); ok {
			q[t] += sign * c.Quantity
		}
	}
}

// sd is the standard deviation of the difference.
func sd(a, b *anesim.Prediction, d *anesim.Device) float64 {
	var q quantities
	q.add(a.Terms(), -1)
	q.add(b.Terms(), 1)
	v := variance(&q, d) + square(d.Noise.Session*(b.TimeS-a.TimeS))
	var form float64
	for _, c := range append(own(a, b), own(b, a)...) {
		v += square(d.Noise.Chunk * c.TimeS)
		form += c.FormSDS
	}
	return math.Sqrt(v + square(form))
}

// own lists the chunks of one side that the other has not.
func own(side, other *anesim.Prediction) []anesim.ChunkPrediction {
	var all []anesim.ChunkPrediction
	for _, c := range side.Chunks {
		shared := false
		for _, o := range other.Chunks {
			shared = shared || o.Chunk == c.Chunk && o.TimeS == c.TimeS
		}
		if !shared {
			all = append(all, c)
		}
	}
	return all
}

// variance of Σ q·constant from the errors of the constants.
func variance(q *quantities, d *anesim.Device) float64 {
	var v float64
	n := len(d.Correlation)
	for i := range anesim.NumTerms {
		for j := range anesim.NumTerms {
			rho := 0.0
			switch {
			case int(i) < n && int(j) < n:
				rho = d.Correlation[i][j]
			case i == j:
				rho = 1 // constants of the host
			}
			v += q[i] * d.Constants[i].SD * rho * q[j] * d.Constants[j].SD
		}
	}
	return max(v, 0)
}

func square(x float64) float64 { return x * x }
