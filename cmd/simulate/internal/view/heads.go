package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"anelab/attention"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/gemma4"
	"anelab/quality"
	"anelab/swa"
)

// Heads is what a search for retrieval heads found, or what a pattern file says.
type Heads struct {
	Made       Made
	Checkpoint string
	Layers     []gemma4.Layer
	Pattern    string              // where policies come from, when not from a search
	Report     *quality.HeadReport // nil with a pattern
	Policies   map[int]attention.Policy
}

// Page is the heads, how many are needed, and the policies that follow.
func (r *Heads) Page(p *texttab.Page) {
	if r.Report == nil {
		p.Head(r.Checkpoint, fmt.Sprintf("%d layers", len(r.Layers)), "pattern "+r.Pattern)
	} else {
		p.Head(r.Checkpoint, fmt.Sprintf("%d layers", len(r.Layers)), plural(r.Report.Sequences, "sequence"), "streaming "+strings.TrimPrefix(r.Report.Streaming.String(), "stream:"))
		r.found(p)
	}
	p.Gap()
	r.savings(p)
	p.Gap()
	p.Answer("%s", r.attn())
}

// found is a line per head, and one per number of heads kept.
func (r *Heads) found(p *texttab.Page) {
	x := r.Report
	p.Line("recall at a distance: %s %% with every head full, %s %% with all streaming", percents(x.AllFull), percents(x.NoneFull))
	p.Gap()
	t := texttab.NewTable(texttab.L("layer.head"), texttab.R("% if it alone streams"), texttab.R("% if it alone is full"), texttab.R("mass on the value"))
	for _, h := range x.Heads {
		t.Row(fmt.Sprintf("%d.%d", h.Layer, h.Head), percents(h.Alone), percents(h.Only), fmt.Sprintf("%.3f", h.Mass))
	}
	p.Table(t)
	p.Gap()
	t = texttab.NewTable(texttab.R("heads kept full"), texttab.L("added"), texttab.R("recall %"), texttab.R("ppl"))
	for _, k := range x.Kept {
		added := "–"
		if k.Layer >= 0 {
			added = fmt.Sprintf("%d.%d", k.Layer, k.Head)
		}
		t.Row(fmt.Sprint(k.Heads), added, percents(k.Far), sig4(k.PPL))
	}
	p.Table(t)
}

// savings says of every stored layer what its readers leave of it.
func (r *Heads) savings(p *texttab.Page) {
	t := texttab.NewTable(texttab.L("rows of layer"), texttab.L("read by"), texttab.L("kept"), texttab.F("because"))
	for _, y := range r.Layers {
		if y.Kind != gemma4.Full || !y.OwnsKV() {
			continue
		}
		kept, readers, why := r.store(y)
		t.Row(fmt.Sprint(y.Index), readers, kept.String(), why)
	}
	p.Table(t)
}

// store is what an owner must keep, who reads it, and whose doing that is.
func (r *Heads) store(owner gemma4.Layer) (kept swa.Retention, readers, why string) {
	kept, why = r.policy(owner).Keep(), "every head that reads it streams"
	var names, blame []string
	for _, y := range r.Layers {
		if y.KVSource != owner.Index {
			continue
		}
		p := r.policy(y)
		kept = kept.Union(p.Keep())
		names = append(names, fmt.Sprint(y.Index))
		if p.Keep() == swa.All {
			blame = append(blame, fmt.Sprint(y.Index))
		}
	}
	if len(blame) > 0 {
		why = "a head of layer " + strings.Join(blame, ", ") + " sees everything; heads that stream only save products"
	}
	return kept, strings.Join(names, ", "), why
}

func (r *Heads) policy(y gemma4.Layer) attention.Policy {
	if p, ok := r.Policies[y.Index]; ok {
		return p
	}
	return y.Policy()
}

// attn is the policies as settings of a layout.
func (r *Heads) attn() string {
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(r.Policies)) {
		if p := r.Policies[l]; p != (attention.Full{}) {
			parts = append(parts, fmt.Sprintf("@%d attn=%s", l, p))
		}
	}
	if len(parts) == 0 {
		return "every head must stay full"
	}
	return strings.Join(parts, " ")
}

type headDocument struct {
	Layer int     `json:"layer"`
	Head  int     `json:"head"`
	Alone float64 `json:"recall_far_if_only_it_streams"`
	Only  float64 `json:"recall_far_if_only_it_is_full"`
	Mass  float64 `json:"mass_on_value"`
}

type keptDocument struct {
	Heads int     `json:"heads_full"`
	Layer int     `json:"added_layer"` // −1 for none
	Head  int     `json:"added_head"`
	Far   float64 `json:"recall_far"`
	PPL   float64 `json:"ppl"`
}

type storeDocument struct {
	Layer   int    `json:"layer"`
	Readers string `json:"readers"`
	Kept    string `json:"kept"`
}

type headsDocument struct {
	Made
	Checkpoint string          `json:"checkpoint"`
	Pattern    string          `json:"pattern"`
	AllFull    *float64        `json:"recall_far_all_full"`
	NoneFull   *float64        `json:"recall_far_all_stream"`
	Heads      []headDocument  `json:"heads"`
	Kept       []keptDocument  `json:"kept"`
	Attn       string          `json:"attn"`
	Stores     []storeDocument `json:"stores"`
}

// Document is everything.
func (r *Heads) Document() any {
	d := headsDocument{Made: r.Made, Checkpoint: r.Checkpoint, Pattern: r.Pattern, Heads: []headDocument{}, Kept: []keptDocument{}, Attn: r.attn(), Stores: []storeDocument{}}
	if x := r.Report; x != nil {
		d.AllFull, d.NoneFull = counted(x.AllFull), counted(x.NoneFull)
		for _, h := range x.Heads {
			d.Heads = append(d.Heads, headDocument{h.Layer, h.Head, h.Alone, h.Only, h.Mass})
		}
		for _, k := range x.Kept {
			d.Kept = append(d.Kept, keptDocument{k.Heads, k.Layer, k.Head, k.Far, k.PPL})
		}
	}
	for _, y := range r.Layers {
		if y.Kind == gemma4.Full && y.OwnsKV() {
			kept, readers, _ := r.store(y)
			d.Stores = append(d.Stores, storeDocument{y.Index, readers, kept.String()})
		}
	}
	return d
}

// Header of the records.
func (r *Heads) Header() []string {
	return []string{"layer", "head", "recall_far_if_only_it_streams", "recall_far_if_only_it_is_full", "mass_on_value"}
}

// Records are the heads; none with a pattern.
func (r *Heads) Records() [][]string {
	var all [][]string
	if r.Report == nil {
		return all
	}
	for _, h := range r.Report.Heads {
		all = append(all, []string{fmt.Sprint(h.Layer), fmt.Sprint(h.Head), exact(h.Alone), exact(h.Only), exact(h.Mass)})
	}
	return all
}
