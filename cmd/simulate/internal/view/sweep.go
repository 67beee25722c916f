package view

import (
	"fmt"
	"slices"
	"strings"

	"anelab/anesim"
	"anelab/chunking"
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

	contexts []sweepContext
	basis    string
}

// sweepContext is one table of the page.
type sweepContext struct {
	search.Ranking
	best, presets []sweepRow
}

// sweepRow is a ranked layout with its prediction.
type sweepRow struct {
	search.Ranked
	anesim.Prediction
}

// Add takes the ranking of one more context.
func (r *Sweep) Add(ranking search.Ranking) {
	s := sweepContext{Ranking: ranking}
	for _, one := range ranking.Best {
		s.best = append(s.best, r.row(one))
	}
	for _, one := range ranking.Presets {
		s.presets = append(s.presets, r.row(one))
	}
	r.contexts = append(r.contexts, s)
}

// row predicts a ranked layout in full; it was planned before, so it can be planned again.
func (r *Sweep) row(one search.Ranked) sweepRow {
	plan, err := one.Layout.Plan(r.Space.Model)
	if err != nil {
		panic("view: a ranked layout cannot be planned")
	}
	p := anesim.Predict(plan, r.Space.Device, r.Space.Workload)
	r.basis = p.Basis
	return sweepRow{one, p}
}

// Warnings are those of the first layout of every context: the rest of a table says nothing else.
func (r *Sweep) Warnings() []string {
	var all []string
	for _, s := range r.contexts {
		if len(s.best) == 0 {
			continue
		}
		for _, w := range s.best[0].Warnings {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// Page is a table per context: the best, then the presets with their rank.
func (r *Sweep) Page(p *texttab.Page) {
	what := "all cuts into " + r.Chunks + " chunks"
	if r.Named {
		what = plural(len(r.Space.Layouts), "layout")
	}
	p.Head("%s", r.Source.head(what))
	for i := range r.contexts {
		p.Gap()
		r.table(p, &r.contexts[i])
	}
	p.Gap()
	if r.basis != "" {
		p.Line("90%% ranges: %s. Ranks closer than their ranges mean little; simulate diff A B compares two.", r.basis)
	}
	p.Notes()
	p.Answer("%s", r.answer())
}

func (r *Sweep) table(p *texttab.Page, s *sweepContext) {
	counts := fmt.Sprintf("%d refused", s.Refused)
	if !r.Space.Untried {
		counts += fmt.Sprintf(", %d untried", s.Untried)
	}
	p.Line("context %d: %s priced, %s by %s", s.Context, plural(s.Priced, "layout"), counts, r.Source.Device)
	t := texttab.NewTable(texttab.R("rank"), texttab.L("layout"), texttab.R("tok/s"), texttab.R("90% range"), texttab.L("bound by"))
	for i := range s.best {
		t.Row(sweepCells(p, &s.best[i])...)
	}
	if !r.Named {
		for i := range s.presets {
			t.Row(sweepCells(p, &s.presets[i])...)
		}
	}
	p.Table(t)
}

func sweepCells(p *texttab.Page, row *sweepRow) []string {
	rank := fmt.Sprint(row.Rank)
	if row.Rank == 0 {
		rank = row.Verdict() + " " + p.Note("%s: %s (simulate check %s)", row.Device, strings.Join(append(row.Refused, row.Doubted...), ", "), nameOf(&row.Ranked))
	}
	by, share := boundBy(&row.Prediction)
	return []string{rank, nameOf(&row.Ranked), sig(row.TokPerSec), between(sig(row.Range.Lo), sig(row.Range.Hi)), by + " " + pct(share)}
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

// boundBy is the resource that takes most of a token.
func boundBy(p *anesim.Prediction) (resource string, share float64) {
	sums := map[string]float64{}
	for _, c := range p.Terms() {
		sums[c.Resource] += c.TimeS
		if s := sums[c.Resource] / p.TimeS; s > share {
			resource, share = c.Resource, s
		}
	}
	return resource, share
}

// answer names the best layout at the middle context.
func (r *Sweep) answer() string {
	s := &r.contexts[len(r.contexts)/2]
	if len(s.best) == 0 {
		return fmt.Sprintf("nothing that %s is known to run: try more chunks, or --untried", r.Source.Device)
	}
	best := &s.best[0]
	return fmt.Sprintf("%s tok/s  best at context %d: %s", sig(best.TokPerSec), s.Context, compact(best.Layout))
}

// Document is the same rows.
func (r *Sweep) Document() any {
	type contextDocument struct {
		Context int           `json:"context"`
		Priced  int           `json:"priced"`
		Refused int           `json:"refused"`
		Best    []sweepRecord `json:"best"`
		Presets []sweepRecord `json:"presets"`
	}
	all := []contextDocument{}
	for _, s := range r.contexts {
		d := contextDocument{s.Context, s.Priced, s.Refused, []sweepRecord{}, []sweepRecord{}}
		for i := range s.best {
			d.Best = append(d.Best, s.best[i].record(r.Source))
		}
		for i := range s.presets {
			d.Presets = append(d.Presets, s.presets[i].record(r.Source))
		}
		all = append(all, d)
	}
	return struct {
		Made
		Source
		Contexts []contextDocument `json:"contexts"`
	}{r.Made, r.Source, all}
}

func (r *sweepRow) record(s Source) sweepRecord {
	rec := newSweepRecord(s, r.Layout, &r.Prediction)
	rec.Preset, rec.Rank = r.Preset, r.Rank
	rec.check(r.Verdict(), r.Refused, r.Doubted)
	return rec
}
