package view

import (
	"fmt"
	"strings"

	exactly "anelab/anesim/search"
	"anelab/cmd/simulate/internal/texttab"
)

// Front is what no other layout with the same settings beats in every respect.
type Front struct {
	Made     Made
	Source   Source
	Chunks   string
	Prompt   int // tokens
	Priced   int
	Refused  int // or not known to run
	Variants []exactly.Variant
	Points   []exactly.Candidate // variant by variant, fastest first
}

// Page is a table per combination of settings.
func (r *Front) Page(p *texttab.Page) {
	p.Head(r.Source.head("front of cuts into " + r.Chunks + " chunks")...)
	p.Line("%d layouts priced, %d left out by limits of the device", r.Priced, r.Refused)
	for _, v := range r.Variants {
		p.Gap()
		p.Line("%s", v)
		t := texttab.NewTable(texttab.L("layout"), texttab.R("tok/s"), texttab.R("MB resident"), texttab.R(fmt.Sprintf("ms to first of %d", r.Prompt)), texttab.R("MB download"))
		rows := 0
		for i := range r.Points {
			if x := &r.Points[i]; x.Variant == v {
				rows++
				c := &x.Point.Cost
				t.Row(cutsOf(x), sig(1/c[exactly.TimePerToken]), mega(int64(c[exactly.Resident])), milli(c[exactly.FirstToken]), mega(int64(c[exactly.Download])))
			}
		}
		if rows == 0 {
			p.Line("nothing that the device is known to run")
			continue
		}
		p.Table(t)
	}
	p.Gap()
	p.Line("Layouts are compared within the same settings: other weights, windows and contexts change what the model says. Memory and first token are rough; simulate request LAYOUT shows their ranges.")
	p.Gap()
	p.Answer("%s that nothing with the same settings beats in every respect", plural(len(r.Points), "layout"))
}

// cutsOf is the layout without its settings, and without blanks around bars.
func cutsOf(x *exactly.Candidate) string {
	var parts []string
	for _, part := range strings.Split(x.Layout, " | ") {
		cut, _, _ := strings.Cut(part, " ")
		parts = append(parts, cut)
	}
	return strings.Join(parts, "|")
}

type frontPointDocument struct {
	Layout        string  `json:"layout"`
	Weights       string  `json:"weights"`
	Attn          string  `json:"attn"` // "" = the model's own
	Context       int     `json:"context"`
	TimeS         float64 `json:"time_s"`
	TokPerSec     float64 `json:"tok_per_s"`
	ResidentBytes float64 `json:"resident_bytes"`
	FirstTokenS   float64 `json:"ttft_s"`
	DownloadBytes float64 `json:"download_bytes"`
}

// Document is every point.
func (r *Front) Document() any {
	points := []frontPointDocument{}
	for i := range r.Points {
		x, c := &r.Points[i], &r.Points[i].Point.Cost
		points = append(points, frontPointDocument{x.Layout, x.Variant.Weights, x.Variant.Attn, x.Variant.Context, c[exactly.TimePerToken], 1 / c[exactly.TimePerToken],
			c[exactly.Resident], c[exactly.FirstToken], c[exactly.Download]})
	}
	return struct {
		Made
		Source
		Prompt  int                  `json:"prompt_tokens"`
		Priced  int                  `json:"priced"`
		Refused int                  `json:"refused"`
		Points  []frontPointDocument `json:"points"`
	}{r.Made, r.Source, r.Prompt, r.Priced, r.Refused, points}
}

// Header of the records.
func (r *Front) Header() []string {
	return []string{"layout", "weights", "attn", "context", "time_s", "tok_per_s", "resident_bytes", "ttft_s", "download_bytes"}
}

// Records are the points.
func (r *Front) Records() [][]string {
	var all [][]string
	for i := range r.Points {
		x, c := &r.Points[i], &r.Points[i].Point.Cost
		all = append(all, []string{x.Layout, x.Variant.Weights, x.Variant.Attn, fmt.Sprint(x.Variant.Context), exact(c[exactly.TimePerToken]), exact(1 / c[exactly.TimePerToken]),
			exact(c[exactly.Resident]), exact(c[exactly.FirstToken]), exact(c[exactly.Download])})
	}
	return all
}
