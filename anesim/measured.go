package anesim

import (
	"cmp"
	"fmt"
	"slices"

	"anelab/chunking"
)

// MeasuredChunk is what timers said about one chunk under one set of conditions, repeats and sessions together.
type MeasuredChunk struct {
	Model         string   `json:"model"`
	Chunk         string   `json:"chunk"` // layout text: "L8-24"
	Context       int      `json:"context"`
	Weights       string   `json:"weights"` // encoding
	CopyBack      CopyBack `json:"copyback"`
	Rows          int      `json:"rows"`
	Experiments   int      `json:"experiments"`
	Sessions      []string `json:"-"` // dates, or names of experiments without one: chunks that share one were timed side by side
	MedianSeconds float64  `json:"median_s"`
	MinSeconds    float64  `json:"min_s"`
	MaxSeconds    float64  `json:"max_s"`
}

// measuredChunks groups samples of one family by chunk and conditions, in the order of the file.
func measuredChunks(samples []sample) []MeasuredChunk {
	var all []MeasuredChunk
	key := func(s *sample) string {
		c := s.plan.Chunks[s.chunk]
		return fmt.Sprint(s.Model, c, s.plan.Context, c.Weights, s.copyBack())
	}
	for _, g := range groupBy(samples, key) {
		s, c := &g[0], g[0].plan.Chunks[g[0].chunk]
		var times []float64
		var sessions []string
		for _, s := range g {
			times = append(times, s.Seconds)
			if name := cmp.Or(s.SessionDate, s.Experiment); !slices.Contains(sessions, name) {
				sessions = append(sessions, name)
			}
		}
		slices.Sort(times)
		all = append(all, MeasuredChunk{
			Model: s.Model, Chunk: c.String(), Context: s.plan.Context, Weights: c.Weights.String(), CopyBack: s.copyBack(),
			Rows: len(g), Experiments: len(groupBy(g, func(s *sample) string { return s.Experiment })), Sessions: sessions,
			MedianSeconds: quantile(0.5, times), MinSeconds: times[0], MaxSeconds: times[len(times)-1],
		})
	}
	return all
}

// Measured lists what was timed of this very chunk at this context on the device, under any copy-back, the workload's own
// first. It is empty for chunks that nobody ran.
func (d *Device) Measured(c *chunking.Chunk, p *chunking.Plan, w Workload) []MeasuredChunk {
	if !asTimed(p) {
		return nil
	}
	var all []MeasuredChunk
	for _, m := range d.Evidence.Chunks {
		if m.Chunk != c.String() || m.Context != p.Context || m.Weights != c.Weights.String() || !d.Evidence.knows(m.Model, p.Model) {
			continue
		}
		if m.CopyBack == w.copyBack() {
			all = slices.Insert(all, 0, m)
		} else {
			all = append(all, m)
		}
	}
	return all
}

// knows reports whether the model of that name, as it was measured, is this one. An empty name asks for any model.
func (e *Evidence) knows(name string, m *chunking.Model) bool {
	for _, k := range e.Models {
		if (name == "" || k.Name == name) && k.Layers == len(m.Layers) && k.HiddenSize == m.Config.HiddenSize {
			return true
		}
	}
	return false
}
