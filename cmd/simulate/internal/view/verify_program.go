package view

import (
	"fmt"
	"strings"

	"anelab/cmd/simulate/internal/proof"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/parity"
)

// VerifyProgram is recorded calls of one program, held against another program or against expected outputs.
type VerifyProgram struct {
	Made      Made
	Precision string
	Inputs    string // file
	Expect    string // file; "" without
	Result    *proof.ProgramResult
}

// OK reports whether everything held.
func (r *VerifyProgram) OK() bool { return r.Result.OK() }

// Page shows outputs with their worst case, then where the first difference is.
func (r *VerifyProgram) Page(p *texttab.Page) {
	x := r.Result
	p.Head(x.Got+" and "+x.Want, plural(len(x.Cases), "case"), "precision "+r.Precision)
	if len(x.Outputs) > 0 {
		p.Table(r.outputs())
	} else {
		r.ops(p)
	}
	if c := x.First(); c != nil {
		r.parting(p, c)
	}
	p.Gap()
	if r.OK() {
		p.Yes("yes: %s in %s", r.claim(), plural(x.Compared(), "tensor"))
	} else {
		p.No("no: %s", r.denial())
	}
}

func (r *VerifyProgram) outputs() *texttab.Table {
	t := texttab.NewTable(texttab.L("output"), texttab.R("cases"), texttab.R("max |Δ|"), texttab.R("of peak"), texttab.R("rel rms"), texttab.R("allowed"),
		texttab.L("worst in"), texttab.L(""))
	for i := range r.Result.Outputs {
		o := &r.Result.Outputs[i]
		verdict := "ok"
		switch {
		case !o.OK:
			verdict = "NO"
		case o.Free > 0:
			verdict = fmt.Sprintf("ok, %d free", o.Free)
		}
		t.Row(o.Name, fmt.Sprint(o.Cases), short(o.Worst.MaxAbs), short(o.Worst.PeakRel()), short(o.Worst.RelRMS), limits(o.Tolerance), o.WorstIn, verdict)
	}
	return t
}

// limits are what an output is held to, in short.
func limits(t parity.Tolerance) string {
	if t.Exact() && t.MaxRelRMS == 0 {
		return "exact"
	}
	var parts []string
	for _, l := range []struct {
		value float64
		form  string
	}{{t.Abs, "%.2g"}, {t.Rel, "%.2g·|x|"}, {t.PeakRel, "%.2g·peak"}, {t.MaxRelRMS, "rms %.2g"}} {
		if l.value > 0 {
			parts = append(parts, fmt.Sprintf(l.form, l.value))
		}
	}
	if t.MaxULP > 0 {
		parts = append(parts, fmt.Sprintf("%d ulp", t.MaxULP))
	}
	return strings.Join(parts, "+")
}

// ops says how many ops were compared, case by case.
func (r *VerifyProgram) ops(p *texttab.Page) {
	for i := range r.Result.Cases {
		c := &r.Result.Cases[i]
		text := fmt.Sprintf("%s: %s compared op by op, %d identical", caseName(c), plural(c.Report.Compared, "tensor"), c.Report.Identical)
		if n := c.Report.OnlyGot + c.Report.OnlyWant; n > 0 {
			text += fmt.Sprintf("; without a counterpart: %s in %s, %d in %s", plural(c.Report.OnlyGot, "op"), r.Result.Got, c.Report.OnlyWant, r.Result.Want)
		}
		p.Line("%s", text)
	}
}

func caseName(c *proof.ProgramCase) string {
	if c.Name == "" {
		return c.Function
	}
	return c.Name
}

// parting shows the first tensor out of tolerance.
func (r *VerifyProgram) parting(p *texttab.Page, c *proof.ProgramCase) {
	f := c.Report.First
	p.Gap()
	p.No("first parts at %s", place(c, f))
	p.Line("%s", f.Err.Error())
	_, values, _ := strings.Cut(f.Detail, "\n") // its first line is the error
	if values != "" {
		p.Verbatim(values)
	}
}

// place says where a parting is: tensor, op, layer, function, case.
func place(c *proof.ProgramCase, f *parity.ProgramParting) string {
	text := f.Name
	if f.Other != "" {
		text += " (there " + f.Other + ")"
	}
	text += ", " + f.Op
	if f.Layer >= 0 {
		text += fmt.Sprintf(" of layer %d", f.Layer)
	}
	text += ", function " + c.Function
	if c.Name != "" {
		text += ", case " + c.Name
	}
	return text
}

func (r *VerifyProgram) claim() string {
	if r.Expect != "" {
		return r.Result.Got + " computes what is expected"
	}
	return r.Result.Got + " computes what " + r.Result.Want + " does"
}

func (r *VerifyProgram) denial() string {
	c := r.Result.First()
	if c == nil {
		return "there is no tensor to compare"
	}
	return fmt.Sprintf("%s and %s part at %s", r.Result.Got, r.Result.Want, place(c, c.Report.First))
}

type verifyProgramDocument struct {
	Made
	Got       string                `json:"got"`
	Want      string                `json:"want"`
	Precision string                `json:"precision"`
	Inputs    string                `json:"inputs"`
	Expect    string                `json:"expect"` // "" without expected outputs
	OK        bool                  `json:"ok"`
	Cases     []programCaseDocument `json:"cases"`
	Outputs   []outputDocument      `json:"outputs"` // over all cases; empty where two programs are compared op by op
	First     *partingDocument      `json:"first"`
}

type programCaseDocument struct {
	Case      string `json:"case"`
	Function  string `json:"function"`
	OK        bool   `json:"ok"`
	Compared  int    `json:"tensors_compared"`
	Identical int    `json:"tensors_identical"`
	Partings  int    `json:"tensors_out_of_tolerance"`
	OnlyGot   int    `json:"only_got"`
	OnlyWant  int    `json:"only_want"`
}

type outputDocument struct {
	Tensor    string            `json:"tensor"`
	Compared  int               `json:"compared"`
	Free      int               `json:"free"` // not judged: near ties
	MaxAbs    number            `json:"max_abs"`
	OfPeak    number            `json:"max_rel_to_peak"`
	MaxULP    int64             `json:"max_ulp"`
	Cosine    number            `json:"cosine"`
	RelRMS    number            `json:"rel_rms"`
	WorstIn   string            `json:"worst_in"`
	Tolerance toleranceDocument `json:"tolerance"`
	OK        bool              `json:"ok"`
}

// Document is everything that was compared.
func (r *VerifyProgram) Document() any {
	x := r.Result
	d := verifyProgramDocument{Made: r.Made, Got: x.Got, Want: x.Want, Precision: r.Precision, Inputs: r.Inputs, Expect: r.Expect, OK: r.OK(),
		Cases: []programCaseDocument{}, Outputs: []outputDocument{}}
	for i := range x.Cases {
		c := &x.Cases[i]
		d.Cases = append(d.Cases, programCaseDocument{Case: c.Name, Function: c.Function, OK: c.Report.First == nil, Compared: c.Report.Compared,
			Identical: c.Report.Identical, Partings: c.Report.Partings, OnlyGot: c.Report.OnlyGot, OnlyWant: c.Report.OnlyWant})
	}
	for i := range x.Outputs {
		o := &x.Outputs[i]
		d.Outputs = append(d.Outputs, outputDocument{Tensor: o.Name, Compared: o.Cases, Free: o.Free, MaxAbs: number(o.Worst.MaxAbs), OfPeak: number(o.Worst.PeakRel()),
			MaxULP: o.Worst.MaxULP, Cosine: number(o.Worst.Cosine), RelRMS: number(o.Worst.RelRMS), WorstIn: o.WorstIn, Tolerance: toleranceOf(o.Tolerance), OK: o.OK})
	}
	if c := x.First(); c != nil {
		f := c.Report.First
		w := &f.Err.Difference
		d.First = &partingDocument{Case: c.Name, Tensor: f.Name, Op: f.Op, Layer: f.Layer, Chunk: x.Got, Reason: f.Err.Error(), MaxAbs: number(w.MaxAbs),
			MaxULP: w.MaxULP, Cosine: number(w.Cosine), Argmax: w.Argmax.String()}
	}
	return d
}

// Header of the records.
func (r *VerifyProgram) Header() []string {
	return []string{"got", "want", "case", "function", "tensor", "compared", "identical", "max_abs", "rel_rms", "ok"}
}

// Records are the outputs over all cases, or the cases where two programs are compared op by op.
func (r *VerifyProgram) Records() [][]string {
	var all [][]string
	x := r.Result
	for i := range x.Outputs {
		o := &x.Outputs[i]
		all = append(all, []string{x.Got, x.Want, o.WorstIn, "", o.Name, fmt.Sprint(o.Cases), "", exact(o.Worst.MaxAbs), exact(o.Worst.RelRMS), fmt.Sprint(o.OK)})
	}
	for i := range x.Cases {
		if c := &x.Cases[i]; len(x.Outputs) == 0 {
			all = append(all, []string{x.Got, x.Want, c.Name, c.Function, "", fmt.Sprint(c.Report.Compared), fmt.Sprint(c.Report.Identical), "", "",
				fmt.Sprint(c.Report.First == nil)})
		}
	}
	return all
}

// Claims are the cases, and the outputs over all of them.
func (r *VerifyProgram) Claims() []Claim {
	var all []Claim
	for i := range r.Result.Cases {
		c := &r.Result.Cases[i]
		one := Claim{Group: r.Result.Got, Name: caseName(c) + " (" + c.Function + ")"}
		if f := c.Report.First; f != nil {
			one.Failure, one.Detail = "parts at "+place(c, f), f.Detail
		}
		all = append(all, one)
	}
	return all
}
