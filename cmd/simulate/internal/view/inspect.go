package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anelab/cmd/simulate/internal/texttab"
	"anelab/coreml/census"
	"anelab/coreml/mil"
)

// Inspect is what a Core ML model consists of.
type Inspect struct {
	Made        Made
	Path        string
	Form        string // "package" or "compiled"
	Program     *mil.Program
	Description *mil.Description // nil if a compiled model has none that can be read
}

// portRow is one input, state or output of a function.
type portRow struct{ kind, name, typ, note string }

// Page shows functions with their ports and ops, then the weights of all of them.
func (r *Inspect) Page(p *texttab.Page) {
	p.Head(r.Path, r.form(), plural(len(r.Program.Functions), "function"))
	for _, f := range r.Program.Functions {
		p.Gap()
		p.Line("%s  opset %s, %s", f.Name, f.Opset.Text(), plural(len(opsOf(f)), "op"))
		t := texttab.NewTable(texttab.L("port"), texttab.L("name"), texttab.F("type"))
		for _, row := range ports(f) {
			t.Row(row.kind, row.name, strings.TrimSpace(row.typ+" "+row.note))
		}
		p.Table(t)
		p.Gap()
		p.Line("ops: %s", counts(f))
	}
	p.Gap()
	r.weights(p)
	if rows := r.metadata(); len(rows) > 0 {
		p.Gap()
		t := texttab.NewTable(texttab.L("metadata"), texttab.F(""))
		for _, row := range rows {
			t.Row(row[0], row[1])
		}
		p.Table(t)
	}
}

func (r *Inspect) form() string {
	if r.Program.SpecVersion == 0 {
		return r.Form
	}
	return fmt.Sprintf("%s, specification %d", r.Form, r.Program.SpecVersion)
}

// opsOf are the ops of a function that compute.
func opsOf(f *mil.Function) (ops []*mil.Op) {
	for op := range f.Body.All() {
		if op.Type != "const" && !op.IsConstexpr() {
			ops = append(ops, op)
		}
	}
	return ops
}

// counts lists op types, each with how often it occurs.
func counts(f *mil.Function) string {
	var parts []string
	for _, c := range census.Ops(f) {
		parts = append(parts, fmt.Sprintf("%d %s", c.Ops, c.Type))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// ports are the inputs, states and outputs of a function.
func ports(f *mil.Function) []portRow {
	var rows []portRow
	for _, in := range f.Inputs {
		kind := "input"
		if in.Type.Kind == mil.State {
			kind = "state"
		}
		rows = append(rows, portRow{kind, in.Name, typeText(in.Type), flexible(in.Flexible)})
	}
	// An output without a definition is a fault that opening the model has found already.
	results, _ := f.Results()
	for _, out := range results {
		rows = append(rows, portRow{"output", out.Name, typeText(out.Type), ""})
	}
	return rows
}

// typeText is a type as people write it: fp16 [1, 64].
func typeText(t mil.Type) string {
	if held, ok := t.AsTensor(); ok {
		return held.DType.String() + " " + mil.ShapeString(held.Shape)
	}
	return t.String()
}

// flexible says which other shapes a port takes.
func flexible(f *mil.Flexible) string {
	switch {
	case f == nil:
		return ""
	case len(f.Enumerated) > 0:
		return fmt.Sprintf("(one of %d shapes)", len(f.Enumerated))
	}
	var parts []string
	for _, r := range f.Ranges {
		switch {
		case r.Max == mil.Unknown:
			parts = append(parts, fmt.Sprintf("%d…", r.Min))
		case r.Min == r.Max:
			parts = append(parts, fmt.Sprint(r.Min))
		default:
			parts = append(parts, fmt.Sprintf("%d…%d", r.Min, r.Max))
		}
	}
	return "(" + strings.Join(parts, " × ") + ")"
}

// shares are the weights of all functions by encoding.
func (r *Inspect) shares() []census.Share {
	var all []census.Weight
	for _, f := range r.Program.Functions {
		all = append(all, census.Weights(f)...)
	}
	return census.Tally(all)
}

func (r *Inspect) weights(p *texttab.Page) {
	shares := r.shares()
	if len(shares) == 0 {
		p.Line("no weights besides what the program's text holds")
		return
	}
	t := texttab.NewTable(texttab.L("weights"), texttab.R("tensors"), texttab.R("elements"), texttab.R("bytes"))
	var sum census.Share
	for _, s := range shares {
		t.Row(s.Encoding, fmt.Sprint(s.Weights), fmt.Sprint(s.Elements), fmt.Sprint(s.Bytes))
		sum.Weights, sum.Elements, sum.Bytes = sum.Weights+s.Weights, sum.Elements+s.Elements, sum.Bytes+s.Bytes
	}
	t.Rule()
	t.Row("all", fmt.Sprint(sum.Weights), fmt.Sprint(sum.Elements), fmt.Sprint(sum.Bytes))
	p.Table(t)
}

// metadata are the texts that the model carries, those that are empty left out.
func (r *Inspect) metadata() [][2]string {
	if r.Description == nil {
		return nil
	}
	m := r.Description.Metadata
	rows := [][2]string{{"description", m.Doc}, {"version", m.Version}, {"author", m.Author}, {"license", m.License}, {"default function", r.Description.DefaultFunction}}
	for _, u := range m.UserDefined {
		rows = append(rows, [2]string{u.Key, u.Value})
	}
	return slices.DeleteFunc(rows, func(row [2]string) bool { return row[1] == "" })
}

type inspectDocument struct {
	Made
	Path        string             `json:"path"`
	Form        string             `json:"form"`
	SpecVersion int                `json:"specification_version"`
	Functions   []functionDocument `json:"functions"`
	Weights     []weightsDocument  `json:"weights"`
	Metadata    map[string]string  `json:"metadata"`
}

type functionDocument struct {
	Name    string            `json:"name"`
	Opset   string            `json:"opset"`
	Inputs  []featureDocument `json:"inputs"`
	States  []featureDocument `json:"states"`
	Outputs []featureDocument `json:"outputs"`
	Ops     []opCountDocument `json:"ops"`
}

type featureDocument struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Shape    []int64 `json:"shape"`           // −1: any
	Flexible string  `json:"flexible_shapes"` // "" if there is one
}

type opCountDocument struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
}

type weightsDocument struct {
	Encoding string `json:"encoding"`
	Tensors  int    `json:"tensors"`
	Elements int64  `json:"elements"`
	Bytes    int64  `json:"bytes"`
}

// Document is everything on the page.
func (r *Inspect) Document() any {
	d := inspectDocument{Made: r.Made, Path: r.Path, Form: r.Form, SpecVersion: r.Program.SpecVersion, Functions: []functionDocument{},
		Weights: []weightsDocument{}, Metadata: map[string]string{}}
	for _, f := range r.Program.Functions {
		d.Functions = append(d.Functions, functionOf(f))
	}
	for _, s := range r.shares() {
		d.Weights = append(d.Weights, weightsDocument{s.Encoding, s.Weights, s.Elements, s.Bytes})
	}
	for _, row := range r.metadata() {
		d.Metadata[row[0]] = row[1]
	}
	return d
}

func functionOf(f *mil.Function) functionDocument {
	d := functionDocument{Name: f.Name, Opset: f.Opset.String(), Inputs: []featureDocument{}, States: []featureDocument{}, Outputs: []featureDocument{}, Ops: []opCountDocument{}}
	for _, in := range f.Inputs {
		if in.Type.Kind == mil.State {
			d.States = append(d.States, featureOf(in.Variable, in.Flexible))
		} else {
			d.Inputs = append(d.Inputs, featureOf(in.Variable, in.Flexible))
		}
	}
	results, _ := f.Results()
	for _, out := range results {
		d.Outputs = append(d.Outputs, featureOf(out, nil))
	}
	for _, c := range census.Ops(f) {
		d.Ops = append(d.Ops, opCountDocument{c.Type, c.Ops})
	}
	return d
}

func featureOf(v mil.Variable, f *mil.Flexible) featureDocument {
	d := featureDocument{Name: v.Name, Type: v.Type.String(), Shape: []int64{}, Flexible: flexible(f)}
	if held, ok := v.Type.AsTensor(); ok {
		d.Type, d.Shape = held.DType.String(), append(d.Shape, held.Shape...)
	}
	return d
}

// Header of the records: one for every port, op type and encoding.
func (r *Inspect) Header() []string {
	return []string{"function", "kind", "name", "type", "count", "elements", "bytes"}
}

// Records are the rows of all tables.
func (r *Inspect) Records() [][]string {
	var all [][]string
	for _, f := range r.Program.Functions {
		for _, row := range ports(f) {
			all = append(all, []string{f.Name, row.kind, row.name, row.typ, "", "", ""})
		}
		for _, c := range census.Ops(f) {
			all = append(all, []string{f.Name, "op", c.Type, "", fmt.Sprint(c.Ops), "", ""})
		}
	}
	for _, s := range r.shares() {
		all = append(all, []string{"", "weights", s.Encoding, "", fmt.Sprint(s.Weights), fmt.Sprint(s.Elements), fmt.Sprint(s.Bytes)})
	}
	return all
}
