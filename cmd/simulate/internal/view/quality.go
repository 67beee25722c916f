package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"anelab/cmd/simulate/internal/texttab"
	"anelab/cmd/simulate/internal/trial"
	"anelab/quality"
)

// Quality is what trials of one checkpoint measured.
type Quality struct {
	Made    Made
	Subject *trial.Subject
	Tasks   []quality.Task
	Trials  []*trial.Trial
}

// figure is a column of quality.
type figure struct {
	title string
	of    func(f *quality.Figures) float64
	write func(float64) string
}

// percents is a percentage with one decimal, without its sign.
func percents(x float64) string { return fmt.Sprintf("%.1f", 100*x) }

// qualityFigures are the columns of a task.
var qualityFigures = map[quality.Task][]figure{
	quality.Recall: {{"recall %", func(f *quality.Figures) float64 { return f.Recall }, percents}, {"topic %", func(f *quality.Figures) float64 { return f.Topic }, percents},
		{"answer NLL", func(f *quality.Figures) float64 { return f.AnswerNLL }, sig}},
	quality.Passkey:   {{"passkey %", func(f *quality.Figures) float64 { return f.Passkey }, percents}},
	quality.PPL:       {{"ppl", func(f *quality.Figures) float64 { return f.PPL }, sig4}},
	quality.Agreement: {{"agree %", func(f *quality.Figures) float64 { return f.Agree }, percents}, {"KL", func(f *quality.Figures) float64 { return f.KL }, sig}},
}

// sig4 writes three decimals: perplexities are compared closely.
func sig4(x float64) string { return fmt.Sprintf("%.3f", x) }

func (r *Quality) columns() []figure {
	var all []figure
	for _, t := range r.Tasks {
		all = append(all, qualityFigures[t]...)
	}
	return all
}

// settings names a trial: the layout as asked for, and what differs between trials of one layout.
func (r *Quality) settings(t *trial.Trial) string {
	s := strings.TrimPrefix(t.Text, "attn=")
	if r.differ(func(t *trial.Trial) string { return t.Weights }) {
		s += " " + t.Weights
	}
	if r.differ(func(t *trial.Trial) string { return t.Mode }) {
		s += " " + t.Mode
	}
	return s
}

// longest is how much of a layout fits into a table.
const longest = 26

// name is the settings of a trial as a table has room for them, the rest in a note.
func (r *Quality) name(p *texttab.Page, t *trial.Trial) string { return shortened(p, r.settings(t)) }

func shortened(p *texttab.Page, text string) string {
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return strings.TrimRight(string(runes[:longest-2]), " ") + "… " + p.Note("%s", text)
}

// differ reports whether trials have more than one of something.
func (r *Quality) differ(of func(*trial.Trial) string) bool {
	return slices.ContainsFunc(r.Trials, func(t *trial.Trial) bool { return of(t) != of(r.Trials[0]) })
}

// Page is one line per trial, and recall by distance.
func (r *Quality) Page(p *texttab.Page) {
	first := r.Trials[0]
	p.Head(r.Subject.Name, fmt.Sprintf("%d layers", len(r.Subject.Model.Layers)), plural(first.Sums.Sequences, "sequence"), "mode "+first.Mode, "weights "+first.Weights)
	p.Gap()
	columns := []texttab.Column{texttab.L("layout")}
	for _, c := range r.columns() {
		columns = append(columns, texttab.R(c.title))
	}
	table := texttab.NewTable(columns...)
	for _, t := range r.Trials {
		f := t.Sums.Figures()
		row := []string{r.name(p, t)}
		for _, c := range r.columns() {
			row = append(row, c.write(c.of(&f)))
		}
		table.Row(row...)
	}
	p.Table(table)
	if slices.Contains(r.Tasks, quality.Recall) {
		p.Gap()
		r.distances(p)
	}
	if slices.Contains(r.Tasks, quality.Passkey) {
		p.Gap()
		r.passkeys(p)
	}
	p.Notes()
}

// distances is recall by distance, a column for every distance that was asked about.
func (r *Quality) distances(p *texttab.Page) {
	columns := []texttab.Column{texttab.L("recall % at distance")}
	var asked []int
	for i, c := range r.Trials[0].Sums.Recall {
		if c.Of > 0 {
			asked = append(asked, i)
			columns = append(columns, texttab.R(quality.BucketName(i)))
		}
	}
	table := texttab.NewTable(columns...)
	for _, t := range r.Trials {
		row := []string{r.name(p, t)}
		for _, i := range asked {
			row = append(row, fmt.Sprintf("%.0f", 100*t.Sums.Recall[i].Share()))
		}
		table.Row(row...)
	}
	p.Table(table)
}

// passkeys is a column for every length, depths together.
func (r *Quality) passkeys(p *texttab.Page) {
	columns := []texttab.Column{texttab.L("passkey % in a text of")}
	var lengths []int
	for _, c := range r.Trials[0].Sums.Passkey {
		if !slices.Contains(lengths, c.Tokens) {
			lengths = append(lengths, c.Tokens)
			columns = append(columns, texttab.R(fmt.Sprint(c.Tokens)))
		}
	}
	table := texttab.NewTable(columns...)
	for _, t := range r.Trials {
		row := []string{r.name(p, t)}
		for _, n := range lengths {
			var c quality.Count
			for _, cell := range t.Sums.Passkey {
				if cell.Tokens == n {
					c.Right, c.Of = c.Right+cell.Right, c.Of+cell.Of
				}
			}
			row = append(row, fmt.Sprintf("%.0f", 100*c.Share()))
		}
		table.Row(row...)
	}
	p.Table(table)
}

type trialDocument struct {
	Layout    string       `json:"layout"`
	Weights   string       `json:"weights"`
	Mode      string       `json:"mode"`
	Unit      string       `json:"unit_sha256"`
	Recall    *float64     `json:"recall"`
	Far       *float64     `json:"recall_far"` // at distances of 32 and more
	Topic     *float64     `json:"topic"`
	AnswerNLL *float64     `json:"answer_nll"`
	Passkey   *float64     `json:"passkey"`
	PPL       *float64     `json:"ppl"`
	Top1      *float64     `json:"target_top1"`
	Agree     *float64     `json:"agreement_top1"`
	KL        *float64     `json:"kl"`
	Sums      quality.Sums `json:"sums"`
}

type qualityDocument struct {
	Made
	Checkpoint string          `json:"checkpoint"`
	Sum        string          `json:"checkpoint_sha256"`
	Set        string          `json:"set_sha256"`
	Trials     []trialDocument `json:"trials"`
}

// counted is a figure, nil when nothing was counted.
func counted(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

func trialOf(t *trial.Trial) trialDocument {
	f := t.Sums.Figures()
	return trialDocument{Layout: t.Text, Weights: t.Weights, Mode: t.Mode, Unit: t.Unit.Name(), Recall: counted(f.Recall), Far: counted(f.Far), Topic: counted(f.Topic),
		AnswerNLL: counted(f.AnswerNLL), Passkey: counted(f.Passkey), PPL: counted(f.PPL), Top1: counted(f.Top1), Agree: counted(f.Agree), KL: counted(f.KL), Sums: t.Sums}
}

// Document is every trial with its sums.
func (r *Quality) Document() any {
	d := qualityDocument{Made: r.Made, Checkpoint: r.Subject.Name, Sum: r.Subject.Sum, Set: r.Subject.Set.Sum, Trials: []trialDocument{}}
	for _, t := range r.Trials {
		d.Trials = append(d.Trials, trialOf(t))
	}
	return d
}

// Header of the records.
func (r *Quality) Header() []string {
	return []string{"layout", "weights", "mode", "sequences", "recall", "recall_far", "topic", "answer_nll", "passkey", "ppl", "target_top1", "agreement_top1", "kl"}
}

// Records are the trials; empty where nothing was counted.
func (r *Quality) Records() [][]string {
	var all [][]string
	for _, t := range r.Trials {
		d := trialOf(t)
		row := []string{d.Layout, d.Weights, d.Mode, fmt.Sprint(t.Sums.Sequences)}
		for _, x := range []*float64{d.Recall, d.Far, d.Topic, d.AnswerNLL, d.Passkey, d.PPL, d.Top1, d.Agree, d.KL} {
			cell := ""
			if x != nil {
				cell = exact(*x)
			}
			row = append(row, cell)
		}
		all = append(all, row)
	}
	return all
}
