package quant

import (
	"fmt"
	"math"

	"anelab/internal/format"
)

// Report says how far an encoded matrix is from the weights it stands for. A mean hides rows that are ruined, so the worst row
// is part of it.
type Report struct {
	MaxAbs      float64 // largest difference of an element
	SSE         float64 // sum of squared differences
	RMS         float64 // root of their mean
	Signal      float64 // root mean square of the weights
	Cosine      float64 // between all weights and all decoded elements; 1 where both are zero
	WorstRow    int     // row of the least cosine, the first of equals
	WorstCosine float64
	Bytes       int64 // stored size of the encoded matrix
}

// Compare measures got against want, row by row in float64.
func Compare(want, got Matrix) (Report, error) {
	if want.Rows() != got.Rows() || want.Cols() != got.Cols() {
		return Report{}, fmt.Errorf("quant: compare [%d, %d] with [%d, %d]", got.Rows(), got.Cols(), want.Rows(), want.Cols())
	}
	r := Report{WorstCosine: math.Inf(1), Bytes: got.Bytes()}
	var all products
	a, b := make([]float32, want.Cols()), make([]float32, want.Cols())
	for row := range want.Rows() {
		want.Row(a, row)
		got.Row(b, row)
		var p products
		p.add(a, b)
		if c := p.cosine(); !(c >= r.WorstCosine) {
			r.WorstRow, r.WorstCosine = row, c
		}
		all.merge(p)
	}
	n := float64(want.Rows()) * float64(want.Cols())
	r.MaxAbs, r.SSE, r.Cosine = all.most, all.dd, all.cosine()
	r.RMS, r.Signal = math.Sqrt(all.dd/n), math.Sqrt(all.aa/n)
	return r, nil
}

// SNR is the ratio of weights to error in decibels; infinite without an error.
func (r Report) SNR() float64 { return 20 * math.Log10(r.Signal/r.RMS) }

// String is one line for a person.
func (r Report) String() string {
	return fmt.Sprintf("rms %.3g (%.1f dB), max %.3g, cosine %.5f, worst row %d %.5f", r.RMS, r.SNR(), r.MaxAbs, r.Cosine, r.WorstRow, r.WorstCosine)
}

// Gate is the quality that an encoded matrix must have to be used instead of its weights.
type Gate struct {
	Cosine      float64 // least, over the matrix
	WorstCosine float64 // least of any row
}

// Check refuses a report below the gate, or with numbers that are none.
func (g Gate) Check(r Report) error {
	switch {
	case !(r.Cosine >= g.Cosine):
		return &format.Error{Got: fmt.Sprintf("cosine %.5f to the weights", r.Cosine), Want: fmt.Sprintf("at least %g", g.Cosine), Fix: gateFix}
	case !(r.WorstCosine >= g.WorstCosine):
		return &format.Error{Field: fmt.Sprintf("row %d", r.WorstRow), Got: fmt.Sprintf("cosine %.5f to the weights", r.WorstCosine),
			Want: fmt.Sprintf("at least %g", g.WorstCosine), Fix: gateFix}
	}
	return nil
}

const gateFix = "use more bits, smaller groups, or leave the weights dense"

// products accumulates what a cosine and an error need.
type products struct{ aa, ab, bb, dd, most float64 }

func (p *products) add(a, b []float32) {
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		d := x - y
		p.aa += float64(x * x)
		p.ab += float64(x * y)
		p.bb += float64(y * y)
		p.dd += float64(d * d)
		p.most = max(p.most, math.Abs(d))
	}
}

func (p *products) merge(q products) {
	p.aa, p.ab, p.bb, p.dd, p.most = p.aa+q.aa, p.ab+q.ab, p.bb+q.bb, p.dd+q.dd, max(p.most, q.most)
}

func (p *products) cosine() float64 {
	if p.aa == 0 && p.bb == 0 {
		return 1
	}
	if p.aa == 0 || p.bb == 0 {
		return 0
	}
	return p.ab / math.Sqrt(p.aa) / math.Sqrt(p.bb)
}
