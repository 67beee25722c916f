package view

import (
	"fmt"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/texttab"
)

// Check is what stands against a layout.
type Check struct {
	Made     Made
	Source   Source
	Layout   string
	Context  int
	Excerpt  string // the place in the layout, when the model itself refuses it
	Findings []anesim.Finding
}

// Refused reports whether the answer is no.
func (r *Check) Refused() bool { return anesim.Refused(r.Findings) }

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
				t.Row("", "", evidence(f.Evidence))
			}
			if f.Fix != "" {
				t.Row("", "", "fix: "+f.Fix)
			}
		}
		p.Table(t)
	}
	p.Gap()
	r.answer(p)
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
	case counts[anesim.VerdictWarning] > 0:
		p.Yes("yes, with %s: nothing known keeps %s from running it", plural(counts[anesim.VerdictWarning], "warning"), r.Source.Device)
	default:
		p.Yes("yes: nothing known keeps %s from running it", r.Source.Device)
	}
}

// evidence is the observation behind a finding.
func evidence(e anesim.Evidenced) string {
	return fmt.Sprintf("%s on %s, %s: %s (%s)", e.Kind, e.Device, e.Condition, e.Outcome, e.Source)
}

// Document is the findings.
func (r *Check) Document() any {
	return struct {
		Made
		Source
		Layout   string           `json:"layout"`
		Context  int              `json:"context"`
		OK       bool             `json:"ok"`
		Findings []anesim.Finding `json:"findings"`
	}{r.Made, r.Source, r.Layout, r.Context, !r.Refused(), r.Findings}
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
