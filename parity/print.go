package parity

import (
	"fmt"
	"math"
	"strings"
)

// String is the difference on one line.
func (d Difference) String() string {
	switch {
	case d.Mismatch != "":
		return d.Mismatch
	case d.Identical():
		return fmt.Sprintf("identical, %d elements%s", d.Elements, d.nanText())
	}
	s := fmt.Sprintf("max abs %.3g (%.3g of peak %.4g) at %s, %s ulp %s, cosine %.9g, rel rms %.3g, %d/%d equal",
		d.MaxAbs, d.PeakRel(), d.Peak, d.at(d.WorstAt), ulpText(d.MaxULP), d.Storage, d.Cosine, d.RelRMS, d.Equal, d.Elements)
	if d.NonFinite > 0 {
		s += fmt.Sprintf(", %d not finite on one side", d.NonFinite)
	}
	s += d.nanText()
	if d.rowLen > 1 {
		s += ", argmax " + d.Argmax.String()
	}
	return s
}

func (d Difference) nanText() string {
	if d.BothNaN == 0 {
		return ""
	}
	return fmt.Sprintf(", %d NaN on both sides", d.BothNaN)
}

func ulpText(n int64) string {
	if n == math.MaxInt64 {
		return "inf"
	}
	return fmt.Sprint(n)
}

// String is the agreement on one line, with the first disagreement.
func (a Argmax) String() string {
	s := fmt.Sprintf("%d/%d", a.Agree, a.Rows)
	if a.Ties > 0 {
		s += fmt.Sprintf(" + %d ties", a.Ties)
	}
	if a.FirstRow >= 0 {
		s += fmt.Sprintf(" (row %d: got %d, want %d, margin %.3g)", a.FirstRow, a.Got, a.Want, a.Margin)
	}
	return s
}

// at is the index i as [row column], or [i] when there is one row.
func (d Difference) at(i int) string {
	if d.rowLen == d.Elements || d.rowLen == 0 {
		return fmt.Sprintf("[%d]", i)
	}
	return fmt.Sprintf("[%d %d]", i/d.rowLen, i%d.rowLen)
}

const (
	firstShown = 5 // values at the start of a tensor that Detail shows
	neighbours = 2 // values on either side of the first bad one
)

// Detail is the error with values to look at: the first five of both tensors side by side, then the first bad one among its
// neighbours.
func (e *Disagreement) Detail() string {
	var b strings.Builder
	fmt.Fprintln(&b, e.Error())
	d := &e.Difference
	if d.got == nil || d.Mismatch != "" {
		return b.String()
	}
	fmt.Fprintf(&b, "  %-14s %15s %15s %11s %6s\n", "index", "got", "want", "got-want", "ulp")
	e.excerpt(&b, 0, firstShown)
	at := e.FirstBad
	if at < 0 {
		at = d.WorstAt
	}
	if lo := max(firstShown, at-neighbours); at+neighbours >= firstShown {
		if lo > firstShown {
			fmt.Fprintln(&b, "  ...")
		}
		e.excerpt(&b, lo, at+neighbours+1)
	}
	return b.String()
}

// excerpt writes the elements [lo, hi), marking those out of bounds.
func (e *Disagreement) excerpt(b *strings.Builder, lo, hi int) {
	d := &e.Difference
	for i := lo; i < min(hi, d.Elements); i++ {
		g, w, mark := d.got[i], d.want[i], " "
		if !e.Tolerance.good(g, w, d) {
			mark = ">"
		}
		fmt.Fprintf(b, "%s %-14s %15.8g %15.8g %11.3g %6s\n", mark, d.at(i), g, w, float64(g)-float64(w), ulpText(ULPs(g, w, d.Storage)))
	}
}
