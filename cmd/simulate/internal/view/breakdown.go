package view

import (
	"fmt"
	"math"
	"strconv"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/texttab"
)

// Breakdown is a prediction taken apart: every term of every call, and where each constant comes from.
type Breakdown struct {
	Plan
	Constants []SourcedConstant
	Rules     []anesim.EmpiricalFactor // that the plan meets; no part of the sum
}

// SourcedConstant is a constant of the device that the prediction uses.
type SourcedConstant struct {
	Name       string  `json:"name"`
	Value      float64 `json:"value"`
	SD         float64 `json:"sd"`
	Unit       string  `json:"unit"`
	Confidence string  `json:"confidence"`
	Source     string  `json:"source"`
	Prior      string  `json:"prior_source"`
	File       string  `json:"file"` // of the device
	Line       int     `json:"line"` // in it; 0 when it is not there
}

// Page shows the sum: terms per call, calls per token, then the constants.
func (r *Breakdown) Page(p *texttab.Page) {
	pr := &r.Prediction
	p.Head(r.Source.head(weightsOf(r.Plan.Plan)+" weights", fmt.Sprintf("context %d", pr.Context))...)
	sum := microsecondSum{}
	for i := range pr.Chunks {
		c := &pr.Chunks[i]
		p.Gap()
		r.terms(p, c.Chunk, c.Terms, &sum)
	}
	p.Gap()
	r.terms(p, "host", pr.Host, &sum)
	p.Gap()
	p.Line("%s ms per %s: the sum of the %d tables", sum.total(), r.unit(), len(pr.Chunks)+1)
	p.Gap()
	r.sources(p)
	r.rules(p)
	p.Gap()
	p.Answer("%s", r.Rate())
}

// microsecondSum adds times and rounds only what it has added, so that columns of whole microseconds add up to their total.
type microsecondSum struct{ seconds float64 }

func (l *microsecondSum) micros() int64 { return int64(math.Round(1e6 * l.seconds)) }

// add returns a time in ms with three decimals.
func (l *microsecondSum) add(seconds float64) string {
	before := l.micros()
	l.seconds += seconds
	return thousandth(l.micros() - before)
}

func (l *microsecondSum) total() string { return thousandth(l.micros()) }

func thousandth(micros int64) string { return fmt.Sprintf("%d.%03d", micros/1000, micros%1000) }

func (r *Breakdown) terms(p *texttab.Page, name string, terms []anesim.Cost, sum *microsecondSum) {
	p.Line("%s", name)
	t := texttab.NewTable(texttab.R("ms"), texttab.L("term"), texttab.R("constant"), texttab.L("unit"), texttab.R("times"), texttab.F("quantity"))
	before := sum.micros()
	for _, x := range terms {
		scale, unit := scaleOf(x.ConstantUnit)
		t.Row(sum.add(x.TimeS), x.Term, five(scale*x.Constant), unit, whole(x.Quantity), x.QuantityUnit)
	}
	t.Rule()
	t.Row(thousandth(sum.micros()-before), "sum")
	p.Table(t)
}

// five significant digits of a constant give back the time to the microsecond.
func five(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }

// whole is a quantity without an exponent.
func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

func (r *Breakdown) sources(p *texttab.Page) {
	t := texttab.NewTable(texttab.L("constant"), texttab.L("sure"), texttab.R("± sd"), texttab.L("unit"), texttab.F("source"))
	for _, c := range r.Constants {
		_, sd, unit := scaled(c.Value, c.SD, c.Unit)
		place := c.File
		if c.Line > 0 {
			place = fmt.Sprintf("%s:%d", c.File, c.Line)
		}
		t.Row(c.Name, c.Confidence, sd, unit, place+": "+c.Source)
	}
	p.Table(t)
}

func (r *Breakdown) rules(p *texttab.Page) {
	for _, f := range r.Rules {
		p.Line("not in the sum: rule %s, times × %s ± %s: %s", f.Rule, sig(f.Factor), sig(f.SD), f.Text)
	}
}

// Document is that of the plan, with the constants.
func (r *Breakdown) Document() any {
	return breakdownDocument{r.Plan.Document().(planDocument), append([]SourcedConstant{}, r.Constants...), append([]anesim.EmpiricalFactor{}, r.Rules...)}
}

type breakdownDocument struct {
	planDocument
	Constants []SourcedConstant        `json:"constants"`
	Rules     []anesim.EmpiricalFactor `json:"empirical_rules"`
}

// Header of the records.
func (r *Breakdown) Header() []string {
	return []string{"part", "term", "resource", "constant", "constant_unit", "quantity", "quantity_unit", "time_s", "confidence"}
}

// Records are the terms, call by call.
func (r *Breakdown) Records() [][]string {
	var all [][]string
	add := func(part string, terms []anesim.Cost) {
		for _, x := range terms {
			all = append(all, []string{part, x.Term, x.Resource, exact(x.Constant), x.ConstantUnit, whole(x.Quantity), x.QuantityUnit, exact(x.TimeS), x.Confidence})
		}
	}
	for i := range r.Prediction.Chunks {
		add(r.Prediction.Chunks[i].Chunk, r.Prediction.Chunks[i].Terms)
	}
	add("host", r.Prediction.Host)
	return all
}
