package view

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/texttab"
)

// Calibrate is a fit and what it misses.
type Calibrate struct {
	Made        Made
	Train       string
	Scores      []string // files
	Problems    []string // of their rows, which are left out
	Calibration *anesim.Calibration
}

// mostMissed rows are shown; all of them are in JSON and CSV.
const mostMissed = 5

// Page shows accuracy beside the baselines, then constants, then what was missed most and what was left out.
func (r *Calibrate) Page(p *texttab.Page) {
	c := r.Calibration
	p.Head(fmt.Sprintf("%s: %s, %s fitted", r.Train, plural(len(c.Sessions), "session"), plural(c.Fit.ChunkRaw.N, "row")))
	p.Gap()
	r.accuracy(p)
	p.Line("inside their 90%% range: %s%% of left-out rows%s", percentText(c.Coverage90), r.scoreCoverage())
	p.Gap()
	r.constants(p)
	p.Gap()
	r.missed(p)
	p.Gap()
	r.left(p)
	p.Gap()
	p.Answer("%s", r.answer())
}

// baselineTitles are the columns of the two simpler models.
var baselineTitles = []struct{ name, title string }{
	{"ms_per_layer", "per layer"},
	{"bytes_per_bandwidth_plus_floor", "bytes+floor"},
}

func (r *Calibrate) accuracy(p *texttab.Page) {
	c := r.Calibration
	columns := []texttab.Column{texttab.L("|error| in %"), texttab.R("n"), texttab.R("median"), texttab.R("p90"), texttab.R("max")}
	for _, b := range baselineTitles {
		columns = append(columns, texttab.R(b.title))
	}
	t := texttab.NewTable(columns...)
	for _, set := range []struct {
		name string
		of   func(anesim.Baseline) anesim.Accuracy
		own  anesim.Accuracy
	}{
		{"fit", func(b anesim.Baseline) anesim.Accuracy { return b.Fit }, c.Fit},
		{"loo", func(b anesim.Baseline) anesim.Accuracy { return b.LOO }, c.LOO},
		{"score", func(b anesim.Baseline) anesim.Accuracy { return b.Score }, c.Score},
	} {
		if set.own.ChunkRaw.N == 0 {
			continue
		}
		for _, k := range kinds {
			s := k.of(set.own)
			row := []string{set.name + " " + k.name, fmt.Sprint(s.N), percentText(s.Median), percentText(s.P90), percentText(s.Max)}
			for _, b := range baselineTitles {
				row = append(row, percentText(k.of(set.of(c.Baselines[b.name])).Median))
			}
			t.Row(row...)
		}
	}
	p.Table(t)
}

// kinds of errors in the order of the table.
var kinds = []struct {
	name string
	of   func(anesim.Accuracy) anesim.Stats
}{
	{"chunk", func(a anesim.Accuracy) anesim.Stats { return a.ChunkRaw }},
	{"chunk scaled", func(a anesim.Accuracy) anesim.Stats { return a.ChunkScaled }},
	{"sum", func(a anesim.Accuracy) anesim.Stats { return a.SumRaw }},
	{"sum scaled", func(a anesim.Accuracy) anesim.Stats { return a.SumScaled }},
}

func percentText(p anesim.Percent) string {
	if math.IsNaN(float64(p)) {
		return "–"
	}
	return sig(float64(p))
}

func (r *Calibrate) scoreCoverage() string {
	if r.Calibration.Score.ChunkRaw.N == 0 {
		return ""
	}
	return fmt.Sprintf(", %s%% of scored rows", percentText(r.Calibration.ScoreCoverage))
}

func (r *Calibrate) constants(p *texttab.Page) {
	t := texttab.NewTable(texttab.L("device"), texttab.L("constant"), texttab.R("value"), texttab.R("± sd"), texttab.L("unit"), texttab.R("prior"), texttab.L("sure"))
	for _, c := range r.Calibration.Constants {
		value, sd, unit := scaled(c.Value, c.SD, c.Unit)
		prior, _, _ := scaled(c.Prior, c.PriorSD, c.Unit)
		t.Row(c.Device, c.Name, value, sd, unit, prior, c.Confidence)
	}
	p.Table(t)
}

// missed lists the left-out or scored rows with the largest errors.
func (r *Calibrate) missed(p *texttab.Page) {
	var rows []anesim.Residual
	for _, row := range r.Calibration.Rows {
		if row.Set != "fit" {
			rows = append(rows, row)
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return math.Abs(float64(rows[i].ErrorPct)) > math.Abs(float64(rows[j].ErrorPct)) })
	t := texttab.NewTable(texttab.L("missed most"), texttab.L("chunk"), texttab.R("context"), texttab.R("measured"), texttab.R("predicted"), texttab.R("error"))
	for _, row := range rows[:min(mostMissed, len(rows))] {
		t.Row(fmt.Sprintf("%s line %d", row.Set, row.Line), row.Chunk, fmt.Sprint(row.Context), milli(row.MeasuredS)+" ms", milli(row.PredictedS)+" ms", plus("%+.1f%%", float64(row.ErrorPct)))
	}
	p.Table(t)
}

// left says what was not fitted, and why.
func (r *Calibrate) left(p *texttab.Page) {
	t := texttab.NewTable(texttab.R("rows"), texttab.F("shown but not fitted, because"))
	for _, e := range r.Calibration.Excluded {
		t.Row(fmt.Sprint(e.Rows), e.Reason)
	}
	p.Table(t)
	if n := len(r.Calibration.Doubts); n > 0 {
		p.Line("%s about single lines: --format json lists them", plural(n, "doubt"))
	}
}

// answer is the figure to quote, beside those of the simpler models.
func (r *Calibrate) answer() string {
	c := r.Calibration
	text := fmt.Sprintf("%s%% median error of a chunk in a session left out, scaled", percentText(c.LOO.ChunkScaled.Median))
	for _, b := range baselineTitles {
		text += fmt.Sprintf("; %s %s%%", b.title, percentText(c.Baselines[b.name].LOO.ChunkScaled.Median))
	}
	return text
}

// Document is the calibration, every row with it.
func (r *Calibrate) Document() any {
	return struct {
		Tool     string   `json:"tool"`
		Command  []string `json:"command"`
		Train    string   `json:"train"`
		Scores   []string `json:"score_files"`
		Problems []string `json:"score_problems"`
		*anesim.Calibration
	}{r.Made.Tool, r.Made.Command, r.Train, append([]string{}, r.Scores...), append([]string{}, r.Problems...), r.Calibration}
}

// Header of the records.
func (r *Calibrate) Header() []string {
	return []string{"set", "line", "experiment", "device", "component", "chunk", "layout", "context", "measured_s", "predicted_s", "lo90_s", "hi90_s",
		"inside90", "error_pct", "scaled_error_pct"}
}

// Records are the residuals.
func (r *Calibrate) Records() [][]string {
	var all [][]string
	for _, x := range r.Calibration.Rows {
		all = append(all, slices.Concat([]string{x.Set, fmt.Sprint(x.Line), x.Experiment, x.Device, x.Component, x.Chunk, x.Layout, fmt.Sprint(x.Context)},
			[]string{exact(x.MeasuredS), exact(x.PredictedS), exact(x.Range.Lo), exact(x.Range.Hi), fmt.Sprint(x.Inside), exactPercent(x.ErrorPct), exactPercent(x.ScaledPct)}))
	}
	return all
}

// exactPercent leaves out what was not measured.
func exactPercent(p anesim.Percent) string {
	if math.IsNaN(float64(p)) {
		return ""
	}
	return exact(float64(p))
}
