package anesim

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
)

// printed is the standard deviation of a time that was printed to 0.1 ms, as most were.
const printedSD = 0.1e-3 / 3.4641016151377544 // a tenth of a millisecond over √12

// fitChunks returns the device with chunk constants solved for on the samples. Samples of other families are ignored.
func fitChunks(d Device, samples []sample) Device {
	p := newProblem(priorsOf(&d, 0, chunkTerms))
	sessions := groupBy(samples, func(s *sample) string { return s.Experiment })
	for _, session := range sessions {
		var obs []observation
		for _, s := range session {
			obs = append(obs, d.observe(s.q[:], s.Seconds))
		}
		p.addSession(obs, d.Noise.Session)
	}
	d.adopt(p.solve(), len(sessions), len(samples))
	d.Evidence = evidenceOf(samples)
	d.Evidence.IntervalFactor = normal90
	return d
}

// observe is a timed chunk as an equation. Timers scatter by a share of what they time, and print tenths of a millisecond.
func (d *Device) observe(quantities []float64, seconds float64) observation {
	return observation{x: overTime(quantities, seconds), sd: math.Hypot(d.Noise.Chunk, printedSD/seconds)}
}

// adopt takes over chunk constants that were solved for.
func (d *Device) adopt(s solution, sessions, rows int) {
	for i := range chunkTerms {
		d.setConstant(i, s.value[i], math.Sqrt(s.cov.At(int(i), int(i))))
		d.Constants[i].Source = sourceOf(&d.Constants[i], sessions, rows)
	}
	for i := range chunkTerms {
		for j := range chunkTerms {
			d.Correlation[i][j] = s.cov.At(int(i), int(j)) / (d.Constants[i].SD * d.Constants[j].SD)
		}
	}
}

// Host and chunk constants are solved for apart: no row holds both.
func priorsOf(d *Device, from, to Term) []Prior {
	var p []Prior
	for t := from; t < to; t++ {
		p = append(p, d.Constants[t].Prior)
	}
	return p
}

// Confidence follows from the spread alone. A constant at its bound of zero keeps the spread of the unconstrained fit.
func (d *Device) setConstant(t Term, value, sd float64) {
	c := &d.Constants[t]
	c.Value, c.SD = value, sd
	c.Confidence = confidence(value, sd)
}

// sourceOf says how much of a constant the rows decided: 1 − variance/prior variance.
func sourceOf(c *Constant, experiments, rows int) string {
	share := 100 * max(0, 1-(c.SD*c.SD)/(c.Prior.SD*c.Prior.SD))
	return fmt.Sprintf("calibrated on %d experiments, %d rows; %.0f %% from rows, the rest from the prior", experiments, rows, share)
}

// Both sides of an equation are divided by the measured time, so that all errors are relative.
func overTime(q []float64, seconds float64) []float64 {
	x := make([]float64, len(q))
	for i := range q {
		x[i] = q[i] / seconds
	}
	return x
}

// groupBy splits samples by a key, in the order in which keys first appear.
func groupBy(samples []sample, key func(*sample) string) [][]sample {
	index := map[string]int{}
	var groups [][]sample
	for i := range samples {
		k := key(&samples[i])
		g, ok := index[k]
		if !ok {
			g = len(groups)
			index[k] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], samples[i])
	}
	return groups
}

// evidenceOf records what samples of one family cover.
func evidenceOf(samples []sample) Evidence {
	var e Evidence
	e.Rows = len(samples)
	e.Experiments = len(groupBy(samples, func(s *sample) string { return s.Experiment }))
	for i := range samples {
		s := &samples[i]
		e.MaxLayers = max(e.MaxLayers, s.totals().Layers)
		if enc := s.plan.Chunks[s.chunk].Weights.String(); !slices.Contains(e.Weights, enc) {
			e.Weights = append(e.Weights, enc)
		}
		if m := modelEvidence(s); !slices.Contains(e.Models, m) {
			e.Models = append(e.Models, m)
		}
	}
	e.Contexts = contextEvidence(samples)
	e.Chunks = measuredChunks(samples)
	return e
}

// Name, depth and width are enough to recognise a model; weights never reach this package.
func modelEvidence(s *sample) ModelEvidence {
	return ModelEvidence{Name: s.Model, Layers: len(s.plan.Model.Layers), HiddenSize: s.plan.Model.Config.HiddenSize}
}

// Layouts are counted per context, since one layout cannot tell attention from hand-off.
func contextEvidence(samples []sample) []ContextEvidence {
	var all []ContextEvidence
	for _, group := range groupBy(samples, func(s *sample) string { return fmt.Sprint(s.plan.Context) }) {
		c := ContextEvidence{Context: group[0].plan.Context}
		c.Experiments = len(groupBy(group, func(s *sample) string { return s.Experiment }))
		for _, g := range groupBy(group, func(s *sample) string { return s.Layout }) {
			c.Layouts = append(c.Layouts, g[0].Layout)
		}
		all = append(all, c)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Context < all[j].Context })
	return all
}

// fitHost solves for the two host constants: what a step takes beyond its chunks, in sessions that timed both.
func fitHost(d Device, steps []hostSample) Device {
	p := newProblem(priorsOf(&d, HostStep, NumTerms))
	for _, s := range steps {
		// Times, not ratios, scatter here: both unknowns and the scatter are a fraction of a millisecond.
		p.addAbsolute([]float64{1, float64(s.context)}, s.seconds, hostScatter)
	}
	sol := p.solve()
	residuals := []float64{hostScatter}
	for i, t := 0, HostStep; t < NumTerms; i, t = i+1, t+1 {
		d.setConstant(t, sol.value[i], math.Sqrt(sol.cov.At(i, i)))
		d.Constants[t].Source = sourceOf(&d.Constants[t], len(steps), len(steps))
	}
	for _, s := range steps {
		residuals = append(residuals, s.seconds-d.hostSeconds(s.context))
	}
	d.Evidence.HostSDSeconds = math.Sqrt(stat.Mean(squares(residuals), nil))
	return d
}

// hostScatter is the assumed scatter of host time per token: rates printed to three digits cannot do better.
const hostScatter = 0.3e-3

// hostSeconds is the time per token outside the chunk calls.
func (d *Device) hostSeconds(context int) float64 {
	return d.Constants[HostStep].Value + float64(d.Constants[HostPositions].Value*float64(context))
}

func squares(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = x[i] * x[i]
	}
	return y
}

// hostSample is the host time per token of one session.
type hostSample struct {
	context int
	seconds float64
}

// hostSamples subtracts chunk sums from whole steps in sessions that timed all their chunks.
func hostSamples(samples []sample, rows []Measurement) []hostSample {
	var all []hostSample
	for _, session := range groupBy(samples, func(s *sample) string { return s.Experiment }) {
		chunks, complete := sessionSum(session)
		step, ok := meanStep(rows, session[0].Experiment)
		if complete && ok {
			all = append(all, hostSample{context: session[0].plan.Context, seconds: step - chunks})
		}
	}
	return all
}

// sessionSum adds the chunks of a session, each by its mean over repeats, and says whether all were timed.
func sessionSum(session []sample) (seconds float64, complete bool) {
	byChunk := groupBy(session, func(s *sample) string { return s.Component })
	for _, g := range byChunk {
		var sum float64
		for _, s := range g {
			sum += s.Seconds
		}
		seconds += sum / float64(len(g))
	}
	return seconds, len(byChunk) == session[0].chunks()
}

// meanStep is the time of a warm step of an experiment; rates come first because they include all host work.
func meanStep(rows []Measurement, experiment string) (float64, bool) {
	var times []float64
	for _, m := range rows {
		if m.Experiment != experiment || m.Component != "step" || m.ColdWarm != "warm" || m.QueryTokens != 1 || m.Quality == "X" {
			continue
		}
		if m.TokPerSec > 0 {
			times = append(times, 1/m.TokPerSec)
		} else if m.Timed {
			times = append(times, m.Seconds)
		}
	}
	if len(times) == 0 {
		return 0, false
	}
	return stat.Mean(times, nil), true
}
