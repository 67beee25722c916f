package parity

import (
	"fmt"
	"math"

	"anelab/quant"
)

// Options say how two tensors are looked at.
type Options struct {
	Storage quant.DType // type that both sides store, F32, F16 or BF16: the unit of ULPs and of argmax ties; zero means F32
	RowLen  int         // length of the last axis: norms and argmax are taken per row; 0 takes the tensor for one row
}

// Difference is what two tensors of the same shape have and have not in common. Sums run over the elements that are finite on
// both sides; whatever is not finite on one side only is in NonFinite and makes MaxAbs infinite.
type Difference struct {
	Mismatch  string     // set when no element was compared: other lengths, other shapes, or nothing there
	Elements  int        //
	Equal     int        // got == want (so −0 equals +0), or NaN on both sides
	NonFinite int        // NaN or ±Inf that is not the same on the other side
	BothNaN   int        // part of Equal
	MaxAbs    float64    // largest |got − want|
	WorstAt   int        // its index, the first one
	Peak      float64    // largest finite |want|
	MaxULP    int64      // in steps of Storage; math.MaxInt64 where NonFinite counts
	Cosine    float64    // NaN when one side is all zeros: an undefined angle is no agreement
	RelRMS    float64    // RMS(got − want) / RMS(want); +Inf when only want is all zeros
	NormRatio [2]float64 // least and greatest |got| / |want| of a row; 1 where both are zero
	Argmax    Argmax
	Storage   quant.DType // as compared

	rowLen    int
	got, want []float32 // for excerpts
}

// Argmax says whether both sides choose the same index in every row. Equal values: the lowest index wins. A row with a NaN
// on either side chooses nothing and counts as disagreement.
type Argmax struct {
	Rows      int
	Agree     int
	Ties      int     // rows that disagree, where want's two values lie less than one step of Storage apart
	MinMargin float64 // smallest distance between the greatest and the second value of a row of want
	FirstRow  int     // first disagreement that is no tie, −1 without one
	Got, Want int     // the two choices there; −1 for none
	Margin    float64 // want's value at Want minus its value at Got
}

// Add counts the rows of both; the first disagreement is a's, if it has one. The zero value holds no rows.
func (a Argmax) Add(b Argmax) Argmax {
	switch {
	case a.Rows == 0:
		return b
	case b.Rows == 0:
		return a
	}
	a.Agree, a.Ties, a.MinMargin = a.Agree+b.Agree, a.Ties+b.Ties, min(a.MinMargin, b.MinMargin)
	if a.FirstRow < 0 && b.FirstRow >= 0 {
		a.FirstRow, a.Got, a.Want, a.Margin = a.Rows+b.FirstRow, b.Got, b.Want, b.Margin
	}
	a.Rows += b.Rows
	return a
}

// Compare measures how far got is from want. It never fails: a difference in length is reported as one (an equal prefix is no
// agreement). What is tolerable is for [Tolerance.Check] to say.
func Compare(got, want []float32, o Options) Difference {
	d := Difference{Elements: len(want), Storage: o.Storage, rowLen: o.RowLen, got: got, want: want,
		NormRatio: [2]float64{math.Inf(1), 0}, Argmax: Argmax{FirstRow: -1, MinMargin: math.Inf(1)}}
	if d.Storage == 0 {
		d.Storage = quant.F32
	}
	if d.rowLen == 0 {
		d.rowLen = len(want)
	}
	if d.Mismatch = lengthMismatch(len(got), len(want)); d.Mismatch != "" {
		d.Elements = 0
		return d
	}
	if len(want)%d.rowLen != 0 {
		panic("parity: Compare: RowLen does not divide the length")
	}
	var total sums
	for lo := 0; lo < len(want); lo += d.rowLen {
		row := d.compareRow(lo, lo+d.rowLen)
		d.NormRatio[0] = min(d.NormRatio[0], row.normRatio())
		d.NormRatio[1] = max(d.NormRatio[1], row.normRatio())
		d.compareArgmax(lo, lo+d.rowLen)
		total.add(row)
	}
	d.Cosine, d.RelRMS = total.cosine(), total.relRMS()
	return d
}

func lengthMismatch(got, want int) string {
	switch {
	case got != want:
		return fmt.Sprintf("%d elements, want %d", got, want)
	case want == 0:
		return "nothing to compare"
	}
	return ""
}

// PeakRel is MaxAbs relative to the largest magnitude of want; 0 when both are zero.
func (d Difference) PeakRel() float64 {
	if d.MaxAbs == 0 {
		return 0
	}
	return d.MaxAbs / d.Peak
}

// EqualFraction is the share of equal elements; 0 for a mismatch.
func (d Difference) EqualFraction() float64 {
	if d.Elements == 0 {
		return 0
	}
	return float64(d.Equal) / float64(d.Elements)
}

// Identical reports whether every element is equal.
func (d Difference) Identical() bool { return d.Mismatch == "" && d.Equal == d.Elements }

// compareRow adds the elements [lo, hi) to the counters and returns their sums.
func (d *Difference) compareRow(lo, hi int) sums {
	var s sums
	for i := lo; i < hi; i++ {
		g, w := float64(d.got[i]), float64(d.want[i])
		if finite(w) {
			d.Peak = max(d.Peak, math.Abs(w))
		}
		switch {
		case finite(g) && finite(w):
			s.include(g, w)
		case math.IsNaN(g) && math.IsNaN(w):
			d.BothNaN++
			d.Equal++
			continue
		case g != w:
			d.NonFinite++
		}
		if g == w {
			d.Equal++
			continue
		}
		if abs := elementDistance(d.got[i], d.want[i]); abs > d.MaxAbs {
			d.MaxAbs, d.WorstAt = abs, i
		}
		d.MaxULP = max(d.MaxULP, ULPs(d.got[i], d.want[i], d.Storage))
	}
	return s
}

// elementDistance is |got − want|, infinite where only one side is a number.
func elementDistance(got, want float32) float64 {
	g, w := float64(got), float64(want)
	if got == want || math.IsNaN(g) && math.IsNaN(w) {
		return 0
	}
	if !finite(g) || !finite(w) {
		return math.Inf(1)
	}
	return math.Abs(g - w)
}

// compareArgmax compares the choices of the row [lo, hi).
func (d *Difference) compareArgmax(lo, hi int) {
	a := &d.Argmax
	a.Rows++
	g, _ := argmax(d.got[lo:hi])
	w, margin := argmax(d.want[lo:hi])
	a.MinMargin = min(a.MinMargin, margin)
	if g == w && g >= 0 {
		a.Agree++
		return
	}
	between := math.NaN()
	if g >= 0 && w >= 0 {
		between = float64(d.want[lo+w]) - float64(d.want[lo+g])
		if between < step(d.want[lo+w], d.Storage) {
			a.Ties++
			return
		}
	}
	if a.FirstRow < 0 {
		a.FirstRow, a.Got, a.Want, a.Margin = lo/d.rowLen, g, w, between
	}
}

// argmax returns the lowest index of the greatest value and its distance to the second; −1 when there is a NaN.
func argmax(x []float32) (at int, margin float64) {
	second := math.Inf(-1)
	for i, v := range x {
		switch {
		case v != v:
			return -1, 0
		case v > x[at]:
			second, at = float64(x[at]), i
		case i != at:
			second = max(second, float64(v))
		}
	}
	return at, float64(x[at]) - second
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// sums are the inner products of two vectors and of their difference.
type sums struct{ gg, ww, gw, dd float64 }

func (s *sums) include(g, w float64) {
	s.gg += float64(g * g)
	s.ww += float64(w * w)
	s.gw += float64(g * w)
	s.dd += float64((g - w) * (g - w))
}

func (s *sums) add(o sums) {
	s.gg += o.gg
	s.ww += o.ww
	s.gw += o.gw
	s.dd += o.dd
}

func (s sums) cosine() float64 {
	if s.dd == 0 && s.ww > 0 {
		return 1
	}
	return s.gw / math.Sqrt(s.gg) / math.Sqrt(s.ww)
}

func (s sums) relRMS() float64 {
	if s.dd == 0 {
		return 0
	}
	return math.Sqrt(s.dd / s.ww)
}

func (s sums) normRatio() float64 {
	if s.gg == s.ww {
		return 1
	}
	return math.Sqrt(s.gg / s.ww)
}
