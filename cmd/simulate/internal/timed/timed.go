package timed

import (
	"fmt"
	"slices"
	"strconv"

	"anelab/anesim"
	"anelab/chunking"
)

// Rows are measurements of any devices and models.
type Rows []anesim.Measurement

// Fill adds timings to the chunks of a prediction that have none. model is its name in the measurements. Nobody timed attention
// other than the model's own, and calls of several tokens are another program.
func (rows Rows) Fill(p *anesim.Prediction, plan *chunking.Plan, d *anesim.Device, model string) {
	if len(plan.Layout.Attn) > 0 || plan.Layout.QueryTokens > 1 {
		return
	}
	for i, c := range plan.Chunks {
		if len(p.Chunks[i].Measured) == 0 {
			p.Chunks[i].Measured = rows.of(c, condition{model: model, context: plan.Context, devices: d.MeasuredAs}, p.CopyBack)
		}
	}
}

// condition is what must be the same for a timing to be of the chunk that is priced.
type condition struct {
	model   string
	context int
	devices []string
}

// of groups the timings of a chunk by where the build copied its caches, the build that is priced first.
func (rows Rows) of(c *chunking.Chunk, k condition, first anesim.CopyBack) []anesim.MeasuredChunk {
	times, sessions := map[anesim.CopyBack][]float64{}, map[anesim.CopyBack]map[string]bool{}
	var order []anesim.CopyBack
	for i := range rows {
		m := &rows[i]
		if !k.admits(m) || chunkOf(m) != c.String() || encodingOf(m) != c.Weights.String() {
			continue
		}
		copyBack, said := m.CopyBack()
		if !said {
			continue // its time holds an unknown share of copying
		}
		if times[copyBack] == nil {
			order, sessions[copyBack] = append(order, copyBack), map[string]bool{}
		}
		times[copyBack] = append(times[copyBack], m.Seconds)
		sessions[copyBack][m.Experiment] = true
	}
	slices.SortStableFunc(order, func(a, b anesim.CopyBack) int { return rank(a, first) - rank(b, first) })
	all := []anesim.MeasuredChunk{}
	for _, copyBack := range order {
		t := slices.Sorted(slices.Values(times[copyBack]))
		all = append(all, anesim.MeasuredChunk{Model: k.model, Chunk: c.String(), Context: k.context, Weights: c.Weights.String(), CopyBack: copyBack,
			Rows: len(t), Experiments: len(sessions[copyBack]), MedianSeconds: median(t), MinSeconds: t[0], MaxSeconds: t[len(t)-1]})
	}
	return all
}

func rank(c, first anesim.CopyBack) int {
	if c == first {
		return 0
	}
	return 1
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// admits takes steady decode with explicit KV of the model on the device; quality X is recorded but not to be believed.
func (k *condition) admits(m *anesim.Measurement) bool {
	return m.Model == k.model && m.Context == k.context && slices.Contains(k.devices, m.Device) && m.Timed && m.ColdWarm == "warm" &&
		m.KVMode == "explicit-io" && m.QueryTokens == 1 && m.Quality != "X"
}

// chunkOf is the chunk that a row timed, as layout text; "" for other parts.
func chunkOf(m *anesim.Measurement) string {
	if _, err := strconv.Atoi(m.Component); err != nil {
		return ""
	}
	return chunking.Cut{Lo: m.Lo, Hi: m.Hi, Head: m.HasHead}.String()
}

func encodingOf(m *anesim.Measurement) string {
	switch {
	case m.WeightBits == 16:
		return "f16"
	case m.GroupSize == 0:
		return fmt.Sprintf("int%d", m.WeightBits)
	}
	return fmt.Sprintf("int%dg%d", m.WeightBits, m.GroupSize)
}
