package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"anelab/anesim"
	exactly "anelab/anesim/search"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/contrast"
	"anelab/cmd/simulate/internal/report"
	"anelab/cmd/simulate/internal/search"
	"anelab/internal/format"
	"anelab/quant"
)

// reporter gathers what a report shows of one model on one device.
type reporter struct {
	subject  *subject
	workload anesim.Workload
	rankings []search.Ranking
}

// middle is the ranking that charts are of.
func (r *reporter) middle() *search.Ranking { return &r.rankings[len(r.rankings)/2] }

func (r *reporter) page(c *console.Console) (*report.Page, error) {
	s := r.subject
	source := s.source()
	p := &report.Page{Tool: "simulate " + version(), Command: "simulate " + strings.Join(c.Args, " "), Model: source.Model, Layers: source.Layers,
		Device: s.device.Title + " (" + source.Device + ")", Hash: source.DeviceHash, Context: r.middle().Context, Coverage: math.NaN()}
	for i := range r.rankings {
		one := rankingRows(&r.rankings[i])
		if one.Open = i == len(r.rankings)/2; one.Open {
			p.Rankings = slices.Insert(p.Rankings, 0, one)
			continue
		}
		p.Rankings = append(p.Rankings, one)
	}
	shown := r.shown()
	for i := range shown {
		prediction, err := r.predict(shown[i].Layout)
		if err != nil {
			return nil, err
		}
		p.Bars = append(p.Bars, bar(cmp.Or(shown[i].Preset, nameOfRanked(&shown[i])), &prediction))
		if i == 0 {
			p.Basis, p.Warnings = prediction.Basis, prediction.Warnings
		}
	}
	var err error
	if p.Verdict, err = r.verdict(); err != nil {
		return nil, err
	}
	if p.Front, p.FrontNote, err = r.front(); err != nil {
		return nil, err
	}
	if p.Residuals, err = r.residuals(); err != nil {
		return nil, err
	}
	p.Grid, err = r.grid(shown)
	return p, err
}

// shown are the best layout and the presets, each once.
func (r *reporter) shown() []search.Ranked {
	var all []search.Ranked
	for _, one := range append(slices.Clone(r.middle().Best[:min(1, len(r.middle().Best))]), r.middle().Presets...) {
		if !slices.ContainsFunc(all, func(x search.Ranked) bool { return slices.Equal(x.Layout.Cuts, one.Layout.Cuts) }) {
			all = append(all, one)
		}
	}
	return all
}

func (r *reporter) predict(l chunking.Layout) (anesim.Prediction, error) {
	s, err := r.side(l)
	if err != nil {
		return anesim.Prediction{}, err
	}
	return *s.Prediction, nil
}

// side is a layout as a plan with its price.
func (r *reporter) side(l chunking.Layout) (contrast.Side, error) {
	plan, err := l.Plan(r.subject.model)
	if err != nil {
		return contrast.Side{}, err
	}
	p := anesim.Predict(plan, r.subject.device, r.workload)
	return contrast.Side{Plan: plan, Prediction: &p}, nil
}

func rankingRows(r *search.Ranking) report.Ranking {
	out := report.Ranking{Context: r.Context, Priced: r.Priced}
	rows := r.Best
	for _, p := range r.Presets {
		if p.Rank == 0 || p.Rank > len(r.Best) {
			rows = append(slices.Clip(rows), p)
		}
	}
	for i := range rows {
		x, q := &rows[i], &rows[i].Quote
		rank := fmt.Sprint(x.Rank)
		if x.Rank == 0 {
			rank = x.Verdict()
		}
		out.Rows = append(out.Rows, report.Row{Rank: rank, Layout: nameOfRanked(x), TokPerSec: 1 / q.Seconds, Lo: 1 / q.TimeRange.Hi, Hi: 1 / q.TimeRange.Lo,
			BoundBy: q.BoundBy, BoundShare: q.BoundShare})
	}
	return out
}

// nameOfRanked is the text, with the name if it has one.
func nameOfRanked(x *search.Ranked) string {
	l := x.Layout
	l.Context = 0
	if x.Preset != "" {
		return x.Preset + ": " + l.String()
	}
	return l.String()
}

// verdict is the sentence that the page is about: the best layout, and what it is worth against the runtime's own.
func (r *reporter) verdict() (string, error) {
	m := r.middle()
	if len(m.Best) == 0 {
		return fmt.Sprintf("Nothing of %d layouts is known to run on %s.", m.Priced, r.subject.device.Title), nil
	}
	best, err := r.side(m.Best[0].Layout)
	if err != nil {
		return "", err
	}
	p := best.Prediction
	text := fmt.Sprintf("%s is the fastest layout at context %d that is known to run: %.1f tok/s (90 %%: %.1f–%.1f), of %d that were priced", nameOfRanked(&m.Best[0]), m.Context,
		p.TokPerSec, p.Range.Lo, p.Range.Hi, m.Priced)
	i := slices.IndexFunc(m.Presets, func(x search.Ranked) bool { return x.Preset == verdictAgainst && x.Rank != 1 })
	if i < 0 {
		return text + ".", nil
	}
	other, err := r.side(m.Presets[i].Layout)
	if err != nil {
		return "", err
	}
	d := contrast.Of(other, best, &r.subject.device, r.workload)
	sure := "which is a clear difference"
	if !d.Certain {
		sure = "which may be nothing"
	}
	return fmt.Sprintf("%s. Against %s that is %s ms less per token (90 %%: %s to %s), %s.", text, verdictAgainst, minus(-1e3*d.TimeS), minus(-1e3*d.TimeRange.Hi),
		minus(-1e3*d.TimeRange.Lo), sure), nil
}

// minus writes two decimals, with a sign that is no hyphen.
func minus(x float64) string { return strings.Replace(fmt.Sprintf("%.2f", x), "-", "−", 1) }

// verdictAgainst is what the runtime ships.
const verdictAgainst = "@3way"

// bar takes a prediction apart for a chart.
func bar(name string, p *anesim.Prediction) report.Bar {
	b := report.Bar{Name: name, TokPerSec: p.TokPerSec}
	add := func(name string, terms []anesim.Cost) {
		call := report.Call{Name: name}
		for _, t := range terms {
			call.Parts = append(call.Parts, report.Part{Resource: t.Resource, Seconds: t.TimeS})
		}
		b.Calls = append(b.Calls, call)
	}
	for i := range p.Chunks {
		add(p.Chunks[i].Chunk, p.Chunks[i].Terms)
	}
	add("host", p.Host)
	return b
}

// What the front is searched over.
const (
	frontCuts   = 3
	frontPrompt = 512
)

// frontWeights and frontPolicies are the settings of the fronts.
var (
	frontWeights  = []string{"int4g32", "int8g32"}
	frontPolicies = []string{"", "sliding:1024"}
)

// front explores cuts under every combination of settings at the middle context.
func (r *reporter) front() (points []report.FrontPoint, note string, err error) {
	g := exactly.Grid{Model: r.subject.model, Device: r.subject.device, Workload: r.workload, MinCuts: 1, MaxCuts: frontCuts,
		Load: anesim.Load{Functions: 1}, Prompt: anesim.Prompt{Tokens: frontPrompt, Rows: frontPrompt}}
	for _, w := range frontWeights {
		for _, a := range frontPolicies {
			g.Variants = append(g.Variants, exactly.Variant{Weights: w, Attn: a, Context: r.middle().Context})
		}
	}
	e, err := exactly.Explore(g)
	if err != nil {
		return nil, "", err
	}
	for _, v := range g.Variants {
		for _, x := range e.Variants[v] {
			points = append(points, frontPoint(v, &x))
		}
	}
	note = fmt.Sprintf("Of %d layouts of up to %d chunks at context %d: rate, resident memory, time to the first token of %d tokens, download. "+
		"Fronts are drawn for each setting apart, because other weights and windows change what the model says, and nothing here measures that.", e.Points, frontCuts, r.middle().Context, frontPrompt)
	return points, note, nil
}

func frontPoint(v exactly.Variant, x *exactly.Candidate) report.FrontPoint {
	settings := v.Weights
	if v.Attn != "" {
		settings += " attn=" + v.Attn
	}
	layout := strings.ReplaceAll(x.Layout, " w="+v.Weights, "")
	layout, _, _ = strings.Cut(layout, " attn=")
	layout, _, _ = strings.Cut(layout, " context=")
	cost := x.Point.Cost
	return report.FrontPoint{Settings: settings, Layout: layout, TokPerSec: 1 / cost[exactly.TimePerToken], Resident: cost[exactly.Resident],
		FirstToken: cost[exactly.FirstToken], Download: cost[exactly.Download]}
}

// residuals are the rows that the shipped measurements have of the device, each predicted without its session.
func (r *reporter) residuals() ([]report.Residual, error) {
	rows, err := embeddedRows()
	if err != nil {
		return nil, err
	}
	opt, err := (&calibrateOptions{}).options()
	if err != nil {
		return nil, err
	}
	fit, err := anesim.Calibrate(rows, opt)
	if err != nil {
		return nil, &format.Error{Path: embeddedMeasurements, Err: err}
	}
	var all []report.Residual
	for i := range fit.Rows {
		x := &fit.Rows[i]
		if x.Set == "loo" && slices.Contains(r.subject.device.MeasuredAs, x.Device) {
			all = append(all, report.Residual{Session: x.Experiment, Chunk: x.Chunk, Context: x.Context, MeasuredS: x.MeasuredS, PredictedS: x.PredictedS,
				LoS: x.Range.Lo, HiS: x.Range.Hi, Inside: x.Inside})
		}
	}
	return all, nil
}

// What-if settings.
var (
	gridWeights  = []string{"int4g32", "int8g32", "f16"}
	gridContexts = []int{512, 1024, 2048, 4096, 8192, 16384, 32768}
)

// grid prices the layouts shown under every combination of settings.
func (r *reporter) grid(shown []search.Ranked) (report.Grid, error) {
	g := report.Grid{Weights: gridWeights, CopyBack: copyBacks, Contexts: gridContexts, Start: max(0, slices.Index(gridContexts, r.middle().Context))}
	for i := range shown {
		g.Layouts = append(g.Layouts, nameOfRanked(&shown[i]))
		for _, w := range gridWeights {
			for _, copyBack := range copyBacks {
				for _, length := range gridContexts {
					cell, err := r.cell(shown[i].Layout, w, anesim.CopyBack(copyBack), length)
					if err != nil {
						return g, err
					}
					g.Cells = append(g.Cells, cell)
				}
			}
		}
	}
	return g, nil
}

func (r *reporter) cell(l chunking.Layout, weights string, copyBack anesim.CopyBack, length int) (report.Cell, error) {
	w, err := quant.ParseEncoding(weights)
	if err != nil {
		return report.Cell{}, err
	}
	l.Cuts, l.Context = slices.Clone(l.Cuts), length
	for i := range l.Cuts {
		l.Cuts[i].Weights = w
	}
	plan, err := l.Plan(r.subject.model)
	if err != nil {
		return report.Cell{}, err
	}
	q := anesim.NewQuoter(r.subject.device, anesim.Workload{CopyBack: copyBack}).Quote(plan)
	var against []string
	for _, f := range anesim.Check(plan, r.subject.device) {
		if f.Verdict != anesim.VerdictNote && !slices.Contains(against, f.Rule) {
			against = append(against, f.Rule)
		}
	}
	return report.Cell{Rate: rounded(1 / q.Seconds), Lo: rounded(1 / q.TimeRange.Hi), Hi: rounded(1 / q.TimeRange.Lo), Bound: q.BoundBy, Refuse: strings.Join(against, ", ")}, nil
}

// rounded keeps three decimals of a rate.
func rounded(x float64) float64 { return math.Round(1e3*x) / 1e3 }
