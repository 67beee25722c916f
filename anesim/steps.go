package anesim

import (
	"math"

	"anelab/chunking"
)

// StepAccuracy is how well whole decode steps are predicted: chunks and host together, no session factor forgiven. Steps
// are what users see, and many sessions printed nothing else, so this is the widest test the data allow.
type StepAccuracy struct {
	LOO       Stats            `json:"loo"`       // each step predicted without its experiment
	Apart     Stats            `json:"apart"`     // folds that took away the only session of a context: not in LOO
	Oracle    Stats            `json:"oracle"`    // knows the median of the same layout, context and device from other sessions
	Baselines map[string]Stats `json:"baselines"` // same folds as LOO
	Coverage  Percent          `json:"coverage90_pct"`
	Rows      []StepResidual   `json:"rows"`
}

// StepResidual is one measured step beside its prediction and those of the others.
type StepResidual struct {
	Line       int                `json:"line"`
	Experiment string             `json:"experiment"`
	Device     string             `json:"device"`
	Layout     string             `json:"layout"`
	Context    int                `json:"context"`
	MeasuredS  float64            `json:"measured_s"`
	PredictedS float64            `json:"predicted_s"`
	Range      Range              `json:"range90_s"`
	Inside     bool               `json:"inside90"`
	ErrorPct   Percent            `json:"error_pct"`
	OraclePct  Percent            `json:"oracle_error_pct"` // null when no other session ran this
	Apart      bool               `json:"apart"`            // nothing else was timed at this context
	Baselines  map[string]Percent `json:"baseline_error_pct"`
}

// stepSample is a warm step beside its plan.
type stepSample struct {
	Measurement
	family  int
	plan    *chunking.Plan
	seconds float64
}

// steps picks the warm decode steps of the fitted model. Of time and rate the rate counts: printed times often leave the
// embedding out (data README, notes of the 04-10 and 04-17 sessions), rates never do.
func (s *sampler) steps(rows []Measurement) []stepSample {
	var all []stepSample
	for _, m := range rows {
		if !m.decodeStep() || s.family(m.Device) < 0 || s.models[m.Model] == nil {
			continue
		}
		layout, err := m.layout(s.models[m.Model])
		if err != nil {
			continue
		}
		plan, err := s.planners[m.Model].Plan(layout)
		if err != nil {
			continue
		}
		all = append(all, stepSample{Measurement: m, family: s.family(m.Device), plan: plan, seconds: m.stepSeconds()})
	}
	return all
}

// stepSeconds is the time of a step, by its rate where one was printed.
func (m Measurement) stepSeconds() float64 {
	if m.TokPerSec > 0 {
		return 1 / m.TokPerSec
	}
	return m.Seconds
}

// decodeStep reports whether the row times a whole warm step of what is fitted.
func (m Measurement) decodeStep() bool {
	return m.Component == "step" && m.Model == fitModel && m.KVMode == fitKVMode && m.QueryTokens == 1 && m.Quality != "X" &&
		m.ColdWarm == "warm" && m.Layout != "" && m.Context > 0 && (m.Seconds > 0 || m.TokPerSec > 0)
}

// leaveOutSteps predicts every step from the other experiments.
func (c *Calibration) leaveOutSteps(rows []Measurement) {
	steps := newSampler(c.options.Devices, c.options.Models).steps(rows)
	c.Steps.Baselines = map[string]Stats{}
	fits := map[string]*leftOut{}
	for i := range steps {
		s := &steps[i]
		if len(familyOf(c.train, s.family)) == 0 {
			continue
		}
		// An experiment is left out of its own family only; two families never share constants.
		key := c.options.Devices[s.family].Name + "\x00" + s.Experiment
		if fits[key] == nil {
			fits[key] = c.withoutExperiment(s.family, s.Experiment, rows)
		}
		if fits[key] != nil {
			c.Steps.Rows = append(c.Steps.Rows, fits[key].residual(s, oracle(s, steps)))
		}
	}
	c.Steps.sum(c.models)
}

// leftOut is everything fitted without one experiment.
type leftOut struct {
	device   Device
	rivals   map[string]estimator
	contexts map[int]bool // at which some other session timed chunks
}

// withoutExperiment fits a family on all experiments but one; nil when nothing is left.
func (c *Calibration) withoutExperiment(family int, experiment string, rows []Measurement) *leftOut {
	var train []sample
	contexts := map[int]bool{}
	for _, s := range familyOf(c.train, family) {
		if s.Experiment != experiment {
			train = append(train, s)
			contexts[s.plan.Context] = true
		}
	}
	if len(train) == 0 {
		return nil
	}
	base := c.options.Devices[family]
	d := fitHost(fitChunks(base.FromPriors(), train), hostSamples(train, rows))
	d.Evidence.IntervalFactor, d.Evidence.WorstMiss = leftOutSpread(base, train)
	out := &leftOut{device: d, rivals: map[string]estimator{}, contexts: contexts}
	for _, m := range c.models {
		if m.name != "" {
			out.rivals[m.name] = m.fit(base, train)
		}
	}
	return out
}

// The prediction is the one that users see, copy-back as in the row's build, not a sum made for the test.
func (f *leftOut) residual(s *stepSample, oracleSeconds float64) StepResidual {
	x := Predict(s.plan, f.device, Workload{CopyBack: s.copyBack()})
	r := StepResidual{Line: s.Line, Experiment: s.Experiment, Device: s.Device, Layout: s.Layout, Context: s.plan.Context,
		MeasuredS: s.seconds, PredictedS: x.TimeS, Range: x.TimeRange, Inside: x.TimeRange.Lo <= s.seconds && s.seconds <= x.TimeRange.Hi,
		ErrorPct: errorPct(x.TimeS, s.seconds), OraclePct: errorPct(oracleSeconds, s.seconds),
		Apart: !f.contexts[s.plan.Context], Baselines: map[string]Percent{}}
	for name, predict := range f.rivals {
		// The baselines price chunks; they get our host time, so that only the chunks are compared.
		sum := x.HostTimeS
		for i, q := range planQuantities(s.plan, s.copyBack()) {
			seconds, _ := predict(&sample{Measurement: s.Measurement, family: s.family, plan: s.plan, chunk: i, q: q})
			sum += seconds
		}
		r.Baselines[name] = errorPct(sum, s.seconds)
	}
	return r
}

func errorPct(predicted, measured float64) Percent { return Percent(100 * (predicted/measured - 1)) }

// oracle is the median of what other sessions measured for the very same layout, context and device family: the least that
// sessions differ. NaN when there is no other.
func oracle(s *stepSample, steps []stepSample) float64 {
	var others []float64
	for i := range steps {
		o := &steps[i]
		if o.family == s.family && o.Layout == s.Layout && o.plan.Context == s.plan.Context && o.Experiment != s.Experiment {
			others = append(others, o.seconds)
		}
	}
	if len(others) == 0 {
		return math.NaN()
	}
	return median(others)
}

// sum files the statistics of the rows.
func (a *StepAccuracy) sum(models []rival) {
	var loo, apart, known []float64
	inside := 0
	for _, r := range a.Rows {
		if r.Apart {
			apart = append(apart, float64(r.ErrorPct))
			continue
		}
		loo = append(loo, float64(r.ErrorPct))
		if r.Inside {
			inside++
		}
		if finite(float64(r.OraclePct)) {
			known = append(known, float64(r.OraclePct))
		}
	}
	a.Coverage = Percent(100 * float64(inside) / float64(len(loo)))
	a.LOO, a.Apart, a.Oracle = statsOf(loo), statsOf(apart), statsOf(known)
	for _, m := range models {
		if m.name == "" {
			continue
		}
		var errors []float64
		for _, r := range a.Rows {
			if !r.Apart {
				errors = append(errors, float64(r.Baselines[m.name]))
			}
		}
		a.Baselines[m.name] = statsOf(errors)
	}
}
