package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/parity"
)

// Comparison is one pair of backends over several cases.
type Comparison struct {
	Got, Want string // "chunks", "whole", the name of a golden file
	Target    Target
	Exact     bool // every element of every tap must be equal
	Cases     []string
	Taps      int
	Partings  int // tensors out of tolerance
	Tensors   []Tensor
	First     *Parting
	Tokens    *Tokens
	Loudness  *Loudness
	// TooManyTies says that more elements inside attention differ than ties explain, though each alone could be one.
	TooManyTies bool
}

// Tensor sums up one point over all layers, calls and cases.
type Tensor struct {
	Point     gemma4.Point
	Taps      int
	Elements  int
	Equal     int
	Choices   parity.Argmax     // of every row
	Worst     parity.Difference // relative to the peak of its tap
	WorstIn   string            // "T21 layer 3"
	Tolerance parity.Tolerance
	OK        bool
}

// Parting is where two implementations go different ways first.
type Parting struct {
	Case   string
	Tensor string // "hidden.3 [0,21)"
	Layer  int    // −1 outside the layers
	Chunk  string // "chunk 2", or the package; "" outside the layers
	Op     string // of a package: the op that yields the tensor; "" if not known
	Err    *parity.Disagreement
	Detail string
}

// Tokens compares greedy choices with recorded ones.
type Tokens struct {
	Count, Equal int
	First        string // first difference
}

// Loudness compares the RMS of every layer's output for every token of a prompt with recorded ones.
type Loudness struct {
	Layers, Tokens int
	MaxRel         float64
	OK             bool
}

// OK reports whether the comparison holds what its target asks for; information always does.
func (c *Comparison) OK() bool {
	if c.Target.Information != "" {
		return true
	}
	if c.Partings > 0 || c.Taps == 0 || c.TooManyTies || c.Tokens != nil && c.Tokens.Equal < c.Tokens.Count || c.Loudness != nil && !c.Loudness.OK {
		return false
	}
	return !slices.ContainsFunc(c.Tensors, func(t Tensor) bool { return !t.OK })
}

// add takes the report of one case.
func (c *Comparison) add(name string, r *parity.Report, plan *chunking.Plan) {
	c.Cases = append(c.Cases, name)
	c.Taps += r.Compared
	c.Partings += r.Partings
	if r.First != nil && c.First == nil {
		c.First = &Parting{Case: name, Tensor: r.First.Label, Layer: r.First.Layer, Chunk: cmp.Or(r.First.Where, chunkOf(plan, r.First.Layer)),
			Op: r.First.Op, Err: r.First.Err, Detail: r.First.Detail}
	}
	for _, p := range r.Points {
		c.addPoint(name, p, r.First)
	}
}

func chunkOf(plan *chunking.Plan, layer int) string {
	for i, chunk := range plan.Chunks {
		if layer >= chunk.Lo && layer < chunk.Hi {
			return fmt.Sprintf("chunk %d", i+1)
		}
	}
	return ""
}

func (c *Comparison) addPoint(name string, p parity.PointReport, first *parity.Parting) {
	i := slices.IndexFunc(c.Tensors, func(t Tensor) bool { return t.Point == p.Point })
	if i < 0 {
		i = len(c.Tensors)
		c.Tensors = append(c.Tensors, Tensor{Point: p.Point, Tolerance: c.Target.Tolerances.For(p.Point), OK: true})
	}
	t := &c.Tensors[i]
	t.Taps += p.Taps
	t.Elements += p.Elements
	t.Equal += p.Equal
	t.Choices = t.Choices.Add(p.Choices)
	if t.WorstIn == "" || p.Worst.PeakRel() > t.Worst.PeakRel() {
		t.Worst, t.WorstIn = p.Worst, place(name, p.Label)
	}
	t.OK = t.OK && within(p, t.Tolerance) && (first == nil || first.Point != p.Point)
}

// within judges a point by its worst tap, which settles tolerances relative to the peak; what else a tolerance asks for shows
// as the first parting.
func within(p parity.PointReport, t parity.Tolerance) bool {
	d := &p.Worst
	return p.Equal == p.Elements || d.PeakRel() <= t.PeakRel || t.Abs > 0 && d.MaxAbs <= t.Abs || t.MaxULP > 0 && d.MaxULP <= t.MaxULP
}

// place turns a label "hidden.3 [0,21)" of case T21 into "T21 layer 3".
func place(name, label string) string {
	tensor, _, _ := strings.Cut(label, " ")
	if _, layer, ok := strings.Cut(tensor, "."); ok && layer != "sliding" && layer != "full" {
		return name + " layer " + layer
	}
	return name
}

// finish judges what only all cases together can show.
func (c *Comparison) finish() {
	slices.SortStableFunc(c.Tensors, func(a, b Tensor) int {
		return slices.Index(parity.Points, a.Point) - slices.Index(parity.Points, b.Point)
	})
	if got, of := c.insideAttention(); float64(got) < c.Target.LeastEqual*float64(of) {
		c.TooManyTies = true
	}
}

// insideAttention counts equal elements of the tensors that ties may touch, all together: a tie in one of them causes those
// in the next.
func (c *Comparison) insideAttention() (equal, elements int) {
	for _, t := range c.Tensors {
		switch t.Point {
		case gemma4.PointQ, gemma4.PointK, gemma4.PointV, gemma4.PointProbs, gemma4.PointAttnOut:
			equal += t.Equal
			elements += t.Elements
		}
	}
	return equal, elements
}
