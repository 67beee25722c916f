package anesim

import (
	"math"
	"slices"
)

// Sharpness compares the 90 % intervals of left-out rows with a band of constant relative width around the same
// predictions that covers as many rows. Coverage alone is cheap: a wide band has it too.
type Sharpness struct {
	Rows             int     `json:"rows"`
	Coverage         Percent `json:"coverage90_pct"`
	HalfWidthPct     Percent `json:"mean_half_width_pct"`          // of the measured time, mean over rows
	BandHalfWidthPct Percent `json:"constant_band_half_width_pct"` // same coverage
	Winkler          Percent `json:"winkler_pct"`                  // mean interval score: width, and 20 times what is missed
	BandWinkler      Percent `json:"constant_band_winkler_pct"`
}

// sharpnessOfKnown leaves out folds that took away the only session of a context: their intervals are meant to be wider, and
// a mean over both kinds would hide either.
func (c *Calibration) sharpnessOfKnown(loo []Residual) Sharpness {
	var known []Residual
	for _, r := range loo {
		if !c.onlySession(r) {
			known = append(known, r)
		}
	}
	return sharpnessOf(known)
}

// sharpnessOf looks at residuals that have an interval.
func sharpnessOf(rows []Residual) Sharpness {
	var errors []float64
	var width, score, inside float64
	for _, r := range rows {
		if r.Range.Hi == 0 {
			continue
		}
		lo, hi := 100*(r.Range.Lo/r.MeasuredS-1), 100*(r.Range.Hi/r.MeasuredS-1)
		width += (hi - lo) / 2
		score += winkler(lo, hi)
		if r.Inside {
			inside++
		}
		errors = append(errors, math.Abs(float64(r.ErrorPct)))
	}
	n := float64(len(errors))
	s := Sharpness{Rows: len(errors), Coverage: Percent(100 * inside / n), HalfWidthPct: Percent(width / n), Winkler: Percent(score / n)}
	band := bandWidth(errors, int(inside))
	var bandScore float64
	for _, r := range rows {
		if r.Range.Hi > 0 {
			bandScore += winkler(float64(r.ErrorPct)-band, float64(r.ErrorPct)+band)
		}
	}
	s.BandHalfWidthPct, s.BandWinkler = Percent(band), Percent(bandScore/n)
	return s
}

// winkler is the score of an interval [lo, hi] for a truth at zero: its width plus 2/α per unit missed, α = 10 % (Gneiting and
// Raftery, Strictly Proper Scoring Rules, Prediction, and Estimation, 2007, eq. 43). Honest bounds have the lowest mean.
func winkler(lo, hi float64) float64 {
	return hi - lo + 20*max(lo, 0) + 20*max(-hi, 0)
}

// bandWidth is the least half width that covers so many errors.
func bandWidth(errors []float64, covered int) float64 {
	if covered == 0 {
		return 0
	}
	sorted := slices.Clone(errors)
	slices.Sort(sorted)
	return sorted[covered-1]
}
