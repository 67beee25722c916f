package view

import (
	"fmt"
	"slices"
	"strings"

	"anelab/cmd/simulate/internal/proof"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/gemma4"
	"anelab/parity"
)

// Verify is the proof of one checkpoint in one or more modes.
type Verify struct {
	Made       Made
	Checkpoint string
	Layers     int
	Layout     string
	Packages   []string // that were verified; nil without
	Results    []*proof.Result
}

// OK reports whether everything held.
func (r *Verify) OK() bool {
	for _, result := range r.Results {
		if !result.OK() {
			return false
		}
	}
	return true
}

// Page shows, mode by mode, what was compared, and answers for all of them.
func (r *Verify) Page(p *texttab.Page) {
	p.Head(r.Checkpoint, plural(r.Layers, "layer"), r.Layout)
	for _, result := range r.Results {
		p.Gap()
		p.Head("mode " + result.Mode)
		for _, w := range result.Weights {
			weights(p, w)
		}
		if result.Imported > 0 {
			p.Line("%s of more than 64 tokens: prefilled by the whole model, cache imported", plural(result.Imported, "prompt"))
		}
		for i := range result.Comparisons {
			comparison(p, &result.Comparisons[i])
		}
	}
	p.Gap()
	if r.OK() {
		p.Yes("yes: %s", r.claim())
	} else {
		p.No("no: %s", r.denial())
	}
}

// claim says what has been shown.
func (r *Verify) claim() string {
	var all []string
	for _, result := range r.Results {
		all = append(all, claimOf(result)+" in "+result.Mode)
	}
	return strings.Join(all, ", ")
}

// claimOf is the chain of equalities of one mode: graphs, chunks, the whole model, goldens.
func claimOf(result *proof.Result) string {
	var graphs []string
	sign, chunked, golden := " = ", "", ""
	for i := range result.Comparisons {
		switch c := &result.Comparisons[i]; {
		case c.Got == "chunks":
			chunked = "chunked = "
		case c.Target.Information != "":
		case c.Got == "whole":
			golden = " = golden"
		case !slices.Contains(graphs, c.Got):
			graphs = append(graphs, c.Got)
			if !c.Exact {
				sign = " ≈ "
			}
		}
	}
	switch {
	case len(graphs) > 0:
		return strings.Join(graphs, ", ") + sign + chunked + "whole" + golden
	case chunked == "":
		return "weights = checkpoint"
	}
	return chunked + "whole" + golden
}

// weights says what the weights of packages have in common with the checkpoint's.
func weights(p *texttab.Page, w *proof.Weights) {
	packages := plural(w.Packages, "package")
	if f := w.First; f != nil {
		p.No("weights of %s: %d of %d are not the checkpoint's, the first is %s", packages, w.Wrong, w.Dense+w.Others, f.Name)
		p.Line("stored as %s in %s", f.Stored, f.Package)
		p.Line("%s", f.Err.Error())
		return
	}
	text := fmt.Sprintf("weights of %s: %d equal to the checkpoint's in fp16", packages, w.Dense)
	if w.Others > 0 {
		text += fmt.Sprintf(", %d compressed, at most %s from it in relative rms (%s)", w.Others, sig(w.WorstRMS), w.Worst)
	}
	p.Line("%s", text)
}

// denial names the first tensor that parts.
func (r *Verify) denial() string {
	for _, result := range r.Results {
		for _, w := range result.Weights {
			if f := w.First; f != nil {
				return fmt.Sprintf("%s of the packages is not the checkpoint's", f.Name)
			}
		}
		for i := range result.Comparisons {
			c := &result.Comparisons[i]
			if c.OK() {
				continue
			}
			where := c.Got + " and " + c.Want
			switch {
			case c.First != nil:
				return fmt.Sprintf("in %s %s part at %s", result.Mode, where, c.First.Tensor)
			case c.Tokens != nil && c.Tokens.First != "":
				return fmt.Sprintf("in %s %s choose other tokens: %s", result.Mode, where, c.Tokens.First)
			case c.Taps == 0:
				return fmt.Sprintf("in %s %s have no tensor in common", result.Mode, where)
			}
			return fmt.Sprintf("in %s %s differ in more elements than ties explain", result.Mode, where)
		}
	}
	return ""
}

// comparison shows one pair of backends.
func comparison(p *texttab.Page, c *proof.Comparison) {
	if c.Exact && c.OK() {
		p.Line("%s = %s: %s of %s (%s), every element equal", c.Got, c.Want, plural(c.Taps, "tensor"), plural(len(c.Cases), "case"), strings.Join(c.Cases, ", "))
		return
	}
	p.Line("%s and %s: %s of %s (%s)", c.Got, c.Want, plural(c.Taps, "tensor"), plural(len(c.Cases), "case"), strings.Join(c.Cases, ", "))
	if c.Target.Information != "" {
		p.Line("for information: %s", c.Target.Information)
	}
	tensors(p, c)
	choices(p, c)
	if t := c.Tokens; t != nil {
		p.Line("%d of %d greedy tokens identical%s", t.Equal, t.Count, after(t.First))
	}
	if l := c.Loudness; l != nil {
		p.Line("rms of %d layers for %d tokens: within %s of the golden", l.Layers, l.Tokens, sig(l.MaxRel))
	}
	if f := c.First; f != nil && c.Target.Information == "" {
		parting(p, f)
	}
}

// after sets a remark off from what it is about.
func after(remark string) string {
	if remark == "" {
		return ""
	}
	return ": " + remark
}

func tensors(p *texttab.Page, c *proof.Comparison) {
	t := texttab.NewTable(texttab.L("tensor"), texttab.R("max |Δ|"), texttab.R("of peak"), texttab.R("allowed"), texttab.R("rel rms"), texttab.R("equal"),
		texttab.L("worst in"), texttab.L(""))
	for i := range c.Tensors {
		x := &c.Tensors[i]
		allowed, verdict := allowance(x.Tolerance), "ok"
		switch {
		case c.Target.Information != "":
			allowed, verdict = "–", ""
		case !x.OK:
			verdict = "NO"
		}
		worst := x.WorstIn
		if x.Equal == x.Elements {
			worst = ""
		}
		t.Row(string(x.Point), short(x.Worst.MaxAbs), short(x.Worst.PeakRel()), allowed, short(x.Worst.RelRMS), share(x.Equal, x.Elements), worst, verdict)
	}
	p.Table(t)
}

// choices says how often both sides choose the same token, and how close the closest call was.
func choices(p *texttab.Page, c *proof.Comparison) {
	i := slices.IndexFunc(c.Tensors, func(t proof.Tensor) bool { return t.Point == gemma4.PointLogits })
	if i < 0 {
		return
	}
	a := c.Tensors[i].Choices
	text := fmt.Sprintf("argmax of logits: %d of %s agree, %s; least margin %s", a.Agree, plural(a.Rows, "row"), plural(a.Ties, "tie"), sig(a.MinMargin))
	if a.FirstRow >= 0 {
		text += fmt.Sprintf("; first other choice %d for %d, which leads by %s", a.Got, a.Want, sig(a.Margin))
	}
	p.Line("%s", text)
}

// short is a figure of two digits: only its size matters.
func short(x float64) string {
	if x == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1e", x)
}

// share is a percentage that says 100 only when nothing is missing.
func share(n, of int) string {
	if n == of {
		return "100%"
	}
	return fmt.Sprintf("%.2f%%", min(100*float64(n)/float64(max(of, 1)), 99.99))
}

// allowance is the limit that a tensor is held to, in its own unit.
func allowance(t parity.Tolerance) string {
	switch {
	case t.Exact():
		return "exact"
	case t.MaxULP > 0:
		return fmt.Sprintf("%d ulp", t.MaxULP)
	case t.Abs > 0:
		return fmt.Sprintf("%g abs", t.Abs)
	}
	return fmt.Sprintf("%.0e", t.PeakRel)
}

// parting shows the first tensor out of tolerance, with the values around the fault.
func parting(p *texttab.Page, f *proof.Parting) {
	where := f.Case
	if f.Chunk != "" {
		where += ", " + f.Chunk
	}
	if f.Op != "" {
		where += ", " + f.Op
	}
	p.No("first parts at %s in %s", f.Tensor, where)
	p.Line("%s", f.Err.Error())
	_, values, _ := strings.Cut(f.Detail, "\n") // its first line is the error
	if values != "" {
		p.Verbatim(values)
	}
}

// Claims are the comparisons of every mode.
func (r *Verify) Claims() []Claim {
	var all []Claim
	for _, result := range r.Results {
		group := r.Checkpoint + " in " + result.Mode
		for _, w := range result.Weights {
			one := Claim{Group: group, Name: "weights = checkpoint"}
			if f := w.First; f != nil {
				one.Failure, one.Detail = fmt.Sprintf("%s is not the checkpoint's: %s in %s", f.Name, f.Stored, f.Package), f.Err.Error()
			}
			all = append(all, one)
		}
		for i := range result.Comparisons {
			all = append(all, claimFor(group, &result.Comparisons[i]))
		}
	}
	return all
}

func claimFor(group string, c *proof.Comparison) Claim {
	one := Claim{Group: group, Name: c.Got + " = " + c.Want}
	switch {
	case c.OK():
	case c.First != nil:
		one.Failure = "parts at " + c.First.Tensor + after(c.First.Op)
		one.Detail = c.First.Detail
	default:
		one.Failure = "more differs than the golden allows"
	}
	return one
}
