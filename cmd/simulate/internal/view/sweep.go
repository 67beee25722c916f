package view

import (
	"fmt"
	"slices"
	"strings"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/results"
	"anelab/cmd/simulate/internal/search"
	"anelab/cmd/simulate/internal/texttab"
)

// Sweep is the best layouts of a space, context by context.
type Sweep struct {
	Made   Made
	Source Source
	Space  *search.Space
	Chunks string // the range of chunk counts
	Named  bool   // only named layouts were priced

	CopyBack anesim.CopyBack
	Basis    string   // what the ranges rest on
	Warnings []string // of the first layout of every context
	Rankings []search.Ranking
}

// Page is a table per context: the best, then the presets with their rank.
func (r *Sweep) Page(p *texttab.Page) {
	what := "all cuts into " + r.Chunks + " chunks"
	if r.Named {
		what = plural(len(r.Space.Layouts), "layout")
	}
	p.Head(r.Source.head(what)...)
	for i := range r.Rankings {
		p.Gap()
		r.table(p, &r.Rankings[i])
	}
	p.Gap()
	p.Line("90%% ranges: %s. Ranks closer than their ranges mean little; simulate diff A B compares two.", r.Basis)
	p.Notes()
	p.Gap()
	p.Answer("%s", r.answer())
}

func (r *Sweep) table(p *texttab.Page, s *search.Ranking) {
	counts := fmt.Sprintf("%d refused", s.Refused)
	if !r.Space.Untried {
		counts += fmt.Sprintf(", %d untried", s.Untried)
	}
	p.Line("context %d: %s priced, %s by %s", s.Context, plural(s.Priced, "layout"), counts, r.Source.Device)
	t := texttab.NewTable(texttab.R("rank"), texttab.L("layout"), texttab.R("tok/s"), texttab.R("90% range"), texttab.L("bound by"))
	rows := s.Best
	if !r.Named {
		rows = slices.Concat(s.Best, s.Presets)
	}
	for i := range rows {
		t.Row(r.cells(p, &rows[i])...)
	}
	p.Table(t)
}

func (r *Sweep) cells(p *texttab.Page, row *search.Ranked) []string {
	rank := fmt.Sprint(row.Rank)
	if row.Rank == 0 {
		rules := slices.Compact(slices.Concat(row.Refused, row.Doubted))
		rank = row.Verdict() + " " + p.Note("by %s of %s; simulate check LAYOUT shows the evidence", strings.Join(rules, ", "), r.Source.Device)
	}
	q := &row.Quote
	return []string{rank, nameOf(row), sig(1 / q.Seconds), between(sig(1/q.TimeRange.Hi), sig(1/q.TimeRange.Lo)), q.BoundBy + " " + pct(q.BoundShare)}
}

// nameOf is the preset, or the layout without blanks.
func nameOf(r *search.Ranked) string {
	if r.Preset != "" {
		return r.Preset
	}
	return compact(r.Layout)
}

// compact is layout text without the context, and without blanks around bars.
func compact(l chunking.Layout) string {
	l.Context = 0
	return strings.ReplaceAll(l.String(), " | ", "|")
}

// answer names the best layout at the middle context.
func (r *Sweep) answer() string {
	s := &r.Rankings[len(r.Rankings)/2]
	if len(s.Best) == 0 {
		return fmt.Sprintf("nothing that %s is known to run: try more chunks, or --untried", r.Source.Device)
	}
	best := &s.Best[0]
	return fmt.Sprintf("%s tok/s  best at context %d: %s", sig(1/best.Quote.Seconds), s.Context, compact(best.Layout))
}

// rankingDocument is one context of the document.
type rankingDocument struct {
	Context int              `json:"context"`
	Priced  int              `json:"priced"`
	Refused int              `json:"refused"`
	Untried int              `json:"untried"`
	Best    []results.Record `json:"best"`
	Presets []results.Record `json:"presets"`
}

// Document is the same rows.
func (r *Sweep) Document() any {
	all := []rankingDocument{}
	for _, s := range r.Rankings {
		all = append(all, rankingDocument{s.Context, s.Priced, s.Refused, s.Untried, r.records(s.Best), r.records(s.Presets)})
	}
	return struct {
		Made
		Source
		Warnings []string          `json:"warnings"`
		Contexts []rankingDocument `json:"contexts"`
	}{r.Made, r.Source, append([]string{}, r.Warnings...), all}
}

func (r *Sweep) records(rows []search.Ranked) []results.Record {
	all := []results.Record{}
	for i := range rows {
		row := &rows[i]
		rec := newSweepRecord(r.Source, row.Layout, row.Quote)
		rec.Preset, rec.Rank, rec.CopyBack, rec.Basis = row.Preset, row.Rank, r.CopyBack, r.Basis
		check(&rec, row.Verdict(), row.Refused, row.Doubted)
		all = append(all, rec)
	}
	return all
}
