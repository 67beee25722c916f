package anesim

import "fmt"

// candidate is a term that the engine's description suggests (spec ane.md §0.1) and that the sum does without: it would have to lower
// the error of left-out experiments first.
type candidate struct {
	name     string
	text     string // what it stands for
	prior    Prior
	quantity func(*sample) float64
}

// Priors are those of the specification, as unsure as they are large.
var candidates = []candidate{
	{"products", "compute: multiply-adds", Prior{Value: 1 / 9e12, SD: 1 / 9e12}, func(s *sample) float64 { return float64(s.totals().MACs) }},
	{"layers", "planar engine: norms, rotations, residuals, by layers", Prior{Value: 20e-6, SD: 20e-6}, func(s *sample) float64 { return float64(s.totals().Layers) }},
	{"sliding_rows", "activation stream: bytes of keys and values of sliding layers", Prior{Value: 1 / 30e9, SD: 1 / 30e9}, slidingBytes},
	{"port_bytes", "activation stream: bytes of hidden states and masks", Prior{Value: 1 / 30e9, SD: 1 / 30e9}, func(s *sample) float64 {
		t := s.totals()
		return float64(t.InputBytes + t.OutputBytes - t.CacheBytes - t.HandoffInBytes - t.HandoffOutBytes)
	}},
}

// Full layers have terms of their own.
func slidingBytes(s *sample) float64 {
	var bytes int64
	for _, op := range s.plan.Chunks[s.chunk].Ops {
		if op.KVReadBytes > 0 && s.plan.Model.Layers[op.Layer].Window > 0 {
			bytes += op.KVReadBytes
		}
	}
	return float64(bytes)
}

// minGain is what a term has to take off the error of left-out chunks, in percentage points: timers print tenths of a millisecond,
// which is ten times that of a chunk.
const minGain = 0.1

// checkCandidates fits each of them beside the terms of the sum.
func (c *Calibration) checkCandidates() {
	without := c.leftOutRMS(func(d Device) Device { return d })
	for i := range candidates {
		k := &candidates[i]
		with := c.leftOutError(k.fit)
		check := TermCheck{Term: k.name, With: Percent(with), Without: Percent(without), Earned: without-with > minGain}
		check.Reason = fmt.Sprintf("%s: left-out error %.2f %% with it, %.2f %% without", k.text, with, without)
		c.Candidates = append(c.Candidates, check)
	}
}

// fit solves for the chunk constants and one more.
func (k *candidate) fit(base Device, train []sample) func(*sample) float64 {
	row := func(s *sample) []float64 { return append(append([]float64{}, s.q[:]...), k.quantity(s)) }
	p := newProblem(append(priorsOf(&base, 0, chunkTerms), k.prior))
	for _, session := range groupBy(train, func(s *sample) string { return s.Experiment }) {
		var all []observation
		for i := range session {
			all = append(all, base.observe(row(&session[i]), session[i].Seconds))
		}
		p.addSession(all, base.Noise.Session)
	}
	value := p.solve().value
	return func(s *sample) float64 {
		var seconds float64
		for i, x := range row(s) {
			seconds += float64(value[i] * x)
		}
		return seconds
	}
}
