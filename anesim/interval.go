package anesim

import (
	"math"

	"anelab/chunking"
)

// How wrong the form of the model may be where no row checks it. These are judgements, stated here once.
const (
	// Of the time that the context adds beyond the nearest context with two layouts. Which part of it is attention and
	// which is hand-off rests on priors.
	doubtContext = 0.2
	// Of the difference between streaming the bytes of an encoding and streaming as many 4-bit elements: some engines decode
	// every palette at one rate per element (spec ane.md §0.3, A6).
	doubtWeights = 0.5
	// Of the time of a chunk that was never timed: merged chunks that were left out missed the sum law by 1 to 7 %.
	doubtChunk = 0.03
	// Of the time of a chunk, per layer beyond the longest chunk timed: on a Mac the whole model with its KV in one state
	// lost a fifth of its speed to three chunks that the sum law would have gained (effects.csv layout-3to1-mlstate-mac).
	doubtLayer = 0.01
	// Of the time of a chunk of a model that was not fitted on: chunks of E4B took 9 to 23 % more than constants of E2B say,
	// and no other model shows whether that is its width, its second KV head or its session.
	doubtModel = 0.2
)

// chunkEstimate is the time of one chunk and what can be wrong with it.
type chunkEstimate struct {
	chunk     *chunking.Chunk
	timed     bool // a graph of the kind that was timed, see [asTimed]
	positions int  // of the plan's context
	q         Quantities
	seconds   float64
	context   float64 // doubt of how the context's time splits, s
	encoding  float64 // bytes against elements, s; negative where the encoding is smaller than 4 bits
	form      float64 // standard deviation from the form of the model, s; common to the chunks of a plan
	model     float64 // relative standard deviation common to everything that is priced of a model
}

// estimate prices chunk i of a plan.
func (d *Device) estimate(p *chunking.Plan, i int, q Quantities) chunkEstimate {
	c := p.Chunks[i]
	e := chunkEstimate{chunk: c, timed: asTimed(p), positions: p.Context, q: q, seconds: d.seconds(&q), model: d.modelDoubt(p.Model),
		context: d.contextDoubt(c, p, &q), encoding: d.weightDoubt(c)}
	e.form = e.context + math.Abs(e.encoding) + d.chunkDoubt(c, d.sessionsOf(c))*e.seconds
	return e
}

// contextDoubt is zero for a chunk that was timed at this context, or at a context where other layouts were.
func (d *Device) contextDoubt(c *chunking.Chunk, p *chunking.Plan, q *Quantities) float64 {
	if asTimed(p) {
		for _, m := range d.Evidence.Chunks {
			if m.Context == p.Context && m.Chunk == c.String() {
				return 0
			}
		}
	}
	base := d.Evidence.nearestSupported(p.Context)
	var s float64
	for _, t := range contextTerms {
		s += d.Constants[t].Value * q[t]
	}
	return doubtContext * s * math.Abs(1-float64(base)/float64(p.Context))
}

// asTimed reports whether a plan's chunks are graphs of the kind that was timed. Under an attention policy of its own, or
// with several query tokens, a chunk of the same layers is another program.
func asTimed(p *chunking.Plan) bool { return len(p.Layout.Attn) == 0 && p.Layout.QueryTokens <= 1 }

// weightDoubt compares the stream of the encoding's bytes with that of as many 4-bit elements. It has the sign of the difference:
// one rate per element would be wrong about two encodings in the same sense.
func (d *Device) weightDoubt(c *chunking.Chunk) float64 {
	if d.Evidence.hasWeights(c.Weights.String()) {
		return 0
	}
	asInt4 := float64(c.Totals.LinearParams) / 2
	return doubtWeights * d.Constants[WeightStream].Value * (float64(c.Totals.LinearBytes) - asInt4)
}

// modelDoubt is relative to the time of a chunk. Without a timed chunk there are priors, which are wide enough for any model.
func (d *Device) modelDoubt(m *chunking.Model) float64 {
	if len(d.Evidence.Chunks) == 0 || d.Evidence.knows("", m) {
		return 0
	}
	return doubtModel
}

// sessionsOf counts the experiments that timed a chunk, at any context.
func (d *Device) sessionsOf(c *chunking.Chunk) int {
	n := 0
	for _, m := range d.Evidence.Chunks {
		if m.Chunk == c.String() {
			n += m.Experiments
		}
	}
	return n
}

// chunkDoubt is relative to the time of the chunk. Each session that timed it takes its share of the doubt.
func (d *Device) chunkDoubt(c *chunking.Chunk, sessions int) float64 {
	longer := max(0, c.Totals.Layers-d.Evidence.MaxLayers)
	if len(d.Evidence.Chunks) == 0 {
		longer = 0 // longer than what?
	}
	return doubtChunk/float64(1+sessions) + doubtLayer*float64(longer)
}

// Encodings are compared as text: palettes of other group sizes stream alike but were not seen to.
func (e *Evidence) hasWeights(encoding string) bool {
	for _, w := range e.Weights {
		if w == encoding {
			return true
		}
	}
	return false
}

// sd is the standard deviation of the measured time of these chunks together: errors of the constants, the session's
// factor and the form of the sum are common to all, the scatter of each chunk is its own.
func (d *Device) sd(chunks ...chunkEstimate) float64 {
	var q Quantities
	var total, form, scatter, model float64
	for i := range chunks {
		e := &chunks[i]
		q.add(&e.q)
		total += e.seconds
		form += e.form
		model += e.model * e.seconds
		scatter += square(d.Noise.Chunk*e.seconds) + square(printedSD)
	}
	return math.Sqrt(d.variance(&q) + square(d.Noise.Session*total) + square(form) + square(model) + scatter)
}

func square(x float64) float64 { return x * x }

// Range is a 90 % interval.
type Range struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// around is the interval of a chunk's time.
func (d *Device) around(seconds, sd float64) Range {
	return bounded(seconds, d.Evidence.IntervalFactor*sd)
}

// aroundToken is the interval of a whole step; sd is that of its chunks and of the host. How far steps of one layout are
// apart over builds and prompts is a figure of its own (data README §4), not one that left-out chunks could show.
func (d *Device) aroundToken(seconds, sd float64) Range {
	return bounded(seconds, math.Hypot(d.Evidence.IntervalFactor*sd, normal90*d.Noise.Step*seconds))
}

// bounded ends at the fastest that a tenth of the estimate allows, so that rates stay finite.
func bounded(seconds, half float64) Range {
	return Range{Lo: max(seconds-half, seconds/10), Hi: seconds + half}
}
