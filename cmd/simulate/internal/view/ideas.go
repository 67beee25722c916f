package view

import (
	"strings"

	"anelab/anesim/evidence"
	"anelab/anesim/ledger"
	"anelab/cmd/simulate/internal/texttab"
)

// Ideas is the ledger of techniques on a model and a device.
type Ideas struct {
	Made   Made
	Source Source
	Ideas  []Idea
}

// Idea is one technique with what was measured of it and what the model expects.
type Idea struct {
	ledger.Entry
	Measured []evidence.Effect
	Forecast ledger.Forecast
}

// priced reports whether there is a forecast.
func (x *Idea) priced() bool { return x.Forecast != ledger.None }

// change is the forecast in ms with its range; a dash where nothing is forecast.
func (x *Idea) change() (middle, width string) {
	if !x.priced() {
		return "–", ""
	}
	f := &x.Forecast
	return change(f.Seconds), change(f.Range.Lo) + " … " + change(f.Range.Hi)
}

// change is a difference of times that says 0 for what is below a microsecond.
func change(seconds float64) string {
	if seconds > -1e-6 && seconds < 1e-6 {
		return "0"
	}
	return signed(seconds)
}

// Page is one entry per technique, with the advice.
func (r *Ideas) Page(p *texttab.Page) {
	p.Head(r.Source.head(plural(len(r.Ideas), "idea"))...)
	p.Gap()
	t := texttab.NewTable(texttab.L("idea"), texttab.L("ground"), texttab.R("ms/token"), texttab.F("what to do"))
	counts := map[ledger.Verdict]int{}
	for i := range r.Ideas {
		x := &r.Ideas[i]
		counts[x.Verdict]++
		middle, _ := x.change()
		if x.Forecast.Of == "first token" {
			middle += " " + p.Note("ms to the first token of a prompt of 400")
		}
		t.Row(x.ID, string(x.Verdict), middle, x.Advice)
	}
	p.Table(t)
	p.Gap()
	p.Line("Forecasts are those of the cost model or of a rule, never of the authors; minus is faster. simulate ideas IDEA shows range, claim and measurements.")
	p.Notes()
	p.Gap()
	p.Answer("%d priced, %d run in the reference, %d known by a rule, %d unmeasured", counts[ledger.Priced], counts[ledger.Reference],
		counts[ledger.Rule], counts[ledger.Unmeasured])
}

// ideaDocument is one technique for programs.
type ideaDocument struct {
	ledger.Entry
	Priced   bool             `json:"has_forecast"`
	Forecast ledger.Forecast  `json:"forecast"`
	Measured []effectDocument `json:"measured"`
}

type effectDocument struct {
	ID        string `json:"id"`
	Variable  string `json:"variable"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Unit      string `json:"unit"`
	Predicted string `json:"predicted_by_authors"`
	Source    string `json:"source"`
	Note      string `json:"note"`
}

type ideasDocument struct {
	Made
	Source
	Ideas []ideaDocument `json:"ideas"`
}

// Document is every entry with its measurements.
func (r *Ideas) Document() any {
	d := ideasDocument{r.Made, r.Source, []ideaDocument{}}
	for i := range r.Ideas {
		x := &r.Ideas[i]
		one := ideaDocument{x.Entry, x.priced(), x.Forecast, []effectDocument{}}
		one.Effects = append([]string{}, x.Effects...)
		for _, e := range x.Measured {
			one.Measured = append(one.Measured, effectDocument{e.ID, e.Variable, e.Before, e.After, e.Unit, e.Predicted, e.Source, e.Note})
		}
		d.Ideas = append(d.Ideas, one)
	}
	return d
}

// Header of the records.
func (r *Ideas) Header() []string {
	return []string{"idea", "name", "verdict", "ground", "forecast_s", "forecast_lo90_s", "forecast_hi90_s", "of", "advice", "claim", "effects"}
}

// Records are the entries.
func (r *Ideas) Records() [][]string {
	var all [][]string
	for i := range r.Ideas {
		x, f := &r.Ideas[i], &r.Ideas[i].Forecast
		figures := []string{"", "", "", ""}
		if x.priced() {
			figures = []string{exact(f.Seconds), exact(f.Range.Lo), exact(f.Range.Hi), f.Of}
		}
		row := append([]string{x.ID, x.Name, string(x.Verdict), x.Ground}, figures...)
		all = append(all, append(row, x.Advice, x.Claim, strings.Join(x.Effects, " ")))
	}
	return all
}

// OneIdea is a single technique in full.
type OneIdea struct{ Ideas }

// Page shows claim, measurements, forecast and verdict.
func (r *OneIdea) Page(p *texttab.Page) {
	x := &r.Ideas.Ideas[0]
	p.Head(r.Source.head(x.ID)...)
	p.Line("%s", x.Name)
	p.Gap()
	p.Line("claim: %s", x.Claim)
	if middle, width := x.change(); x.priced() {
		p.Line("forecast: %s ms per %s (90%%: %s): %s", middle, x.Forecast.Of, width, x.Forecast.Text)
	} else {
		p.Line("forecast: none, no term covers it")
	}
	p.Line("ground: %s: %s", x.Verdict, x.Ground)
	if len(x.Measured) > 0 {
		p.Gap()
		measured(p, x.Measured)
	}
	p.Gap()
	p.Answer("%s", x.Advice)
}

func measured(p *texttab.Page, effects []evidence.Effect) {
	t := texttab.NewTable(texttab.L("measured"), texttab.F("before → after"))
	for _, e := range effects {
		text := e.After
		if e.Before != "" {
			text = e.Before + " → " + text
		}
		if e.Unit != "category" {
			text += " " + e.Unit
		}
		if e.Predicted != "" {
			text += "; its authors expected " + e.Predicted
		}
		t.Row(e.ID, text+" ("+e.Source+")")
	}
	p.Table(t)
}
