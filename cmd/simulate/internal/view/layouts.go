package view

import (
	"strings"

	"anelab/attention"
	"anelab/cmd/simulate/internal/texttab"
)

// NamedLayout is a preset as it comes out on a model.
type NamedLayout struct {
	Name        string `json:"name"`
	Layout      string `json:"layout"`
	Description string `json:"description"`
	Source      string `json:"source"`
}

// Layouts is the list of presets.
type Layouts struct {
	Made    Made
	Model   string
	Layers  int
	Layouts []NamedLayout
}

// Page is one line per preset, and how to write another.
func (r *Layouts) Page(p *texttab.Page) {
	p.Head(r.Model, plural(r.Layers, "layer"))
	p.Gap()
	t := texttab.NewTable(texttab.L("name"), texttab.L("layout"), texttab.F("what it is"))
	for _, l := range r.Layouts {
		t.Row(l.Name, l.Layout, l.Description)
	}
	p.Table(t)
	p.Gap()
	p.Line("Your own: chunks of layers between bars, the head in the last one. Settings follow: w=int4g32 per chunk, attn=… and context=… at the end.")
	p.Line("attn=POLICY is for all full layers, @9 attn=POLICY for one: %s. Behind a slash, how rows are stored: full/int8, full/kivi:2, full/palu:128, full/like:4.", strings.Join(attention.Examples(), ", "))
}

// Document is the list.
func (r *Layouts) Document() any {
	return struct {
		Made
		Model   string        `json:"model"`
		Layers  int           `json:"layers"`
		Layouts []NamedLayout `json:"layouts"`
	}{r.Made, r.Model, r.Layers, r.Layouts}
}

// Header of the records.
func (r *Layouts) Header() []string { return []string{"name", "layout", "description", "source"} }

// Records are the presets.
func (r *Layouts) Records() [][]string {
	var all [][]string
	for _, l := range r.Layouts {
		all = append(all, []string{l.Name, l.Layout, l.Description, l.Source})
	}
	return all
}
