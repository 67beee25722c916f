package contrast

import (
	"anelab/anesim"
	"anelab/chunking"
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

// Side is one of two plans and its price.
type Side struct {
	Plan       *chunking.Plan
	Prediction *anesim.Prediction
}

// Of compares two plans that were priced for the same device and workload.
func Of(before, after Side, d *anesim.Device, w anesim.Workload) Delta {
	a, b := before.Prediction, after.Prediction
	out := Delta{TimeS: b.TimeS - a.TimeS, TokPerSec: b.TokPerSec - a.TokPerSec, Resources: resources(a, b)}
	_, out.TimeRange = anesim.Difference(before.Plan, after.Plan, *d, w)
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
