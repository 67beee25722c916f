package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"anelab/anesim"
	"anelab/attention"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/cmd/simulate/internal/trial"
	"anelab/quality"
	"anelab/swa"
)

// Frontier joins what layouts cost on a device with what they do to a checkpoint.
type Frontier struct {
	Made       Made
	Source     Source
	Checkpoint string
	Context    int
	By         string
	Points     []FrontierPoint
}

// FrontierPoint is one layout in one encoding and mode.
type FrontierPoint struct {
	Trial      *trial.Trial
	Prediction anesim.Prediction
}

// merit is a figure that points are compared by.
type merit struct {
	task  quality.Task
	title string
	of    func(*quality.Figures) float64
	write func(float64) string
	less  bool // the smaller, the better
}

var merits = map[string]merit{
	"recall":     {quality.Recall, "recall %", func(f *quality.Figures) float64 { return f.Recall }, percents, false},
	"topic":      {quality.Recall, "topic %", func(f *quality.Figures) float64 { return f.Topic }, percents, false},
	"answer_nll": {quality.Recall, "answer NLL", func(f *quality.Figures) float64 { return f.AnswerNLL }, sig, true},
	"passkey":    {quality.Passkey, "passkey %", func(f *quality.Figures) float64 { return f.Passkey }, percents, false},
	"ppl":        {quality.PPL, "ppl", func(f *quality.Figures) float64 { return f.PPL }, sig4, true},
	"agreement":  {quality.Agreement, "agree %", func(f *quality.Figures) float64 { return f.Agree }, percents, false},
	"kl":         {quality.Agreement, "KL", func(f *quality.Figures) float64 { return f.KL }, sig, true},
}

// FrontierFigures are what points can be compared by.
func FrontierFigures() []string { return slices.Sorted(maps.Keys(merits)) }

// FrontierTasks are what must be measured for a figure.
func FrontierTasks(by string) []quality.Task { return []quality.Task{merits[by].task} }

// value is a point's merit, the larger the better.
func (r *Frontier) value(p *FrontierPoint) float64 {
	m, f := merits[r.By], p.Trial.Sums.Figures()
	if m.less {
		return -m.of(&f)
	}
	return m.of(&f)
}

// beatenBy is the fastest point that is no worse in both respects and better in one; −1 for none.
func (r *Frontier) beatenBy(i int) int {
	best := -1
	a := &r.Points[i]
	for k := range r.Points {
		b := &r.Points[k]
		rate, worth := b.Prediction.TokPerSec-a.Prediction.TokPerSec, r.value(b)-r.value(a)
		if rate < 0 || worth < 0 || rate == 0 && worth == 0 {
			continue
		}
		if best < 0 || b.Prediction.TokPerSec > r.Points[best].Prediction.TokPerSec {
			best = k
		}
	}
	return best
}

// order is the points, fastest first.
func (r *Frontier) order() []int {
	all := make([]int, len(r.Points))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int {
		switch x, y := r.Points[a].Prediction.TokPerSec, r.Points[b].Prediction.TokPerSec; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return all
}

// name of a point: the layout as asked for, and what else differs between points.
func (r *Frontier) name(p *FrontierPoint) string {
	q := Quality{}
	for i := range r.Points {
		q.Trials = append(q.Trials, r.Points[i].Trial)
	}
	return q.settings(p.Trial)
}

// Page is a line per point, fastest first, and a plot.
func (r *Frontier) Page(p *texttab.Page) {
	first := r.Points[0].Trial
	p.Head(r.Source.head(fmt.Sprintf("context %d", r.Context))...)
	p.Line("quality: %s, %s, mode %s, weights %s", r.Checkpoint, plural(first.Sums.Sequences, "sequence"), first.Mode, first.Weights)
	p.Gap()
	m := merits[r.By]
	t := texttab.NewTable(texttab.L(""), texttab.L("layout"), texttab.R("tok/s"), texttab.R("90% range"), texttab.R(m.title), texttab.L("beaten by"))
	letters := map[int]string{}
	for n, i := range r.order() {
		letters[i] = letter(n)
	}
	undominated := 0
	for _, i := range r.order() {
		x := &r.Points[i]
		f := x.Trial.Sums.Figures()
		beaten := ""
		if k := r.beatenBy(i); k >= 0 {
			beaten = letters[k]
		} else {
			undominated++
		}
		t.Row(letters[i], shortened(p, r.name(x)), sig(x.Prediction.TokPerSec), between(sig(x.Prediction.Range.Lo), sig(x.Prediction.Range.Hi)), m.write(m.of(&f)), beaten)
	}
	p.Table(t)
	var layouts []chunking.Layout
	for i := range r.Points {
		layouts = append(layouts, r.Points[i].Trial.Layout)
	}
	unmeasured(p, layouts...)
	p.Gap()
	p.Verbatim(r.plot(letters))
	p.Gap()
	p.Answer("%s of %d that nothing beats in both", plural(undominated, "layout"), len(r.Points))
	p.Notes()
}

// unmeasured tells of the policies whose price leaves out work that no device was timed at.
func unmeasured(page *texttab.Page, layouts ...chunking.Layout) {
	var all []string
	for _, l := range layouts {
		for _, a := range l.Attn {
			p, err := attention.Parse(a.Policy)
			if err != nil {
				continue
			}
			_, selects := attention.As[attention.Selector](p)
			if (selects || attention.FormOf(p) != swa.Form{}) && !slices.Contains(all, a.Policy) {
				all = append(all, a.Policy)
			}
		}
	}
	if len(all) > 0 {
		page.Gap()
		page.Line("%s: priced by the rows read alone. Gathering rows by score, unpacking and rebuilding them was never timed on a device.", strings.Join(all, ", "))
	}
}

// letter names the n-th point: A … Z, then a … z, then *.
func letter(n int) string {
	switch {
	case n < 26:
		return string(rune('A' + n))
	case n < 52:
		return string(rune('a' + n - 26))
	}
	return "*"
}

// Size of the plot in characters.
const (
	plotWidth  = 60
	plotHeight = 12
)

// plot shows quality upwards and tokens per second to the right. Points on one spot show the one that is not beaten.
func (r *Frontier) plot(letters map[int]string) string {
	grid := make([][]string, plotHeight)
	for i := range grid {
		grid[i] = slices.Repeat([]string{" "}, plotWidth)
	}
	rates, worths := extent(r.Points, func(p *FrontierPoint) float64 { return p.Prediction.TokPerSec }), extent(r.Points, r.value)
	order := r.order()
	slices.SortStableFunc(order, func(a, b int) int { return min(r.beatenBy(b), 0) - min(r.beatenBy(a), 0) })
	for _, i := range order {
		x := rates.at(r.Points[i].Prediction.TokPerSec, plotWidth)
		y := worths.at(r.value(&r.Points[i]), plotHeight)
		grid[plotHeight-1-y][x] = letters[i]
	}
	m := merits[r.By]
	var b strings.Builder
	for i, row := range grid {
		label := ""
		switch i {
		case 0:
			label = m.write(math.Abs(worths.hi))
		case plotHeight - 1:
			label = m.write(math.Abs(worths.lo))
		}
		fmt.Fprintf(&b, "%8s │%s\n", label, strings.TrimRight(strings.Join(row, ""), " "))
	}
	left, right := sig(rates.lo), sig(rates.hi)+" tok/s"
	fmt.Fprintf(&b, "%8s └%s\n%8s  %s%s%s\n", "", strings.Repeat("─", plotWidth), m.title, left, strings.Repeat(" ", max(plotWidth-len(left)-len(right), 1)), right)
	return b.String()
}

// axis is the range of an axis.
type axis struct{ lo, hi float64 }

func extent(points []FrontierPoint, of func(*FrontierPoint) float64) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for i := range points {
		v := of(&points[i])
		a.lo, a.hi = min(a.lo, v), max(a.hi, v)
	}
	return a
}

// at is the place of v among n.
func (a axis) at(v float64, n int) int {
	if a.hi <= a.lo {
		return 0
	}
	return int(math.Round((v - a.lo) / (a.hi - a.lo) * float64(n-1)))
}

type frontierPoint struct {
	trialDocument
	TokPerSec   float64    `json:"tok_per_s"`
	TokRange    [2]float64 `json:"tok_per_s_range90"`
	KVReadBytes int64      `json:"kv_read_bytes"`
	Dominated   bool       `json:"dominated"`
}

type frontierDocument struct {
	Made
	Source
	Checkpoint string          `json:"checkpoint"`
	Context    int             `json:"context"`
	By         string          `json:"by"`
	Points     []frontierPoint `json:"points"`
}

// Document is every point, fastest first.
func (r *Frontier) Document() any {
	d := frontierDocument{Made: r.Made, Source: r.Source, Checkpoint: r.Checkpoint, Context: r.Context, By: r.By, Points: []frontierPoint{}}
	for _, i := range r.order() {
		p := &r.Points[i].Prediction
		var read int64
		for k := range p.Chunks {
			read += p.Chunks[k].KVReadBytes
		}
		d.Points = append(d.Points, frontierPoint{trialOf(r.Points[i].Trial), p.TokPerSec, [2]float64{p.Range.Lo, p.Range.Hi}, read, r.beatenBy(i) >= 0})
	}
	return d
}

// Header of the records.
func (r *Frontier) Header() []string {
	return []string{"layout", "weights", "mode", "context", "tok_per_s", "tok_per_s_lo", "tok_per_s_hi", r.By, "dominated"}
}

// Records are the points, fastest first.
func (r *Frontier) Records() [][]string {
	var all [][]string
	m := merits[r.By]
	for _, i := range r.order() {
		t, p := r.Points[i].Trial, &r.Points[i].Prediction
		f := t.Sums.Figures()
		all = append(all, []string{t.Text, t.Weights, t.Mode, fmt.Sprint(r.Context), exact(p.TokPerSec), exact(p.Range.Lo), exact(p.Range.Hi), exact(m.of(&f)),
			fmt.Sprint(r.beatenBy(i) >= 0)})
	}
	return all
}
