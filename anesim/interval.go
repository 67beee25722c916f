package anesim

import (
	"math"

	"anelab/chunking"
)

// How wrong the form of the model may be where no row checks it, as a share of the time in question. These are judgements,
// stated here once: a linear law in the context has been seen to hold within a few per cent between two contexts, but which
// part of it is attention and which is hand-off rests on priors; weights of another width may run at the rate of bytes or at
// the rate of elements (spec ane.md A6, §0.3).
const (
	doubtContext = 0.2 // of the time that the context adds beyond the nearest context with two layouts
	doubtWeights = 0.5 // of the difference between the two rates
	doubtSize    = 0.1 // of the weight time outside the range of chunk sizes measured
)

// chunkEstimate is the time of one chunk and what can be wrong with it.
type chunkEstimate struct {
	q       Quantities
	seconds float64
	form    float64 // standard deviation from the form of the model, s; common to the chunks of a plan
}

// estimate prices chunk i of a plan.
func (d *Device) estimate(p *chunking.Plan, i int, q Quantities) chunkEstimate {
	c := p.Chunks[i]
	e := chunkEstimate{q: q, seconds: d.seconds(&q)}
	e.form = d.contextDoubt(c, p, &q) + d.weightDoubt(c) + d.sizeDoubt(c)
	return e
}

// contextDoubt is zero for a chunk that was timed at this context, or at a context where other layouts were.
func (d *Device) contextDoubt(c *chunking.Chunk, p *chunking.Plan, q *Quantities) float64 {
	for _, m := range d.Evidence.Chunks {
		if m.Context == p.Context && m.Chunk == c.String() {
			return 0
		}
	}
	base := d.Evidence.nearestSupported(p.Context)
	var s float64
	for _, t := range contextTerms {
		s += d.Constants[t].Value * q[t]
	}
	return doubtContext * s * math.Abs(1-float64(base)/float64(p.Context))
}

// weightDoubt compares the stream of the encoding's bytes with that of as many 4-bit elements.
func (d *Device) weightDoubt(c *chunking.Chunk) float64 {
	if d.Evidence.hasWeights(c.Weights.String()) {
		return 0
	}
	asInt4 := float64(c.Totals.LinearParams) / 2
	return doubtWeights * d.Constants[WeightStream].Value * math.Abs(float64(c.Totals.LinearBytes)-asInt4)
}

func (d *Device) sizeDoubt(c *chunking.Chunk) float64 {
	w := float64(c.Totals.WeightBytes)
	outside := max(0, w-float64(d.Evidence.MaxWeightBytes), float64(d.Evidence.MinWeightBytes)-w)
	return doubtSize * d.Constants[WeightStream].Value * outside
}

func (e *Evidence) hasWeights(encoding string) bool {
	for _, w := range e.Weights {
		if w == encoding {
			return true
		}
	}
	return false
}

// sd is the standard deviation of the measured time of these chunks together: errors of the constants, the session's
// factor and the form of the model are common to all, the scatter of each chunk is its own.
func (d *Device) sd(chunks ...chunkEstimate) float64 {
	var q Quantities
	var total, form, scatter float64
	for i := range chunks {
		e := &chunks[i]
		q.add(&e.q)
		total += e.seconds
		form += e.form
		scatter += square(d.Noise.Chunk*e.seconds) + square(printedSD)
	}
	return math.Sqrt(d.variance(&q) + square(d.Noise.Session*total) + square(form) + scatter)
}

func square(x float64) float64 { return x * x }

// Range is a 90 % interval.
type Range struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// around is the interval of a time; it ends at the fastest that a tenth of the estimate allows, so that rates stay finite.
func (d *Device) around(seconds, sd float64) Range {
	half := d.Evidence.IntervalFactor * sd
	return Range{Lo: max(seconds-half, seconds/10), Hi: seconds + half}
}
