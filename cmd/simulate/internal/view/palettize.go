package view

import (
	"fmt"
	"math"
	"slices"

	"anelab/cmd/simulate/internal/texttab"
	"anelab/coreml/compress"
	"anelab/coreml/mil"
)

// Palettize is what became of the weights of a package.
type Palettize struct {
	Made     Made
	From, To string
	Settings string // how weights were to be stored
	Outcomes []compress.Outcome
}

// Page lists the weights that were compressed with what it cost them, and why others were left.
func (r *Palettize) Page(p *texttab.Page) {
	p.Head(r.From, r.Settings)
	p.Gap()
	t := texttab.NewTable(texttab.L("weight"), texttab.L("shape"), texttab.R("bytes"), texttab.R("cosine"), texttab.R("worst row"))
	for _, o := range r.Outcomes {
		if o.Kept == "" {
			t.Row(texttab.Clip(o.Name, 28), mil.ShapeString(o.Type.Shape), fmt.Sprint(o.BytesAfter)+r.share(p, &o), cosine(o.Loss.Cosine), cosine(o.Loss.WorstCosine))
		}
	}
	done, kept := r.sums()
	if done.weights > 0 {
		p.Table(t)
		p.Notes()
		p.Gap()
	}
	for _, reason := range kept {
		p.Line("kept %d: %s (%s), %d bytes", reason.weights, reason.why, texttab.Clip(reason.first, 40), reason.bytes)
	}
	p.Answer("%s: %s, %d → %d bytes", r.To, plural(done.weights, "weight"), done.before, done.after)
}

// share marks a weight whose bytes are another's.
func (r *Palettize) share(p *texttab.Page, o *compress.Outcome) string {
	if o.Shared == "" {
		return ""
	}
	return " " + p.Note("the bytes of %s", o.Shared)
}

// cosine is rounded down, so that 1 means 1.
func cosine(x float64) string { return fmt.Sprintf("%.4f", math.Floor(1e4*x)/1e4) }

// compressed sums the weights that were compressed, each blob once.
type compressed struct {
	weights       int
	before, after int64
}

// keptFor are the weights with one reason.
type keptFor struct {
	why, first string
	weights    int
	bytes      int64
}

func (r *Palettize) sums() (done compressed, kept []keptFor) {
	for _, o := range r.Outcomes {
		if o.Kept == "" {
			done.weights++
			if o.Shared == "" {
				done.before, done.after = done.before+o.Bytes(), done.after+o.BytesAfter
			}
			continue
		}
		i := slices.IndexFunc(kept, func(k keptFor) bool { return k.why == o.Kept })
		if i < 0 {
			i, kept = len(kept), append(kept, keptFor{why: o.Kept, first: o.Name})
		}
		kept[i].weights++
		kept[i].bytes += o.Bytes()
	}
	return done, kept
}

type palettizeDocument struct {
	Made
	From     string            `json:"from"`
	To       string            `json:"to"`
	Settings string            `json:"settings"`
	Weights  []outcomeDocument `json:"weights"`
}

type outcomeDocument struct {
	Function    string  `json:"function"`
	Name        string  `json:"name"`
	Shape       []int64 `json:"shape"`
	Encoding    string  `json:"encoding"`
	BytesBefore int64   `json:"bytes_before"`
	BytesAfter  int64   `json:"bytes_after"`
	Kept        string  `json:"kept_because"` // "" where it was compressed
	Shared      string  `json:"shared_with"`
	RMSError    float64 `json:"rms_error"`
	Cosine      float64 `json:"cosine"`
	WorstRow    int     `json:"worst_row"`
	WorstCosine float64 `json:"worst_row_cosine"`
}

// Document is every weight.
func (r *Palettize) Document() any {
	d := palettizeDocument{Made: r.Made, From: r.From, To: r.To, Settings: r.Settings, Weights: []outcomeDocument{}}
	for _, o := range r.Outcomes {
		d.Weights = append(d.Weights, outcomeDocument{o.Function, o.Name, o.Type.Shape, o.After, o.Bytes(), o.BytesAfter, o.Kept, o.Shared,
			o.Loss.RMS, o.Loss.Cosine, o.Loss.WorstRow, o.Loss.WorstCosine})
	}
	return d
}

// Header of the records.
func (r *Palettize) Header() []string {
	return []string{"function", "name", "shape", "encoding", "bytes_before", "bytes_after", "kept_because", "shared_with", "rms_error", "cosine", "worst_row", "worst_row_cosine"}
}

// Records are the weights.
func (r *Palettize) Records() [][]string {
	var all [][]string
	for _, o := range r.Outcomes {
		all = append(all, []string{o.Function, o.Name, mil.ShapeString(o.Type.Shape), o.After, fmt.Sprint(o.Bytes()), fmt.Sprint(o.BytesAfter), o.Kept, o.Shared,
			exact(o.Loss.RMS), exact(o.Loss.Cosine), fmt.Sprint(o.Loss.WorstRow), exact(o.Loss.WorstCosine)})
	}
	return all
}
