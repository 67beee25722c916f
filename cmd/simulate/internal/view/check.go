package view

import (
	"fmt"
	"slices"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/texttab"
	placing "anelab/coreml/place"
)

// Check is what stands against a layout.
type Check struct {
	Made     Made
	Source   Source
	Layout   string
	Context  int
	Excerpt  string // the place in the layout, when the model itself refuses it
	Findings []anesim.Finding
	Limits   []anesim.LimitRecord // everything that is known, to explain; nil without

	Placements []*placing.Placement // of every program; nil where the model itself refuses
	Every      Every
	Packages   bool // programs are real ones: their placement is part of the answer
}

// Refused reports whether the answer is no.
func (r *Check) Refused() bool { return anesim.Refused(r.Findings) || r.Packages && !r.placed() }

// placed reports whether few enough ops of every program are off the engine.
func (r *Check) placed() bool {
	return !slices.ContainsFunc(r.Placements, func(at *placing.Placement) bool { return !at.Passes() })
}

// Page lists findings, worst first, each with its evidence, and answers.
func (r *Check) Page(p *texttab.Page) {
	p.Head(r.Source.head(fmt.Sprintf("context %d", r.Context))...)
	p.Line("layout %s", r.Layout)
	if r.Excerpt != "" {
		p.Verbatim(r.Excerpt)
	}
	if len(r.Findings) > 0 {
		p.Gap()
		t := texttab.NewTable(texttab.L("verdict"), texttab.L("chunk"), texttab.F("why"))
		for _, f := range r.Findings {
			if f.Verdict == anesim.VerdictNote {
				t.Row(string(f.Verdict), f.Chunk, f.Text+" ("+f.Evidence.Source+")")
				continue
			}
			t.Row(string(f.Verdict), f.Chunk, f.Text)
			if f.Evidence.Source != "" {
				t.Row("", "", observation(f.Evidence))
			}
			if f.Fix != "" {
				t.Row("", "", "fix: "+f.Fix)
			}
		}
		p.Table(t)
	}
	if len(r.Placements) > 0 {
		p.Gap()
		placements(p, r.Placements, r.Every)
	}
	p.Gap()
	if len(r.Limits) > 0 {
		r.known(p)
		p.Gap()
	}
	r.answer(p)
}

// known lists every limit: what is asked of plans, what is only a fact, what was claimed and refuted.
func (r *Check) known(p *texttab.Page) {
	met := map[string]bool{}
	for _, f := range r.Findings {
		met[f.Rule] = true
	}
	for _, sort := range []struct {
		of    anesim.RecordSort
		title string
	}{
		{anesim.SortPredicate, "asked of every program, with what they say when they are met:"},
		{anesim.SortFact, "facts, of which nothing follows for other programs:"},
		{anesim.SortRefuted, "claims that were refuted:"},
	} {
		p.Line("%s", sort.title)
		t := texttab.NewTable(texttab.L("limit"), texttab.F("observation"))
		for _, l := range r.Limits {
			if l.Sort != sort.of {
				continue
			}
			name := l.ID
			if met[l.ID] {
				name += " *"
			}
			t.Row(name, limitText(l))
		}
		p.Table(t)
		p.Gap()
	}
	p.Line("* met by this layout")
}

// limitText is a limit on one line, with the worst that it can say.
func limitText(l anesim.LimitRecord) string {
	text := observation(l.Evidence)
	if l.Verdict != "" {
		text = string(l.Verdict) + ": " + text
	}
	if l.Note != "" {
		text += "; " + l.Note
	}
	return text
}

func (r *Check) answer(p *texttab.Page) {
	counts := map[anesim.Verdict]int{}
	for _, f := range r.Findings {
		counts[f.Verdict]++
	}
	switch {
	case r.Excerpt != "":
		p.No("no: %s does not allow this layout", r.Source.Model)
	case counts[anesim.VerdictNo] > 0:
		p.No("no: %s does not run this layout as planned", r.Source.Device)
	case r.Packages && !r.placed():
		p.No("no: more than 5 %% of the ops of a program would be off the Neural Engine")
	case counts[anesim.VerdictWarning] > 0:
		p.Yes("yes, with %s: nothing known keeps %s from running it", plural(counts[anesim.VerdictWarning], "warning"), r.Source.Device)
	default:
		p.Yes("yes: nothing known keeps %s from running it", r.Source.Device)
	}
}

// observation is what stands behind a finding.
func observation(e anesim.Evidenced) string {
	return fmt.Sprintf("%s on %s, %s: %s (%s)", e.Kind, e.Device, e.Condition, e.Outcome, e.Source)
}

// Document is the findings.
func (r *Check) Document() any {
	return struct {
		Made
		Source
		Layout   string               `json:"layout"`
		Context  int                  `json:"context"`
		OK       bool                 `json:"ok"`
		Findings []anesim.Finding     `json:"findings"`
		Limits   []anesim.LimitRecord `json:"limits"` // with --explain
		Placed   []placementDocument  `json:"placement"`
	}{r.Made, r.Source, r.Layout, r.Context, !r.Refused(), append([]anesim.Finding{}, r.Findings...), append([]anesim.LimitRecord{}, r.Limits...),
		placementDocuments(r.Placements)}
}

// Header of the records.
func (r *Check) Header() []string {
	return []string{"verdict", "rule", "chunk", "text", "fix", "kind", "device", "condition", "outcome", "source"}
}

// Records are the findings.
func (r *Check) Records() [][]string {
	var all [][]string
	for _, f := range r.Findings {
		e := f.Evidence
		all = append(all, []string{string(f.Verdict), f.Rule, f.Chunk, f.Text, f.Fix, e.Kind, e.Device, e.Condition, e.Outcome, e.Source})
	}
	return all
}
