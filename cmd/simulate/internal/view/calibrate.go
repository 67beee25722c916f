package view

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

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
	r.steps(p)
	r.ranges(p)
	p.Gap()
	r.constants(p)
	r.pinned(p)
	r.experiments(p)
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
	columns = append(columns, texttab.R("shuffled"))
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
			if set.name == "loo" {
				row = append(row, percentText(k.of(c.Control).Median))
			}
			t.Row(row...)
		}
		if set.name == "loo" && c.Steps.LOO.N > 0 {
			t.Row(r.stepRow()...)
		}
	}
	p.Table(t)
}

// stepRow is the accuracy of whole steps beside that of the simpler models.
func (r *Calibrate) stepRow() []string {
	s := &r.Calibration.Steps
	row := []string{"loo step", fmt.Sprint(s.LOO.N), percentText(s.LOO.Median), percentText(s.LOO.P90), percentText(s.LOO.Max)}
	for _, b := range baselineTitles {
		row = append(row, percentText(s.Baselines[b.name].Median))
	}
	return row
}

// steps sets whole steps beside an oracle: sessions of one layout differ by as much as it misses.
func (r *Calibrate) steps(p *texttab.Page) {
	s := &r.Calibration.Steps
	if s.Oracle.N > 0 {
		p.Line("steps by an oracle that knows the same layout's median from other sessions: %s median, %s p90, %s max of %d", percentText(s.Oracle.Median),
			percentText(s.Oracle.P90), percentText(s.Oracle.Max), s.Oracle.N)
	}
	if s.Apart.N > 0 {
		p.Line("apart, because no other session had their context: %s, %s%% at most", plural(s.Apart.N, "step"), percentText(s.Apart.Max))
	}
}

// ranges says how often the 90 % ranges hold, and whether they are worth more than a band of one width.
func (r *Calibrate) ranges(p *texttab.Page) {
	x := &r.Calibration.Intervals
	if x.Rows == 0 {
		p.Line("one session of each device: none is left to predict another from, so there is no figure of accuracy%s", r.scoreCoverage())
		return
	}
	p.Line("inside their 90%% range: %s%% of left-out rows, %s%% of left-out steps%s", percentText(r.Calibration.Coverage90),
		percentText(r.Calibration.Steps.Coverage), r.scoreCoverage())
	p.Line("a range is ± %s%% wide on average; a band of one width would need ± %s%% to hold as many", percentText(x.HalfWidthPct), percentText(x.BandHalfWidthPct))
	if k := &r.Calibration.IntervalsKnown; k.Rows > 0 && k.Rows < x.Rows {
		p.Line("without the sessions that were the only one of their context: %s%% inside, ± %s%% against ± %s%%", percentText(k.Coverage),
			percentText(k.HalfWidthPct), percentText(k.BandHalfWidthPct))
	}
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

// pinned says which constants rows hold, and which terms have earned their place.
func (r *Calibrate) pinned(p *texttab.Page) {
	names := map[anesim.Pin]map[string][]string{}
	var devices []string
	for _, x := range r.Calibration.Identifiability {
		if !slices.Contains(devices, x.Device) {
			devices = append(devices, x.Device)
		}
		if names[x.Pin] == nil {
			names[x.Pin] = map[string][]string{}
		}
		names[x.Pin][x.Device] = append(names[x.Pin][x.Device], x.Constant)
	}
	for _, d := range devices {
		for _, k := range []struct {
			pin  anesim.Pin
			text string
		}{{anesim.PinData, "held by rows"}, {anesim.PinJoint, "only together with others"}, {anesim.PinPrior, "by the prior"}} {
			if all := names[k.pin][d]; len(all) > 0 {
				p.Line("%s, %s: %s", d, k.text, strings.Join(all, ", "))
			}
		}
	}
	var idle []string
	for _, t := range r.Calibration.TermChecks {
		if !t.Earned {
			idle = append(idle, t.Term)
		}
	}
	if len(idle) > 0 {
		p.Line("terms that do not lower the left-out error, kept for what nobody timed: %s", strings.Join(idle, ", "))
	}
	for _, t := range r.Calibration.Candidates {
		if !t.Earned {
			p.Line("tried and left out: %s (%s)", t.Term, t.Reason)
		} else {
			p.Line("left out, but these rows ask for it: %s (%s)", t.Term, t.Reason)
		}
	}
}

// experiments are the sessions, each predicted from all others.
func (r *Calibrate) experiments(p *texttab.Page) {
	if len(r.Calibration.Experiments) == 0 {
		return
	}
	p.Gap()
	t := texttab.NewTable(texttab.L("session left out"), texttab.R("context"), texttab.R("inside"), texttab.R("median"), texttab.R("max"), texttab.R("sum"))
	for _, x := range r.Calibration.Experiments {
		name := texttab.Clip(x.Experiment, 40)
		if x.Apart {
			name += " " + p.Note("the only session of its context: predicted from other contexts")
		}
		t.Row(name, fmt.Sprint(x.Context), fmt.Sprintf("%d/%d", x.Inside, x.Rows), plusPercent(x.MedianPct), percentText(x.MaxPct), plusPercent(x.SumPct))
	}
	p.Table(t)
	p.Notes()
}

// plusPercent is a signed error.
func plusPercent(x anesim.Percent) string {
	if math.IsNaN(float64(x)) {
		return "–"
	}
	return plus("%+.2f", float64(x))
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
	if len(rows) == 0 {
		return
	}
	p.Gap()
	t := texttab.NewTable(texttab.L("missed most"), texttab.L("chunk"), texttab.R("context"), texttab.R("measured"), texttab.R("predicted"), texttab.R("error"))
	for _, row := range rows[:min(mostMissed, len(rows))] {
		t.Row(fmt.Sprintf("%s line %d", row.Set, row.Line), row.Chunk, fmt.Sprint(row.Context), milli(row.MeasuredS)+" ms", milli(row.PredictedS)+" ms", plus("%+.1f%%", float64(row.ErrorPct)))
	}
	p.Table(t)
}

// left says what was not fitted, and why.
func (r *Calibrate) left(p *texttab.Page) {
	t := texttab.NewTable(texttab.R("rows"), texttab.L("shown but not fitted, because"), texttab.L("lines"))
	for _, e := range r.Calibration.Excluded {
		t.Row(fmt.Sprint(e.Rows), texttab.Clip(e.Reason, 44), lineRanges(e.Lines))
	}
	p.Table(t)
	doubts := r.Calibration.Doubts
	if len(doubts) > mostDoubts {
		p.Line("%s about single lines: --format json lists them", plural(len(doubts), "doubt"))
		return
	}
	for _, d := range doubts {
		p.Line("%s", d)
	}
}

// mostDoubts are shown; a file of one's own rarely has more.
const mostDoubts = 5

// lineRanges writes ascending lines as 2–5, 9; the first few stand for many.
func lineRanges(lines []int) string {
	const most = 4
	var parts []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if len(parts) == most {
			return strings.Join(parts, ", ") + " …"
		}
		if i == j {
			parts = append(parts, fmt.Sprint(lines[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", lines[i], lines[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// answer is the figure to quote, beside those of the simpler models.
func (r *Calibrate) answer() string {
	c := r.Calibration
	if c.LOO.ChunkRaw.N == 0 {
		return fmt.Sprintf("%s%% median error of the fitted chunks themselves: a second session would test the fit", percentText(c.Fit.ChunkRaw.Median))
	}
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
