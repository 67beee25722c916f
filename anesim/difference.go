package anesim

import (
	"math"
	"slices"

	"anelab/chunking"
)

// Difference is what changing one plan into another does to a decode step. The range counts only what does not cancel: the
// session's factor and the constants' errors are common to both sides as far as their quantities are, and so is everything that is
// wrong with a chunk which both sides have. What is left is doubted as a whole, for chunks that were merged are wrong in the same
// sense.
func Difference(before, after *chunking.Plan, d Device, w Workload) (seconds float64, r Range) {
	seconds, sd := d.change(d.estimates(before, w), d.estimates(after, w))
	seconds += d.hostSeconds(after.Context) - d.hostSeconds(before.Context)
	sd = math.Hypot(sd, d.Constants[HostPositions].SD*float64(after.Context-before.Context))
	half := d.Evidence.IntervalFactor * sd
	return seconds, Range{Lo: seconds - half, Hi: seconds + half}
}

// estimates prices every chunk of a plan.
func (d *Device) estimates(p *chunking.Plan, w Workload) []chunkEstimate {
	var all []chunkEstimate
	for i, q := range planQuantities(p, w.copyBack()) {
		all = append(all, d.estimate(p, i, q))
	}
	return all
}

// change is the predicted difference of two lists of calls and its standard deviation.
func (d *Device) change(before, after []chunkEstimate) (seconds, sd float64) {
	var q Quantities
	var model, encoding float64
	add := func(sign float64, side []chunkEstimate) {
		for i := range side {
			e := &side[i]
			seconds += sign * e.seconds
			model += sign * e.model * e.seconds
			encoding += sign * e.encoding
			for t := range chunkTerms {
				q[t] += sign * e.q[t]
			}
		}
	}
	add(-1, before)
	add(1, after)
	own := append(missing(before, after), missing(after, before)...)
	together := d.timedTogether(own)
	form, scatter := math.Abs(encoding), 0.0
	for i := range own {
		form += own[i].context + d.structureDoubt(&own[i], together)
		scatter += square(d.Noise.Chunk * own[i].seconds)
	}
	return seconds, math.Sqrt(scatter + d.variance(&q) + square(d.Noise.Session*seconds) + square(model) + square(form))
}

// missing lists the chunks of one side that the other has not.
func missing(side, other []chunkEstimate) []chunkEstimate {
	var all []chunkEstimate
	for i := range side {
		if !slices.ContainsFunc(other, func(o chunkEstimate) bool { return sameProgram(&side[i], &o) }) {
			all = append(all, side[i])
		}
	}
	return all
}

// sameProgram: what runs before a program and when its caches are copied is no part of it.
func sameProgram(a, b *chunkEstimate) bool {
	p, q := a.q, b.q
	for _, t := range []Term{HandoffFirst, CopyBackBytes} {
		p[t], q[t] = 0, 0
	}
	return p == q && a.chunk.String() == b.chunk.String()
}

// timedTogether reports whether one session timed all these chunks at their contexts. Only such a session can tell what a chunk
// takes more than the sum of its terms from what the session does.
func (d *Device) timedTogether(chunks []chunkEstimate) bool {
	var common []string
	for i := range chunks {
		var sessions []string
		for _, m := range d.timersOf(&chunks[i]) {
			sessions = append(sessions, m.Sessions...)
		}
		if i > 0 {
			sessions = slices.DeleteFunc(sessions, func(s string) bool { return !slices.Contains(common, s) })
		}
		common = sessions
	}
	return len(common) > 0
}

// timersOf is what was timed of this very program at its context.
func (d *Device) timersOf(e *chunkEstimate) []MeasuredChunk {
	var all []MeasuredChunk
	for _, m := range d.Evidence.Chunks {
		if e.timed && m.Chunk == e.chunk.String() && m.Context == e.positions && m.Weights == e.chunk.Weights.String() {
			all = append(all, m)
		}
	}
	return all
}

// structureDoubt is how wrong the sum of terms may be about a chunk that only one side of a difference has, in seconds. Of chunks
// that were not timed together the first session of each says nothing: it had a factor of its own. And no doubt is smaller than
// what timers of the chunk have shown the sum to miss.
func (d *Device) structureDoubt(e *chunkEstimate, together bool) float64 {
	sessions := d.sessionsOf(e.chunk)
	if !together {
		sessions = max(sessions-1, 0)
	}
	return max(d.chunkDoubt(e.chunk, sessions)*e.seconds, math.Abs(d.missed(e)))
}

// missed is the mean of what timers showed beyond the sum of terms.
func (d *Device) missed(e *chunkEstimate) float64 {
	var sum float64
	n := 0
	for _, m := range d.timersOf(e) {
		sum += float64(m.Experiments) * d.excess(e, &m)
		n += m.Experiments
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// excess is measured minus predicted under the conditions of the timers. They do not say which chunk ran before, so a chunk that
// imports is compared with the nearer of both prices.
func (d *Device) excess(e *chunkEstimate, m *MeasuredChunk) float64 {
	q := e.q
	q[CopyBackBytes], q[HandoffFirst] = 0, 0
	if m.CopyBack == CopyBackSync {
		q[CopyBackBytes] = float64(e.chunk.Totals.CacheInBytes)
	}
	later := m.MedianSeconds - d.seconds(&q)
	if q[HandoffCall] == 0 {
		return later
	}
	q[HandoffFirst] = 1
	if first := m.MedianSeconds - d.seconds(&q); math.Abs(first) < math.Abs(later) {
		return first
	}
	return later
}
