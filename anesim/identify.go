package anesim

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Pin says how the measurements hold a constant.
type Pin string

// Pinned constants are known one by one. Joint ones are known only together: if the partners were known, so would they be;
// what the data fix is a combination. Prior ones were hardly touched by any row.
const (
	PinData  Pin = "data"
	PinJoint Pin = "joint"
	PinPrior Pin = "prior"
)

// pinnedShare of the prior variance must be gone before a constant counts as known: the standard deviation has then
// shrunk to less than a third.
const pinnedShare = 0.9

// partnerCorrelation is where a common error of two constants begins to matter to a reader.
const partnerCorrelation = 0.4

// Identified is the standing of one chunk constant of a device.
type Identified struct {
	Device   string   `json:"device"`
	Constant string   `json:"constant"`
	Pin      Pin      `json:"pin"`
	Share    float64  `json:"share"`       // of the prior variance that rows took away
	IfKnown  float64  `json:"share_given"` // the same if all other constants were known exactly
	Partners []string `json:"partners"`    // whose errors go with this one's, strongest first
}

// Identify compares the posterior of every chunk constant with its prior. The marginal variance says what is known of the
// constant alone; the conditional one (the inverse of the precision's diagonal) says what would be if the others were
// given. A constant that is known only in the second sense is pinned jointly: moving it and its partners along a line
// changes no measured time, though it may change the price of a plan that was not measured.
func Identify(d Device) []Identified {
	n := int(chunkTerms)
	precision := d.precision()
	all := make([]Identified, n)
	for i := range n {
		k := &d.Constants[i]
		prior := square(k.Prior.SD)
		one := Identified{Device: d.Name, Constant: Term(i).String(), Share: max(0, 1-square(k.SD)/prior), Partners: d.partners(Term(i))}
		one.IfKnown = one.Share
		if precision != nil {
			one.IfKnown = max(0, 1-1/(precision.At(i, i)*prior))
		}
		switch {
		case one.Share >= pinnedShare:
			one.Pin = PinData
		case one.IfKnown >= pinnedShare:
			one.Pin = PinJoint
		default:
			one.Pin = PinPrior
		}
		all[i] = one
	}
	return all
}

// precision is the inverse of the covariance of the chunk constants; nil if a hand-edited file has one that is not positive.
func (d *Device) precision() *mat.SymDense {
	n := int(chunkTerms)
	cov := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			// Scaled by the prior: variances span twenty-five decades otherwise.
			cov.SetSym(i, j, d.Constants[i].SD*d.Correlation[i][j]*d.Constants[j].SD/(d.Constants[i].Prior.SD*d.Constants[j].Prior.SD))
		}
	}
	var chol mat.Cholesky
	inverse := mat.NewSymDense(n, nil)
	if !chol.Factorize(cov) || chol.InverseTo(inverse) != nil {
		return nil
	}
	for i := range n {
		for j := i; j < n; j++ {
			inverse.SetSym(i, j, inverse.At(i, j)/(d.Constants[i].Prior.SD*d.Constants[j].Prior.SD))
		}
	}
	return inverse
}

// partners lists the constants whose errors are tied to t's.
func (d *Device) partners(t Term) []string {
	var tied []Term
	for o := range chunkTerms {
		if o != t && math.Abs(d.Correlation[t][o]) >= partnerCorrelation {
			tied = append(tied, o)
		}
	}
	slices.SortStableFunc(tied, func(a, b Term) int {
		return cmp.Compare(math.Abs(d.Correlation[t][b]), math.Abs(d.Correlation[t][a]))
	})
	names := make([]string, len(tied))
	for i, o := range tied {
		names[i] = o.String()
	}
	return names
}
