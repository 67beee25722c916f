package view

import (
	"fmt"
	"strings"

	"anelab/cmd/simulate/internal/texttab"
	"anelab/speculate"
)

// Draft is texts decoded with drafts.
type Draft struct {
	Made       Made
	Checkpoint string
	Layers     int
	Layout     string // "" = the model in one piece
	Mode       string
	Drafter    string
	Verify     string
	Drafts     int // per call
	Prompt     int // tokens of each text
	Tokens     int // decoded behind it

	profile speculate.Profile
	counts  speculate.Counts
	parted  []int // by text: where it first differs from plain decoding; Tokens where it does not
	exits   []speculate.Exit
}

// Add files one text.
func (r *Draft) Add(p speculate.Profile, c speculate.Counts, parted int) {
	r.profile.Add(p)
	r.counts.Add(c)
	r.parted = append(r.parted, parted)
}

// AddExits files the probe of one text.
func (r *Draft) AddExits(exits []speculate.Exit) {
	for i, e := range exits {
		if i == len(r.exits) {
			r.exits = append(r.exits, speculate.Exit{Layers: e.Layers})
		}
		r.exits[i].Match += e.Match
		r.exits[i].Of += e.Of
	}
}

// same is how many texts are those of plain decoding.
func (r *Draft) same() int {
	n := 0
	for _, p := range r.parted {
		if p == r.Tokens {
			n++
		}
	}
	return n
}

// OK reports whether clean calls kept every text. The other modes may lose some: that is what they are for.
func (r *Draft) OK() bool { return r.Verify != string(speculate.Clean) || r.same() == len(r.parted) }

// Page shows acceptance by position, then what rows chose otherwise.
func (r *Draft) Page(p *texttab.Page) {
	p.Head(r.Checkpoint, fmt.Sprintf("%d layers", r.Layers), "mode "+r.Mode)
	if len(r.exits) > 0 {
		p.Gap()
		r.probe(p)
		return
	}
	where := r.Layout
	if where == "" {
		where = "the model in one piece"
	}
	p.Line("%s drafts up to %d tokens, verify is %s: %s", r.Drafter, r.Drafts, r.Verify, where)
	p.Gap()
	t := texttab.NewTable(texttab.R("draft"), texttab.R("reached"), texttab.R("proposed"), texttab.R("accepted"), texttab.R("of reached"))
	for i, share := range r.profile.Acceptance() {
		t.Row(fmt.Sprint(i+1), fmt.Sprint(r.profile.Reached[i]), fmt.Sprint(r.profile.Proposed[i]), fmt.Sprint(r.profile.Accepted[i]), pct(share))
	}
	p.Table(t)
	p.Gap()
	r.differences(p)
	p.Line("priced by: simulate request LAYOUT --drafts %d --accept %s", r.Drafts, r.accept())
	p.Gap()
	p.Answer("%s tokens per call; %d of %s as plain decoding writes them", sig(r.profile.TokensPerCall()), r.same(), plural(len(r.parted), "text"))
}

// differences names rows that chose otherwise than clean rows on the same tokens, and the texts that parted.
func (r *Draft) differences(p *texttab.Page) {
	var rows []string
	differ := 0
	for i, n := range r.counts.Rows {
		rows = append(rows, fmt.Sprintf("%d/%d", r.counts.Differ[i], n))
		differ += r.counts.Differ[i]
	}
	if differ > 0 {
		p.Line("rows that choose otherwise than clean ones, by place in the call: %s", strings.Join(rows, ", "))
	}
	if r.same() == len(r.parted) {
		return
	}
	first := r.Tokens
	for _, n := range r.parted {
		first = min(first, n)
	}
	p.Line("the first text to part does so at token %d of %d", first+1, r.Tokens)
}

// accept is the profile as --accept of request takes it.
func (r *Draft) accept() string {
	var all []string
	for _, a := range r.profile.Acceptance() {
		all = append(all, fmt.Sprintf("%.2f", a))
	}
	return strings.Join(all, ",")
}

// probe lists the layers behind which the head was asked.
func (r *Draft) probe(p *texttab.Page) {
	t := texttab.NewTable(texttab.R("layers"), texttab.R("same token"), texttab.R("of"), texttab.R("share"))
	for _, e := range r.exits {
		t.Row(fmt.Sprint(e.Layers), fmt.Sprint(e.Match), fmt.Sprint(e.Of), pct(float64(e.Match)/float64(e.Of)))
	}
	p.Table(t)
	p.Gap()
	half := r.exits[len(r.exits)/2-1]
	p.Answer("%s of tokens after half the layers: what a chain of one LayerSkip draft would have accepted", pct(float64(half.Match)/float64(half.Of)))
}

type draftDocument struct {
	Made
	Checkpoint    string            `json:"checkpoint"`
	Layout        string            `json:"layout"` // "" = the model in one piece
	Mode          string            `json:"mode"`
	Drafter       string            `json:"drafter"`
	Verify        string            `json:"verify"`
	Drafts        int               `json:"drafts"`
	PromptTokens  int               `json:"prompt_tokens"`
	Tokens        int               `json:"tokens"`
	Acceptance    []float64         `json:"acceptance"` // by position, as request takes it
	TokensPerCall float64           `json:"tokens_per_call"`
	Profile       speculate.Profile `json:"profile"`
	Rows          speculate.Counts  `json:"rows_against_clean"`
	Parted        []int             `json:"parted_at"` // by text; tokens where it did not
	Same          int               `json:"texts_same"`
	Exits         []speculate.Exit  `json:"exits"`
}

// Document is everything that was counted.
func (r *Draft) Document() any {
	return draftDocument{r.Made, r.Checkpoint, r.Layout, r.Mode, r.Drafter, r.Verify, r.Drafts, r.Prompt, r.Tokens, r.profile.Acceptance(), r.profile.TokensPerCall(),
		speculate.Profile{Calls: r.profile.Calls, Verifies: r.profile.Verifies, Reached: filled(r.profile.Reached), Proposed: filled(r.profile.Proposed), Accepted: filled(r.profile.Accepted)},
		speculate.Counts{Rows: filled(r.counts.Rows), Differ: filled(r.counts.Differ)}, filled(r.parted), r.same(), append([]speculate.Exit{}, r.exits...)}
}

// filled is an empty list rather than none.
func filled(x []int) []int { return append([]int{}, x...) }

// Header of the records.
func (r *Draft) Header() []string {
	return []string{"what", "position", "reached", "proposed", "accepted"}
}

// Records are the positions of drafts, the rows of verify calls, and the exits.
func (r *Draft) Records() [][]string {
	var all [][]string
	for i := range r.profile.Reached {
		all = append(all, []string{"draft", fmt.Sprint(i + 1), fmt.Sprint(r.profile.Reached[i]), fmt.Sprint(r.profile.Proposed[i]), fmt.Sprint(r.profile.Accepted[i])})
	}
	for i, n := range r.counts.Rows {
		all = append(all, []string{"row", fmt.Sprint(i + 1), fmt.Sprint(n), fmt.Sprint(n), fmt.Sprint(n - r.counts.Differ[i])})
	}
	for _, e := range r.exits {
		all = append(all, []string{"exit", fmt.Sprint(e.Layers), fmt.Sprint(e.Of), fmt.Sprint(e.Of), fmt.Sprint(e.Match)})
	}
	return all
}
