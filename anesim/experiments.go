package anesim

// ExperimentResidual sums up one experiment that was predicted from all others.
type ExperimentResidual struct {
	Experiment string   `json:"experiment"`
	Device     string   `json:"device"`
	Layout     string   `json:"layout"`
	Context    int      `json:"context"`
	Rows       int      `json:"rows"`
	Inside     int      `json:"inside90"`
	MedianPct  Percent  `json:"median_error_pct"` // signed
	MaxPct     Percent  `json:"max_error_pct"`    // absolute
	SumPct     Percent  `json:"sum_error_pct"`    // of the chunk sum; null when a chunk was not timed
	Scale      *float64 `json:"scale"`
	Apart      bool     `json:"apart"`               // the fold took away the only session of its context
	HalfWidth  Percent  `json:"mean_half_width_pct"` // of its intervals: wider where the fold knew less
}

// experimentResiduals groups left-out rows, which stand together by experiment.
func (c *Calibration) experimentResiduals(loo []Residual) {
	for len(loo) > 0 {
		n := 1
		for n < len(loo) && loo[n].Experiment == loo[0].Experiment {
			n++
		}
		c.Experiments = append(c.Experiments, c.experimentResidual(loo[:n]))
		loo = loo[n:]
	}
}

// The median is signed: it shows whether the session ran warm, which the absolute one would hide.
func (c *Calibration) experimentResidual(rows []Residual) ExperimentResidual {
	first := rows[0]
	out := ExperimentResidual{Experiment: first.Experiment, Device: first.Device, Layout: first.Layout, Context: first.Context,
		Rows: len(rows), Scale: first.Scale, SumPct: nan, Apart: c.onlySession(first)}
	errors := make([]float64, len(rows))
	for i, r := range rows {
		errors[i] = float64(r.ErrorPct)
		if r.Inside {
			out.Inside++
		}
	}
	out.MedianPct, out.MaxPct = Percent(median(errors)), statsOf(errors).Max // statsOf makes them absolute: last
	out.HalfWidth = sharpnessOf(rows).HalfWidthPct
	if measured, predicted, ok := sums(rows); ok {
		out.SumPct = errorPct(predicted, measured)
	}
	return out
}

// onlySession reports whether no other experiment of the family timed chunks at the context of the row.
func (c *Calibration) onlySession(r Residual) bool {
	family := -1
	for i := range c.train {
		if c.train[i].Experiment == r.Experiment {
			family = c.train[i].family
		}
	}
	for i := range c.train {
		s := &c.train[i]
		if s.family == family && s.Experiment != r.Experiment && s.plan.Context == r.Context {
			return false
		}
	}
	return true
}
