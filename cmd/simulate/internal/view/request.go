package view

import (
	"fmt"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/texttab"
)

// Request is what surrounds a decode step.
type Request struct {
	Made       Made
	Source     Source
	Plan       *chunking.Plan
	Decode     anesim.Prediction
	Tokens     int // of the prompt
	First      anesim.Prefill
	Memory     anesim.Memory
	Energy     anesim.Energy
	Drafts     int
	Speculated *anesim.Speculated // nil without drafts
}

// Page shows the parts one behind the other, each with what it rests on.
func (r *Request) Page(p *texttab.Page) {
	p.Head(r.Source.head(fmt.Sprintf("context %d", r.Decode.Context))...)
	p.Line("layout %s", r.Plan.Layout)
	p.Gap()
	r.first(p)
	p.Gap()
	r.memory(p)
	if r.Speculated != nil {
		p.Gap()
		r.drafts(p)
	}
	p.Gap()
	e := &r.Energy
	p.Line("energy: %s J per token (%s): %s", sig(e.JoulesPerToken), between(sig(e.Range.Lo), sig(e.Range.Hi)), e.Provenance)
	p.Gap()
	p.Answer("%s", r.answer())
}

func (r *Request) first(p *texttab.Page) {
	f := &r.First
	t := texttab.NewTable(texttab.R("ms"), texttab.R("90% range"), texttab.L(fmt.Sprintf("to the first token of %d", r.Tokens)))
	for _, x := range f.Parts {
		t.Row(milli(x.TimeS), msRange(x.Range), x.Name+" "+p.Note("%s", x.Source))
	}
	t.Rule()
	t.Row(milli(f.TimeS), msRange(f.TimeRange), "sum")
	p.Table(t)
	for _, n := range f.Notes {
		p.Line("%s", n)
	}
	p.Notes()
}

func (r *Request) memory(p *texttab.Page) {
	m := &r.Memory
	t := texttab.NewTable(texttab.R("MB"), texttab.R("bounds"), texttab.L("resident"), texttab.L("wired"), texttab.F("rests on"))
	for _, x := range m.Items {
		wired := ""
		if x.Wired {
			wired = "yes"
		}
		t.Row(mega(x.Bytes), between(mega(x.Lo), mega(x.Hi)), x.Name, wired, x.Source)
	}
	t.Rule()
	t.Row(mega(m.ResidentBytes), between(mega(m.ResidentLo), mega(m.ResidentHi)), "sum")
	p.Table(t)
	p.Line("wired %s MB; download %s MB, of it %s MB tables", mega(m.WiredBytes), mega(m.DownloadBytes), mega(m.DiskTables))
}

func (r *Request) drafts(p *texttab.Page) {
	x := r.Speculated
	even := "never even"
	if x.BreakEven != nil {
		even = fmt.Sprintf("even at %s acceptance per position", pct(*x.BreakEven))
	}
	p.Line("%s per cycle: %s tokens in %s ms, verify %s ms (%s): %s tok/s (90%%: %s), %s times plain decode; %s", plural(r.Drafts, "draft"), sig(x.TokensPerCycle),
		milli(x.CycleS), milli(x.VerifyS), msRange(x.VerifyRange), sig(x.TokPerSec), between(sig(x.Range.Lo), sig(x.Range.Hi)), sig(x.Gain), even)
	p.Line("verify calls: %s", x.Basis)
}

func (r *Request) answer() string {
	rate, span := r.Decode.TokPerSec, r.Decode.Range
	if r.Speculated != nil {
		rate, span = r.Speculated.TokPerSec, r.Speculated.Range
	}
	return fmt.Sprintf("first token %s ms (%s), then %s tok/s (%s), %s MB resident (%s)", milli(r.First.TimeS), msRange(r.First.TimeRange), sig(rate),
		between(sig(span.Lo), sig(span.Hi)), mega(r.Memory.ResidentBytes), between(mega(r.Memory.ResidentLo), mega(r.Memory.ResidentHi)))
}

type requestDocument struct {
	Made
	Source
	Layout     string             `json:"layout"`
	Context    int                `json:"context"`
	TokPerSec  float64            `json:"tok_per_s"`
	Range      anesim.Range       `json:"tok_per_s_range90"`
	Basis      string             `json:"basis"`
	Prompt     int                `json:"prompt_tokens"`
	First      anesim.Prefill     `json:"first_token"`
	Memory     anesim.Memory      `json:"memory"`
	Drafts     int                `json:"drafts"`
	Speculated *anesim.Speculated `json:"speculation"` // null without drafts
	Energy     anesim.Energy      `json:"energy"`
}

// Document is all parts.
func (r *Request) Document() any {
	d := requestDocument{r.Made, r.Source, r.Plan.Layout.String(), r.Decode.Context, r.Decode.TokPerSec, r.Decode.Range, r.Decode.Basis, r.Tokens, r.First, r.Memory,
		r.Drafts, r.Speculated, r.Energy}
	d.First.Notes = append([]string{}, r.First.Notes...)
	return d
}

// Header of the records.
func (r *Request) Header() []string {
	return []string{"what", "part", "value", "lo", "hi", "unit", "source"}
}

// Records are the parts.
func (r *Request) Records() [][]string {
	var all [][]string
	for _, x := range r.First.Parts {
		all = append(all, []string{"first_token", x.Name, exact(x.TimeS), exact(x.Range.Lo), exact(x.Range.Hi), "s", x.Source})
	}
	for _, x := range r.Memory.Items {
		all = append(all, []string{"memory", x.Name, fmt.Sprint(x.Bytes), fmt.Sprint(x.Lo), fmt.Sprint(x.Hi), "bytes", x.Source})
	}
	if x := r.Speculated; x != nil {
		all = append(all, []string{"speculation", "rate", exact(x.TokPerSec), exact(x.Range.Lo), exact(x.Range.Hi), "tok/s", x.Basis})
	}
	e := &r.Energy
	return append(all, []string{"energy", "token", exact(e.JoulesPerToken), exact(e.Range.Lo), exact(e.Range.Hi), "J", e.Provenance},
		[]string{"decode", "rate", exact(r.Decode.TokPerSec), exact(r.Decode.Range.Lo), exact(r.Decode.Range.Hi), "tok/s", r.Decode.Basis})
}
