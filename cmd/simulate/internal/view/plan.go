package view

import (
	"fmt"
	"io"
	"strings"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/texttab"
)

// Plan is the price of one layout.
type Plan struct {
	Made       Made
	Source     Source
	Plan       *chunking.Plan
	Prediction anesim.Prediction
}

// Page shows the chunks, where their time goes, and the rate it comes to.
func (r *Plan) Page(p *texttab.Page) {
	pr := &r.Prediction
	p.Head(r.Source.head(weightsOf(r.Plan)+" weights", fmt.Sprintf("context %d", pr.Context))...)
	p.Gap()
	t := texttab.NewTable(texttab.L("chunk"), texttab.R("weights"), texttab.R("KV read"), texttab.R("time"), texttab.R("90% range"),
		texttab.L("bound by"), texttab.R("measured"))
	for i := range pr.Chunks {
		r.chunkRow(p, t, i)
	}
	t.Row("host", "", "", milli(pr.HostTimeS)+" ms", "", plural(len(pr.Chunks), "call"), "")
	t.Rule()
	total := r.Plan.Totals()
	t.Row("per "+r.unit(), mega(total.WeightBytes)+" MB", mega(total.KVReadBytes)+" MB", milli(pr.TimeS)+" ms", msRange(pr.TimeRange), "", "")
	p.Table(t)
	unmeasured(p, r.Plan.Layout)
	p.Gap()
	p.Answer("%s", r.Rate())
	p.Notes()
}

// Rate is the line that the page leads up to.
func (r *Plan) Rate() string {
	p, unit := &r.Prediction, "tok/s"
	if n := r.Plan.Layout.QueryTokens; n > 1 {
		unit = fmt.Sprintf("steps/s of %d tokens", n)
	}
	return fmt.Sprintf("%s %s  (90%%: %s; %s)", sig(p.TokPerSec), unit, between(sig(p.Range.Lo), sig(p.Range.Hi)), p.Basis)
}

// unit is what one pass through the chunks makes.
func (r *Plan) unit() string {
	if r.Plan.Layout.QueryTokens > 1 {
		return "step"
	}
	return "token"
}

func (r *Plan) chunkRow(p *texttab.Page, t *texttab.Table, i int) {
	c := &r.Prediction.Chunks[i]
	name := c.Chunk
	if note := r.handoffNote(i); note != "" {
		name += " " + p.Note("%s", note)
	}
	t.Row(name, mega(c.WeightBytes)+" MB", mega(c.KVReadBytes)+" MB", milli(c.TimeS)+" ms", msRange(c.TimeRange),
		c.BoundBy+" "+pct(c.BoundShare), r.measured(p, c))
}

// msRange is a range of times, in ms.
func msRange(r anesim.Range) string { return between(milli(r.Lo), milli(r.Hi)) }

// measured is what timers said about the chunk, the runtime that is priced first.
func (r *Plan) measured(p *texttab.Page, c *anesim.ChunkPrediction) string {
	if len(c.Measured) == 0 {
		return "–"
	}
	m := c.Measured[0]
	text := milli(m.MedianSeconds) + " ms"
	if m.Rows > 1 {
		text += fmt.Sprintf(" ×%d", m.Rows)
	}
	switch {
	case m.CopyBack != r.Prediction.CopyBack:
		text += " " + p.Note("measured with copyback=%s; this prediction is for copyback=%s (simulate explain copyback)", m.CopyBack, r.Prediction.CopyBack)
	case m.MedianSeconds < c.TimeRange.Lo || m.MedianSeconds > c.TimeRange.Hi:
		text += " " + p.Note("outside the predicted range: believe the timers")
	}
	return text
}

// handoffNote says whose keys and values a chunk reads, and what that costs.
func (r *Plan) handoffNote(chunk int) string {
	var layers, owners []string
	for _, h := range r.Plan.Handoffs() {
		for _, to := range h.To {
			if to == chunk {
				layers = append(layers, fmt.Sprint(h.Layer))
				if owner := r.Plan.Chunks[h.From].String(); len(owners) == 0 || owners[len(owners)-1] != owner {
					owners = append(owners, owner)
				}
			}
		}
	}
	if len(layers) == 0 {
		return ""
	}
	var seconds float64
	for _, term := range r.Prediction.Chunks[chunk].Terms {
		if term.Resource == "hand-off" {
			seconds += term.TimeS
		}
	}
	return fmt.Sprintf("%s reads keys and values of layers %s, owned by %s: %s ms of hand-off", r.Prediction.Chunks[chunk].Chunk,
		strings.Join(layers, " and "), strings.Join(owners, " and "), signed(seconds))
}

// weightsOf names the encodings of the chunks.
func weightsOf(p *chunking.Plan) string {
	var all []string
	for _, c := range p.Chunks {
		if w := c.Weights.String(); len(all) == 0 || all[len(all)-1] != w {
			all = append(all, w)
		}
	}
	return strings.Join(all, "/")
}

// planDocument is a prediction with all its terms; the device's name is the prediction's.
type planDocument struct {
	Made
	Model      string `json:"model"`
	Layers     int    `json:"layers"`
	DeviceHash string `json:"device_sha256"`
	Layout     string `json:"layout"`
	anesim.Prediction
}

// Document is the prediction with all its terms.
func (r *Plan) Document() any {
	return planDocument{r.Made, r.Source.Model, r.Source.Layers, r.Source.DeviceHash, r.Plan.Layout.String(), r.Prediction}
}

// Header of the records.
func (r *Plan) Header() []string {
	return []string{"chunk", "weight_bytes", "kv_read_bytes", "time_s", "time_lo90_s", "time_hi90_s", "bound_by", "bound_share",
		"measured_s", "measured_rows", "measured_copyback", "tok_per_s", "tok_per_s_lo90", "tok_per_s_hi90"}
}

// Records are the chunks, then "host" and "token".
func (r *Plan) Records() [][]string {
	pr := &r.Prediction
	var all [][]string
	for i := range pr.Chunks {
		c := &pr.Chunks[i]
		measured := []string{"", "", ""}
		if len(c.Measured) > 0 {
			m := c.Measured[0]
			measured = []string{exact(m.MedianSeconds), fmt.Sprint(m.Rows), string(m.CopyBack)}
		}
		row := []string{c.Chunk, fmt.Sprint(c.WeightBytes), fmt.Sprint(c.KVReadBytes), exact(c.TimeS), exact(c.TimeRange.Lo),
			exact(c.TimeRange.Hi), c.BoundBy, exact(c.BoundShare)}
		all = append(all, append(append(row, measured...), "", "", ""))
	}
	total := r.Plan.Totals()
	return append(all,
		[]string{"host", "0", "0", exact(pr.HostTimeS), "", "", "host", "1", "", "", "", "", "", ""},
		[]string{"token", fmt.Sprint(total.WeightBytes), fmt.Sprint(total.KVReadBytes), exact(pr.TimeS), exact(pr.TimeRange.Lo), exact(pr.TimeRange.Hi),
			"", "", "", "", "", exact(pr.TokPerSec), exact(pr.Range.Lo), exact(pr.Range.Hi)})
}

// Benchmark writes the token and every chunk.
func (r *Plan) Benchmark(w io.Writer) error {
	benchmarkHead(w, r.Source)
	pr := &r.Prediction
	for _, c := range pr.Chunks {
		fmt.Fprintf(w, "BenchmarkChunk/chunk=%s/ctx=%d 1 %.1f ns/op\n", c.Chunk, pr.Context, 1e9*c.TimeS)
	}
	return benchmarkToken(w, r.Plan.Layout, pr.Context, pr.TimeS)
}

func benchmarkHead(w io.Writer, s Source) {
	fmt.Fprintf(w, "model: %s\ndevice: %s\nsource: simulate\nUnit tok/s better=higher\n", s.Model, s.Device)
}

// benchmarkToken writes one decode step. Names hold no blanks: bars stand close, settings follow semicolons.
func benchmarkToken(w io.Writer, l chunking.Layout, context int, seconds float64) error {
	name := strings.ReplaceAll(compact(l), " ", ";")
	_, err := fmt.Fprintf(w, "BenchmarkDecode/layout=%s/ctx=%d 1 %.1f ns/op %.6f tok/s\n", name, context, 1e9*seconds, 1/seconds)
	return err
}
