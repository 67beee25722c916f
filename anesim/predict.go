package anesim

import (
	"fmt"
	"math"

	"anelab/chunking"
)

// Workload is how a plan is run, as far as the plan does not say it. The zero value is the current runtime: caches are
// copied back behind the calls.
type Workload struct {
	CopyBack CopyBack // "" = async
	KV       KVForm   // where caches live; a state has nothing to copy back
}

// The zero value is today's runtime. A state leaves nothing to copy, whatever was asked for.
func (w Workload) copyBack() CopyBack {
	if w.KV != KVExplicit {
		return CopyBackNone
	}
	if w.CopyBack == "" {
		return CopyBackAsync
	}
	return w.CopyBack
}

// Prediction is the price of one decode step, as a list of terms and as sums of it.
type Prediction struct {
	Device    string            `json:"device"`
	Context   int               `json:"context"`
	CopyBack  CopyBack          `json:"copyback"`
	Chunks    []ChunkPrediction `json:"chunks"`
	Host      []Cost            `json:"host"`
	HostTimeS float64           `json:"host_time_s"`
	TimeS     float64           `json:"time_s"` // per token
	TimeRange Range             `json:"time_range90_s"`
	TokPerSec float64           `json:"tok_per_s"`
	Range     Range             `json:"tok_per_s_range90"`
	Basis     string            `json:"basis"` // what the range rests on
	Warnings  []string          `json:"warnings"`
}

// ChunkPrediction is the price of one call.
type ChunkPrediction struct {
	Chunk       string          `json:"chunk"` // layout text
	Lo          int             `json:"layer_lo"`
	Hi          int             `json:"layer_hi"` // half open
	Head        bool            `json:"head"`
	WeightBytes int64           `json:"weight_bytes"`
	KVReadBytes int64           `json:"kv_read_bytes"`
	TimeS       float64         `json:"time_s"`
	TimeRange   Range           `json:"time_range90_s"`
	FormSDS     float64         `json:"form_sd_s"` // the part of the range that stands for the form of the model, one standard deviation
	Terms       []Cost          `json:"terms"`
	BoundBy     string          `json:"bound_by"`    // the resource that takes most of the time
	BoundShare  float64         `json:"bound_share"` // of the time, 0 to 1
	Measured    []MeasuredChunk `json:"measured"`
}

// Cost is one term: seconds = constant · quantity.
type Cost struct {
	Term          string  `json:"term"` // name of the constant
	Resource      string  `json:"resource"`
	Constant      float64 `json:"constant"`
	ConstantUnit  string  `json:"constant_unit"`
	Quantity      float64 `json:"quantity"`
	QuantityUnit  string  `json:"quantity_unit"`
	TimeS         float64 `json:"time_s"`
	Confidence    string  `json:"confidence"`
	ConstantGroup string  `json:"constant_group"`
}

// Terms lists every term of the prediction: chunk by chunk, then the host.
func (p *Prediction) Terms() []Cost {
	var all []Cost
	for _, c := range p.Chunks {
		all = append(all, c.Terms...)
	}
	return append(all, p.Host...)
}

// Predict prices one decode step of a plan on a device.
func Predict(p *chunking.Plan, d Device, w Workload) Prediction {
	out := Prediction{Device: d.Name, Context: p.Context, CopyBack: w.copyBack(), Warnings: d.warnings(p)}
	var estimates []chunkEstimate
	for i, q := range planQuantities(p, w.copyBack()) {
		e := d.estimate(p, i, q)
		estimates = append(estimates, e)
		c := d.chunkPrediction(p.Chunks[i], e)
		c.Measured = d.Measured(p.Chunks[i], p, w)
		out.Chunks = append(out.Chunks, c)
		out.TimeS += c.TimeS
	}
	for t := HostStep; t < NumTerms; t++ {
		out.Host = append(out.Host, d.cost(t, hostQuantity(t, p)))
	}
	out.HostTimeS = d.hostSeconds(p.Context)
	out.TimeS += out.HostTimeS
	out.TimeRange = d.aroundToken(out.TimeS, math.Hypot(d.sd(estimates...), d.hostSD(p.Context)))
	out.TokPerSec = 1 / out.TimeS
	out.Range = Range{Lo: 1 / out.TimeRange.Hi, Hi: 1 / out.TimeRange.Lo}
	out.Basis = d.basis()
	if f, _, ok := empiricalFactor(p, d.Class, w); ok {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%s: by that rule %.1f ms and %.1f tok/s, and not the sum", f.warning(), 1e3*f.Factor*out.TimeS, out.TokPerSec/f.Factor))
	}
	return out
}

// Host terms count tokens and positions; a step is one token.
func hostQuantity(t Term, p *chunking.Plan) float64 {
	if t == HostPositions {
		return float64(p.Context)
	}
	return 1
}

// Terms of no quantity are left out: a chunk without imports has no hand-off to explain.
func (d *Device) chunkPrediction(c *chunking.Chunk, e chunkEstimate) ChunkPrediction {
	out := ChunkPrediction{Chunk: c.String(), Lo: c.Lo, Hi: c.Hi, Head: c.Head, WeightBytes: c.Totals.WeightBytes,
		KVReadBytes: c.Totals.KVReadBytes, TimeS: e.seconds, TimeRange: d.around(e.seconds, d.sd(e)), FormSDS: e.form}
	for t := range chunkTerms {
		if e.q[t] != 0 {
			out.Terms = append(out.Terms, d.cost(t, e.q[t]))
		}
	}
	out.BoundBy, out.BoundShare = boundBy(out.Terms, e.seconds)
	return out
}

// Constant and quantity stand beside their product, so that a reader can check it.
func (d *Device) cost(t Term, quantity float64) Cost {
	c := &d.Constants[t]
	return Cost{Term: t.String(), Resource: t.Resource(), Constant: c.Value, ConstantUnit: t.Unit(), Quantity: quantity,
		QuantityUnit: t.Quantity(), TimeS: c.Value * quantity, Confidence: c.Confidence, ConstantGroup: c.Group}
}

// boundBy is the resource with the largest share of the time; the first in the order of terms wins a tie.
func boundBy(costs []Cost, total float64) (resource string, share float64) {
	sums := map[string]float64{}
	for _, c := range costs {
		sums[c.Resource] += c.TimeS
	}
	for _, c := range costs {
		if s := sums[c.Resource] / total; s > share {
			resource, share = c.Resource, s
		}
	}
	return resource, share
}

// hostSD widens with the context like the chunks' doubt: nothing was timed on the host beyond the contexts seen.
func (d *Device) hostSD(context int) float64 {
	return math.Hypot(d.Evidence.HostSDSeconds, d.Constants[HostPositions].SD*float64(context))
}

// basis says what the range rests on.
func (d *Device) basis() string {
	e := &d.Evidence
	switch e.Experiments {
	case 0:
		return "priors only: no measurement of this device"
	case 1:
		return "one calibration session, which none was left to test on"
	}
	return fmt.Sprintf("%d calibration sessions, worst miss %.1f %%", e.Experiments, 100*e.WorstMiss)
}
