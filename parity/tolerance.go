package parity

import (
	"fmt"
	"math"
	"strings"
)

// Tolerance is how much two tensors may differ. Its zero value asks for equality.
//
// First every element is judged alone: it is good when it is equal, or within Abs + Rel·|want| + PeakRel·Peak, or within
// MaxULP steps of the storage type. The other limits are judged over the whole tensor and come on top, so a cosine alone
// (blind to magnitude) or an argmax alone (blind to everything but one index) cannot be asked for. A zero limit is not
// applied.
type Tolerance struct {
	Abs     float64 // of one element
	Rel     float64 // times the magnitude of the wanted element
	PeakRel float64 // times the largest magnitude of the wanted tensor
	MaxULP  int64   // of one element, an alternative to the three above

	MinEqual   float64 // least share of equal elements
	MaxUnequal int     // most elements that may differ at all
	MaxRelRMS  float64 // RMS of the difference over RMS of want
	MinCosine  float64 // undefined (one side all zeros) fails
	RowNorm    float64 // largest relative error of the norm of a row
	MinArgmax  float64 // least share of rows that agree on the greatest element, ties of the storage type counted as agreement
}

// Disagreement is the error of [Tolerance.Check].
type Disagreement struct {
	Difference Difference
	Tolerance  Tolerance
	Reasons    []string // what is out of bounds, at least one
	Bad        int      // elements out of bounds
	FirstBad   int      // index of the first one, −1 when only limits over the whole tensor were broken
}

// Error names the broken limits and the difference on one line; [Disagreement.Detail] shows values.
func (e *Disagreement) Error() string {
	return strings.Join(e.Reasons, "; ") + " (" + e.Difference.String() + ")"
}

// Check returns nil when d is tolerable and a [*Disagreement] otherwise.
func (t Tolerance) Check(d Difference) error {
	e := &Disagreement{Difference: d, Tolerance: t, FirstBad: -1}
	if d.Mismatch != "" {
		e.Reasons = []string{d.Mismatch}
		return e
	}
	e.checkElements()
	e.checkWhole()
	if len(e.Reasons) == 0 {
		return nil
	}
	return e
}

// Exact reports whether the tolerance admits nothing but equality.
func (t Tolerance) Exact() bool { return t.Abs == 0 && t.Rel == 0 && t.PeakRel == 0 && t.MaxULP == 0 }

// good judges one element.
func (t Tolerance) good(got, want float32, d *Difference) bool {
	distance := elementDistance(got, want)
	bound := t.Abs + t.PeakRel*d.Peak
	if t.Rel != 0 { // 0·Inf would be NaN
		bound += t.Rel * math.Abs(float64(want))
	}
	return distance == 0 || !math.IsInf(distance, 1) && (distance <= bound || t.MaxULP > 0 && ULPs(got, want, d.Storage) <= t.MaxULP)
}

func (e *Disagreement) checkElements() {
	d := &e.Difference
	if d.Identical() {
		return
	}
	for i := range d.want {
		if e.Tolerance.good(d.got[i], d.want[i], d) {
			continue
		}
		if e.Bad++; e.FirstBad < 0 {
			e.FirstBad = i
		}
	}
	if e.Bad > 0 {
		e.Reasons = append(e.Reasons, fmt.Sprintf("%d of %d elements %s, first %s: got %v, want %v",
			e.Bad, d.Elements, e.Tolerance.badly(), d.at(e.FirstBad), d.got[e.FirstBad], d.want[e.FirstBad]))
	}
}

// badly says what a bad element is.
func (t Tolerance) badly() string {
	if t.Exact() {
		return "differ"
	}
	var limits []string
	for _, l := range []struct {
		value float64
		name  string
	}{{t.Abs, "absolute"}, {t.Rel, "relative"}, {t.PeakRel, "of peak"}} {
		if l.value != 0 {
			limits = append(limits, fmt.Sprintf("%.3g %s", l.value, l.name))
		}
	}
	text := strings.Join(limits, " + ")
	if t.MaxULP > 0 {
		if text != "" {
			text += " or "
		}
		text += fmt.Sprintf("%d ulp", t.MaxULP)
	}
	return "exceed " + text
}

func (e *Disagreement) checkWhole() {
	d, t := &e.Difference, e.Tolerance
	refuse := func(broken bool, format string, args ...any) {
		if broken {
			e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...))
		}
	}
	refuse(d.EqualFraction() < t.MinEqual, "%.4g of elements equal, want %.4g", d.EqualFraction(), t.MinEqual)
	refuse(t.MaxUnequal > 0 && d.Elements-d.Equal > t.MaxUnequal, "%d elements differ, at most %d", d.Elements-d.Equal, t.MaxUnequal)
	refuse(t.MaxRelRMS > 0 && !(d.RelRMS <= t.MaxRelRMS), "relative rms %.3g, at most %.3g", d.RelRMS, t.MaxRelRMS)
	refuse(t.MinCosine > 0 && !(d.Cosine >= t.MinCosine), "cosine %.8g, at least %.8g", d.Cosine, t.MinCosine)
	off := max(1-d.NormRatio[0], d.NormRatio[1]-1)
	refuse(t.RowNorm > 0 && !(off <= t.RowNorm), "the norm of a row is off by %.3g, at most %.3g", off, t.RowNorm)
	agree := float64(d.Argmax.Agree+d.Argmax.Ties) / float64(d.Argmax.Rows)
	refuse(agree < t.MinArgmax, "argmax agrees in %d of %d rows (%d more tie), want a share of %.4g", d.Argmax.Agree, d.Argmax.Rows, d.Argmax.Ties, t.MinArgmax)
}
