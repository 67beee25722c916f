package view

import (
	"fmt"
	"io"

	"anelab/anesim"
	exactly "anelab/anesim/search"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/texttab"
)

// Best is the optimum of every number of chunks, with proofs.
type Best struct {
	Made     Made
	Source   Source
	CopyBack anesim.CopyBack
	Basis    string
	Warnings []string
	Optima   []Optimum
}

// Optimum is the best layout of one number of chunks at one context.
type Optimum struct {
	Chunks     int // 0 = any number
	Context    int
	Found      bool // false: every layout has a chunk that the device is not known to run
	Layout     chunking.Layout
	Prediction anesim.Prediction
	Proof      exactly.Proof
}

// Any reports whether the optimum is that of any number of chunks.
func (x *Optimum) Any() bool { return x.Chunks == 0 }

// Page is a table per context with the proof of its last row, which is the optimum of all.
func (r *Best) Page(p *texttab.Page) {
	p.Head(r.Source.head("best of all cuts")...)
	var t *texttab.Table
	for i := range r.Optima {
		x := &r.Optima[i]
		if t == nil {
			p.Gap()
			p.Line("context %d", x.Context)
			t = texttab.NewTable(texttab.R("chunks"), texttab.L("layout"), texttab.R("tok/s"), texttab.R("90% range"), texttab.R("ms"), texttab.R("cuts searched"))
		}
		t.Row(x.cells(p, r.Source.Device)...)
		if x.Any() {
			p.Table(t)
			t = nil
			x.proof(p)
		}
	}
	p.Gap()
	if r.Basis != "" {
		p.Line("90%% ranges: %s. Ranges of layouts overlap: simulate diff A B compares two.", r.Basis)
	}
	p.Notes()
	p.Gap()
	p.Answer("%s", r.answer())
}

func (x *Optimum) chunks() string {
	if x.Any() {
		return "any"
	}
	return fmt.Sprint(x.Chunks)
}

func (x *Optimum) cells(p *texttab.Page, device string) []string {
	chunks := x.chunks()
	if !x.Found {
		return []string{chunks, "none " + p.Note("every layout has a chunk that %s is not known to run", device)}
	}
	q := &x.Prediction
	return []string{chunks, compact(x.Layout), sig(q.TokPerSec), between(sig(q.Range.Lo), sig(q.Range.Hi)), milli(q.TimeS), x.Proof.Layouts.String()}
}

// proof says why nothing is faster.
func (x *Optimum) proof(p *texttab.Page) {
	if !x.Found {
		return
	}
	f := &x.Proof
	p.Line("proof: a shortest path over %d states and %d edges; %d of %d chunks are left out by limits of the device. The bound of every state was held against every edge that leaves it: no layout takes less than %s ms by these prices, and this one takes as much.",
		f.States, f.Edges, f.ChunksBanned, f.ChunksPriced, milli(f.BoundSeconds))
}

// answer names the optimum at the middle context.
func (r *Best) answer() string {
	var all []*Optimum
	for i := range r.Optima {
		if r.Optima[i].Any() {
			all = append(all, &r.Optima[i])
		}
	}
	x := all[len(all)/2]
	if !x.Found {
		return fmt.Sprintf("nothing that %s is known to run: try --untried", r.Source.Device)
	}
	return fmt.Sprintf("%s tok/s  best at context %d of %s cuts: %s", sig(x.Prediction.TokPerSec), x.Context, x.Proof.Layouts, compact(x.Layout))
}

type optimumDocument struct {
	Chunks    *int           `json:"chunks"` // null = any number
	Context   int            `json:"context"`
	Layout    string         `json:"layout"` // "" where the device is not known to run any
	TimeS     number         `json:"time_s"`
	TimeRange anesim.Range   `json:"time_range90_s"`
	TokPerSec number         `json:"tok_per_s"`
	Range     anesim.Range   `json:"tok_per_s_range90"`
	Proof     *proofDocument `json:"proof"`
}

type proofDocument struct {
	Layouts      string  `json:"layouts"` // a whole number that may be larger than JSON readers can hold
	States       int     `json:"states"`
	Edges        int     `json:"edges"`
	ChunksPriced int     `json:"chunks_priced"`
	ChunksBanned int     `json:"chunks_banned"`
	BoundSeconds float64 `json:"bound_s"`
	Checked      bool    `json:"checked"` // every edge was held against the bound
}

// Document is every optimum with its proof.
func (r *Best) Document() any {
	all := []optimumDocument{}
	for i := range r.Optima {
		x, q := &r.Optima[i], &r.Optima[i].Prediction
		d := optimumDocument{Context: x.Context, TimeS: number(q.TimeS), TimeRange: q.TimeRange, TokPerSec: number(q.TokPerSec), Range: q.Range}
		if !x.Any() {
			d.Chunks = &x.Chunks
		}
		if f := &x.Proof; x.Found {
			d.Layout = withoutContext(x.Layout)
			d.Proof = &proofDocument{f.Layouts.String(), f.States, f.Edges, f.ChunksPriced, f.ChunksBanned, f.BoundSeconds, true}
		}
		all = append(all, d)
	}
	return struct {
		Made
		Source
		CopyBack anesim.CopyBack   `json:"copyback"`
		Basis    string            `json:"basis"`
		Warnings []string          `json:"warnings"`
		Optima   []optimumDocument `json:"optima"`
	}{r.Made, r.Source, r.CopyBack, r.Basis, append([]string{}, r.Warnings...), all}
}

// withoutContext is layout text for a record that has the context beside it.
func withoutContext(l chunking.Layout) string {
	l.Context = 0
	return l.String()
}

// Header of the records.
func (r *Best) Header() []string {
	return []string{"chunks", "context", "layout", "time_s", "tok_per_s", "tok_per_s_lo90", "tok_per_s_hi90", "cuts_searched", "states", "edges", "bound_s"}
}

// Records are the optima that there are.
func (r *Best) Records() [][]string {
	var all [][]string
	for i := range r.Optima {
		x, q, f := &r.Optima[i], &r.Optima[i].Prediction, &r.Optima[i].Proof
		if !x.Found {
			continue
		}
		all = append(all, []string{x.chunks(), fmt.Sprint(x.Context), withoutContext(x.Layout), exact(q.TimeS), exact(q.TokPerSec), exact(q.Range.Lo), exact(q.Range.Hi),
			f.Layouts.String(), fmt.Sprint(f.States), fmt.Sprint(f.Edges), exact(f.BoundSeconds)})
	}
	return all
}

// Benchmark writes the optimum of every number of chunks.
func (r *Best) Benchmark(w io.Writer) error {
	benchmarkHead(w, r.Source)
	for i := range r.Optima {
		if x := &r.Optima[i]; x.Found && !x.Any() {
			if err := benchmarkToken(w, x.Layout, x.Context, x.Prediction.TimeS); err != nil {
				return err
			}
		}
	}
	return nil
}
