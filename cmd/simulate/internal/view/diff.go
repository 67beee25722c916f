package view

import (
	"fmt"
	"io"
	"math"

	"anelab/cmd/simulate/internal/contrast"
	"anelab/cmd/simulate/internal/texttab"
)

// Diff is two layouts side by side.
type Diff struct {
	Made   Made
	Source Source
	A, B   Plan
	Delta  contrast.Delta
	Limit  float64 // of B's slowness, NaN without one
}

// Exceeded reports whether B is slower than the limit allows.
func (r *Diff) Exceeded() bool { return r.Delta.Slower > r.Limit }

// Page shows where the time of both goes, and what the difference is worth.
func (r *Diff) Page(p *texttab.Page) {
	a, b := &r.A.Prediction, &r.B.Prediction
	p.Head(r.Source.head(r.contexts())...)
	p.Line("A  %s", r.A.Plan.Layout)
	p.Line("B  %s", r.B.Plan.Layout)
	p.Gap()
	t := texttab.NewTable(texttab.L("time in ms"), texttab.R("A"), texttab.R("B"), texttab.R("B − A"), texttab.L("90% range"))
	for _, res := range r.Delta.Resources {
		t.Row(res.Name, milli(res.A), milli(res.B), signed(res.Delta), "")
	}
	t.Rule()
	t.Row("per token", milli(a.TimeS), milli(b.TimeS), signed(r.Delta.TimeS), signed(r.Delta.TimeRange.Lo)+" … "+signed(r.Delta.TimeRange.Hi))
	t.Row("chunks", fmt.Sprint(len(a.Chunks)), fmt.Sprint(len(b.Chunks)), difference(len(b.Chunks)-len(a.Chunks)), "")
	t.Row("tok/s", sig(a.TokPerSec), sig(b.TokPerSec), plus("%+.3g", r.Delta.TokPerSec), "")
	p.Table(t)
	p.Gap()
	p.Answer("%s", r.answer())
	if !math.IsNaN(r.Limit) {
		if r.Exceeded() {
			p.No("no: slower by more than %s%%", sig(100*r.Limit))
		} else {
			p.Yes("yes: not slower by more than %s%%", sig(100*r.Limit))
		}
	}
	p.Line("basis: %s", a.Basis)
}

// contexts are one when both sides have the same.
func (r *Diff) contexts() string {
	a, b := r.A.Prediction.Context, r.B.Prediction.Context
	if a != b {
		return fmt.Sprintf("context %d (A), %d (B)", a, b)
	}
	return fmt.Sprintf("context %d", a)
}

// difference of counts.
func difference(n int) string {
	if n == 0 {
		return "0"
	}
	return plus("%+d", n)
}

func (r *Diff) answer() string {
	d := &r.Delta
	word, lo, hi := "slower", d.SlowerIn90.Lo, d.SlowerIn90.Hi
	if d.Slower < 0 {
		word, lo, hi = "faster", -hi, -lo
	}
	text := fmt.Sprintf("B is %s%% %s than A (90%%: %s to %s)", sig(100*math.Abs(d.Slower)), word, minus(sig(100*lo)), minus(sig(100*hi)))
	switch {
	case d.TimeS == 0:
		return "A and B take the same time"
	case !d.Certain:
		return text + ": no clear difference"
	}
	return text
}

// Document is both predictions and their difference.
func (r *Diff) Document() any {
	return struct {
		Made
		Source
		A     any            `json:"a"`
		B     any            `json:"b"`
		Delta contrast.Delta `json:"delta"`
	}{r.Made, r.Source, r.A.Document(), r.B.Document(), r.Delta}
}

// Header of the records.
func (r *Diff) Header() []string {
	return []string{"resource", "a_s", "b_s", "delta_s", "delta_lo90_s", "delta_hi90_s"}
}

// Records are the resources, then "token".
func (r *Diff) Records() [][]string {
	var all [][]string
	for _, x := range r.Delta.Resources {
		all = append(all, []string{x.Name, exact(x.A), exact(x.B), exact(x.Delta), "", ""})
	}
	d := &r.Delta
	return append(all, []string{"token", exact(r.A.Prediction.TimeS), exact(r.B.Prediction.TimeS), exact(d.TimeS), exact(d.TimeRange.Lo), exact(d.TimeRange.Hi)})
}

// Benchmark writes both sides, one behind the other.
func (r *Diff) Benchmark(w io.Writer) error {
	benchmarkHead(w, r.Source)
	for _, side := range []*Plan{&r.A, &r.B} {
		if err := benchmarkToken(w, side.Plan.Layout, side.Prediction.Context, side.Prediction.TimeS); err != nil {
			return err
		}
	}
	return nil
}
