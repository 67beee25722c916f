package view

import (
	"fmt"
	"path/filepath"

	"anelab/cmd/simulate/internal/talk"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/gemma4"
)

// Generate is what a model said, and how fast.
type Generate struct {
	Made                     Made
	Checkpoint, Layout, Mode string // Layout "" = whole
	Style                    string // raw, ids, or the format of the conversation
	Context                  int
	Sampling                 gemma4.Sampling
	Prompt, IDs              []int
	Text, Reasoning          string
	Result                   talk.Result
	StepBytes, KVBytes       int64
	PeakRSSBytes             int64 // 0 where the system does not say
}

// Page is the figures; the text has been shown while it came.
func (r *Generate) Page(p *texttab.Page) {
	layout := r.Layout
	if layout == "" {
		layout = "whole"
	}
	p.Head(filepath.Base(r.Checkpoint), "mode "+r.Mode, layout, r.Style, fmt.Sprintf("context %d", r.Context))
	g := &r.Result
	t := texttab.NewTable(texttab.L("test"), texttab.R("tok/s"), texttab.R("time"))
	t.Row(fmt.Sprintf("pp%d", g.PromptTokens), sig(g.PromptRate()), fmt.Sprintf("%.3f s", g.PromptSeconds))
	if g.Steps > 0 {
		t.Row(fmt.Sprintf("tg%d", g.Steps), sig(g.GenerateRate()), fmt.Sprintf("%.3f s", g.GenerateSeconds))
	}
	p.Table(t)
	peak := ""
	if r.PeakRSSBytes > 0 {
		peak = fmt.Sprintf("; peak memory %.0f MB", float64(r.PeakRSSBytes)/1e6)
	}
	p.Line("%s, ended by %s; %s MB of weights for a token, %s MB of keys and values%s", plural(g.Tokens, "token"), endings[g.Finish], sig(float64(r.StepBytes)/1e6),
		sig(float64(r.KVBytes)/1e6), peak)
}

// endings are the reasons to stop, for people.
var endings = map[talk.Finish]string{talk.Stopped: "the model or a stop text", talk.Length: "their number", "": "an interruption"}

// generateDocument is everything, in SI units.
type generateDocument struct {
	Made
	Checkpoint       string           `json:"checkpoint"`
	Layout           string           `json:"layout"`
	Mode             string           `json:"mode"`
	Style            string           `json:"style"`
	Context          int              `json:"context"`
	Sampling         samplingDocument `json:"sampling"`
	PromptIDs        []int            `json:"prompt_ids"`
	IDs              []int            `json:"ids"`
	Text             string           `json:"text"`
	Reasoning        string           `json:"reasoning"`
	Finish           string           `json:"finish"`
	PromptTimeS      float64          `json:"prompt_time_s"`
	PromptTokPerS    float64          `json:"prompt_tok_s"`
	GenerateTimeS    float64          `json:"generate_time_s"`
	GenerateTokPerS  float64          `json:"generate_tok_s"`
	WeightsStepBytes int64            `json:"step_bytes"`
	KVBytes          int64            `json:"kv_bytes"`
	PeakRSSBytes     int64            `json:"peak_rss_bytes"`
}

type samplingDocument struct {
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"top_k"`
	TopP        float64 `json:"top_p"`
	MinP        float64 `json:"min_p"`
	Repetition  float64 `json:"repetition_penalty"`
	Seed        int64   `json:"seed"`
}

// Document is the text with everything that made it.
func (r *Generate) Document() any {
	s, g := r.Sampling, &r.Result
	return generateDocument{r.Made, r.Checkpoint, r.Layout, r.Mode, r.Style, r.Context,
		samplingDocument{s.Temperature, s.TopK, s.TopP, s.MinP, s.Repetition, int64(s.Seed)}, r.Prompt, append([]int{}, r.IDs...), r.Text, r.Reasoning, string(g.Finish),
		g.PromptSeconds, g.PromptRate(), g.GenerateSeconds, g.GenerateRate(), r.StepBytes, r.KVBytes, r.PeakRSSBytes}
}
