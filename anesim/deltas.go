package anesim

import (
	"math"

	"anelab/anesim/evidence"
	"anelab/chunking"
)

// Delta holds one change of layout against what was measured of it.
type Delta struct {
	Effect    string  `json:"effect"` // row of effects.csv
	Device    string  `json:"device"`
	Before    string  `json:"before"` // layout text
	After     string  `json:"after"`
	Part      string  `json:"part"` // what was timed: "step", or the chunks that were merged
	BeforeS   float64 `json:"before_s"`
	AfterS    float64 `json:"after_s"`
	MeasuredS float64 `json:"measured_delta_s"`
	PredictS  float64 `json:"predicted_delta_s"`
	Range     Range   `json:"predicted_delta_range90_s"`
	ErrorS    float64 `json:"error_s"`
	Rule      string  `json:"rule"` // the empirical rule behind the prediction; "" = the sum law alone
	Held      bool    `json:"held"` // right sign where a millisecond or more was measured, and within 0.7 ms; by rule: in range
}

// Bounds that a predicted delta must keep.
const (
	deltaBound = 0.7e-3
	signBound  = 1e-3
)

// deltaCase is one effect as two plans. Empty chunk lists mean the whole step.
type deltaCase struct {
	effect, device string
	before, after  string
	chunksBefore   []int
	chunksAfter    []int
	workload       Workload
}

// deltaCases are the layout effects that were measured in one session or back to back, so that no session factor hides in
// them. Host time cancels in all.
func deltaCases() []deltaCase {
	const four, three, one = "@4way", "@3way", "@1way"
	sync, async, state := Workload{CopyBack: CopyBackSync}, Workload{CopyBack: CopyBackAsync}, Workload{KV: KVState}
	return []deltaCase{
		{effect: "layout-4to3-iphone-tps", device: "iphone17pro", before: four, after: three, workload: sync},
		{effect: "layout-4to3-iphone-merged", device: "iphone17pro", before: four, after: three, chunksBefore: []int{1, 2}, chunksAfter: []int{1}, workload: sync},
		{effect: "layout-4to3-mac-tps", device: "mac", before: four, after: three, workload: sync},
		{effect: "layout-4to3-mac-merged", device: "mac", before: four, after: three, chunksBefore: []int{1, 2}, chunksAfter: []int{1}, workload: sync},
		{effect: "layout-4to3-mac-topo", device: "mac", before: four, after: three, workload: async},
		{effect: "layout-4to3-mlstate-mac", device: "mac", before: four, after: three, workload: state},
		{effect: "layout-3to1-mlstate-mac", device: "mac", before: three, after: one, workload: state},
	}
}

// LayoutDeltas predicts the measured changes of layout. Devices that are not given are left out.
func LayoutDeltas(m *chunking.Model, devices []Device) []Delta {
	var all []Delta
	for _, c := range deltaCases() {
		for _, d := range devices {
			if d.Name == c.device {
				all = append(all, c.predict(m, d))
			}
		}
	}
	return all
}

// Measured sides come from effects.csv and predicted ones from plans; both are differences, so host time is in neither.
func (c deltaCase) predict(m *chunking.Model, d Device) Delta {
	before, after := presetPlan(m, c.before), presetPlan(m, c.after)
	e, ok := evidence.FindEffect(c.effect)
	measuredBefore, measuredAfter, times := e.Times()
	if !ok || !times {
		panic("anesim: a delta without its effect")
	}
	out := Delta{Effect: c.effect, Device: d.Name, Before: before.Layout.String(), After: after.Layout.String(), Part: "step",
		BeforeS: measuredBefore, AfterS: measuredAfter, MeasuredS: measuredAfter - measuredBefore}
	if c.chunksBefore != nil {
		out.Part = "merged chunks"
	}
	var sd float64
	out.PredictS, sd = d.change(c.side(&d, before, c.chunksBefore), c.side(&d, after, c.chunksAfter))
	if f, rule, ok := empiricalFactor(after, d.Class, c.workload); ok {
		seconds := Predict(after, d, c.workload).TimeS
		out.PredictS += (f.Factor - 1) * seconds
		sd = math.Hypot(sd, f.SD*seconds)
		out.Rule = rule
	}
	half := d.Evidence.IntervalFactor * sd
	out.Range = Range{Lo: out.PredictS - half, Hi: out.PredictS + half}
	out.ErrorS = out.PredictS - out.MeasuredS
	out.Held = out.held()
	return out
}

// A sign is asked for only where a millisecond or more was measured: timers print tenths, and below that noise decides
// it.
func (d *Delta) held() bool {
	if d.Rule != "" {
		return d.Range.Lo <= d.MeasuredS && d.MeasuredS <= d.Range.Hi
	}
	sign := math.Abs(d.MeasuredS) < signBound || (d.PredictS < 0) == (d.MeasuredS < 0)
	return sign && math.Abs(d.ErrorS) <= deltaBound
}

// presetPlan plans a preset; every model has them all.
func presetPlan(m *chunking.Model, name string) *chunking.Plan {
	l, _ := m.Preset(name)
	p, err := l.Plan(m)
	if err != nil {
		panic("anesim: a preset cannot be planned")
	}
	return p
}

// side is the estimates of the chunks that were timed.
func (c deltaCase) side(d *Device, p *chunking.Plan, chunks []int) []chunkEstimate {
	var all []chunkEstimate
	for i, e := range d.estimates(p, c.workload) {
		if timed(i, chunks) {
			all = append(all, e)
		}
	}
	return all
}

// No list means the whole step.
func timed(i int, chunks []int) bool {
	for _, c := range chunks {
		if c == i {
			return true
		}
	}
	return chunks == nil
}
