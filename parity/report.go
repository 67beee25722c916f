package parity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anelab/gemma4"
)

// Report is what [Run] found.
type Report struct {
	Got, Want string // names of the backends
	Case      string
	Compared  int                    // taps
	Points    []PointReport          // in the order of a pass, those that were compared
	First     *Parting               // first tensor out of tolerance; nil when there is none
	Partings  int                    // tensors out of tolerance, as far as the run went
	OnlyGot   map[gemma4.Point]int   // taps that the other side does not have
	OnlyWant  map[gemma4.Point]int   //
	where     func(layer int) string // of the compared backend, nil without a Locator
	op        func(gemma4.Point, int) string
}

// PointReport sums up one point over all layers and calls.
type PointReport struct {
	Point    gemma4.Point
	Taps     int
	Equal    int        // elements
	Elements int        //
	Worst    Difference // the tap with the largest difference relative to its peak
	Label    string     // its name
	Choices  Argmax     // of all taps together
}

// Parting is the place where two implementations go different ways.
type Parting struct {
	Label  string // "hidden.3 [0,21)"
	Point  gemma4.Point
	Layer  int    // −1 outside the layers
	Where  string // part that computes it, such as "chunk 2"; may be empty
	Op     string // op that yields it, where the compared backend is a graph
	Err    *Disagreement
	Detail string // values to look at
}

// String is the parting on one line.
func (p *Parting) String() string {
	if p.Where == "" {
		return fmt.Sprintf("%s: %v", p.Label, p.Err)
	}
	return fmt.Sprintf("%s in %s: %v", p.Label, p.Where, p.Err)
}

func newReport(a, b Backend, c Case) Report {
	r := Report{Got: a.Name(), Want: b.Name(), Case: c.Name, OnlyGot: map[gemma4.Point]int{}, OnlyWant: map[gemma4.Point]int{}}
	for _, backend := range []Backend{b, a} {
		if l, ok := backend.(Locator); ok {
			r.where = l.Where
		}
		if l, ok := backend.(OpLocator); ok {
			r.op = l.Op
		}
	}
	return r
}

// Err is nil when something was compared and nothing parted.
func (r *Report) Err() error {
	switch {
	case r.First != nil:
		return fmt.Errorf("case %s: %s parts from %s at %s", r.Case, r.Got, r.Want, r.First)
	case r.Compared == 0:
		return fmt.Errorf("case %s: %s and %s have no tensor in common", r.Case, r.Got, r.Want)
	}
	return nil
}

// add files one comparison.
func (r *Report) add(t Tap, d Difference, err error) {
	r.Compared++
	var disagreement *Disagreement
	if errors.As(err, &disagreement) {
		if r.Partings++; r.First == nil {
			r.First = r.parting(t, disagreement)
		}
	}
	d.got, d.want = nil, nil
	p := r.point(t.Point)
	p.Taps++
	p.Equal += d.Equal
	p.Elements += d.Elements
	p.Choices = p.Choices.Add(d.Argmax)
	if p.Taps == 1 || d.Mismatch != "" || d.PeakRel() > p.Worst.PeakRel() {
		p.Worst, p.Label = d, Label(t)
	}
}

func (r *Report) parting(t Tap, e *Disagreement) *Parting {
	p := &Parting{Label: Label(t), Point: t.Point, Layer: t.Layer, Err: e, Detail: e.Detail()}
	if r.where != nil {
		p.Where = r.where(t.Layer)
	}
	if r.op != nil {
		p.Op = r.op(t.Point, t.Layer)
	}
	e.Difference.got, e.Difference.want = nil, nil // the values are the backend's again
	return p
}

// point finds or inserts the summary of a point.
func (r *Report) point(p gemma4.Point) *PointReport {
	i, found := slices.BinarySearchFunc(r.Points, p, func(x PointReport, p gemma4.Point) int {
		return slices.Index(Points, x.Point) - slices.Index(Points, p)
	})
	if !found {
		r.Points = slices.Insert(r.Points, i, PointReport{Point: p})
	}
	return &r.Points[i]
}

// String is a table, one line per point, with the first parting and its values below.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "case %s: %s against %s, %d tensors compared\n", r.Case, r.Got, r.Want, r.Compared)
	fmt.Fprintf(&b, "%-17s %5s %10s %10s %8s %9s  %s\n", "point", "taps", "max abs", "of peak", "ulp", "equal", "worst in")
	for _, p := range r.Points {
		d := p.Worst
		fmt.Fprintf(&b, "%-17s %5d %10.3g %10.3g %8s %8.4g%%  %s\n", p.Point, p.Taps, d.MaxAbs, d.PeakRel(), ulpText(d.MaxULP), 100*p.EqualFraction(), p.Label)
	}
	for _, side := range []struct {
		name string
		only map[gemma4.Point]int
	}{{r.Got, r.OnlyGot}, {r.Want, r.OnlyWant}} {
		if text := countText(side.only); text != "" {
			fmt.Fprintf(&b, "only in %s: %s\n", side.name, text)
		}
	}
	if r.First != nil {
		fmt.Fprintf(&b, "first parts at %s\n%s", r.First, r.First.values())
	}
	return b.String()
}

// values is the detail without its first line, which repeats the error.
func (p *Parting) values() string {
	_, rest, _ := strings.Cut(p.Detail, "\n")
	return rest
}

// EqualFraction is the share of equal elements over all taps of the point.
func (p PointReport) EqualFraction() float64 {
	if p.Elements == 0 {
		return 0
	}
	return float64(p.Equal) / float64(p.Elements)
}

// countText lists counts in the order of the points.
func countText(counts map[gemma4.Point]int) string {
	var parts []string
	for _, p := range Points {
		if n := counts[p]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s ×%d", p, n))
		}
	}
	return strings.Join(parts, ", ")
}
