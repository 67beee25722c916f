package anesim

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// TermCheck says whether a term of the cost model has earned its place: the error of left-out experiments with the term
// and without it. A term that does not lower the error stays only for a regime that has no data, and then the range of a
// prediction there carries its prior's doubt.
type TermCheck struct {
	Term    string  `json:"term"`
	With    Percent `json:"loo_rms_pct"`         // root mean square of left-out chunk errors, all terms on
	Without Percent `json:"loo_rms_without_pct"` // this term held at zero
	Earned  bool    `json:"earned"`
	Reason  string  `json:"reason"`
}

// checkTerms leaves out every experiment once more for each term held at zero.
func (c *Calibration) checkTerms() {
	all := c.leftOutRMS(func(d Device) Device { return d })
	for t := range chunkTerms {
		without := c.leftOutRMS(func(d Device) Device { return d.withoutTerm(t) })
		check := TermCheck{Term: t.String(), With: Percent(all), Without: Percent(without), Earned: without > all}
		check.Reason = fmt.Sprintf("left-out error %.2f %% with it, %.2f %% without", all, without)
		if !check.Earned {
			check.Reason = "needed where there are no rows: " + terms[t].regime
		}
		c.TermChecks = append(c.TermChecks, check)
	}
}

// withoutTerm holds a constant at zero by a prior that no row can move.
func (d Device) withoutTerm(t Term) Device {
	p := &d.Constants[t].Prior
	p.Value, p.SD = 0, p.SD*1e-9
	return d.FromPriors()
}

// leftOutRMS is the error of left-out chunks over all families in percent, when devices are changed before the fit.
func (c *Calibration) leftOutRMS(change func(Device) Device) float64 {
	return c.leftOutError(func(base Device, train []sample) func(*sample) float64 {
		d := fitChunks(change(base.FromPriors()), train)
		return func(s *sample) float64 { return d.seconds(&s.q) }
	})
}

// leftOutError fits without each experiment in turn and is the root mean square of its rows' errors in percent.
func (c *Calibration) leftOutError(fit func(base Device, train []sample) func(*sample) float64) float64 {
	var sum float64
	n := 0
	for i, base := range c.options.Devices {
		for _, f := range folds(familyOf(c.train, i)) {
			if len(f.train) == 0 {
				continue
			}
			predict := fit(base, f.train)
			for j := range f.test {
				sum += square(100 * (predict(&f.test[j])/f.test[j].Seconds - 1))
				n++
			}
		}
	}
	return math.Sqrt(sum / float64(n))
}

// shuffleSeed makes the control the same on every machine.
const shuffleSeed = 5

// shuffledControl is the accuracy of left-out rows when the measured times of a family are dealt out at random among its
// rows. A pipeline that still looks accurate then has leaked the answer into the prediction.
func (c *Calibration) shuffledControl() Accuracy {
	train := append([]sample(nil), c.train...)
	for i := range c.options.Devices {
		var index []int
		for j := range train {
			if train[j].family == i {
				index = append(index, j)
			}
		}
		rand.New(rand.NewPCG(shuffleSeed, uint64(i))).Shuffle(len(index), func(a, b int) {
			x, y := &train[index[a]], &train[index[b]]
			x.Seconds, y.Seconds = y.Seconds, x.Seconds
		})
	}
	var loo []Residual
	for i, base := range c.options.Devices {
		for _, f := range folds(familyOf(train, i)) {
			if len(f.train) == 0 {
				continue
			}
			d := fitChunks(base.FromPriors(), f.train)
			loo = append(loo, residuals("control", func(s *sample) (float64, Range) { return d.seconds(&s.q), Range{} }, f.test)...)
		}
	}
	return accuracyOf(loo)
}
