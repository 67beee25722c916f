package anesim

import (
	"fmt"
	"math"
	"sort"

	"anelab/chunking"
)

// Options says what measurements are of.
type Options struct {
	Devices []Device                   // families with their priors; the first that claims a device name gets its rows
	Models  map[string]*chunking.Model // by the name in the model column
}

// Calibration is the result of fitting constants to measurements. Its JSON form is the report of `simulate calibrate`.
type Calibration struct {
	FormatVersion string              `json:"format_version"`
	Fit           Accuracy            `json:"fit"`            // on the rows fitted
	LOO           Accuracy            `json:"loo"`            // each experiment predicted from all others
	Score         Accuracy            `json:"score"`          // rows that were not fitted on; empty before [Calibration.AddScore]
	Coverage90    Percent             `json:"coverage90_pct"` // of left-out rows inside their 90 % interval
	ScoreCoverage Percent             `json:"score_coverage90_pct"`
	Baselines     map[string]Baseline `json:"baselines"`
	Rows          []Residual          `json:"rows"`
	Sessions      []Session           `json:"sessions"`
	Constants     []FittedConstant    `json:"constants"`
	Excluded      []ExcludedClass     `json:"excluded"`
	Doubts        []string            `json:"doubts"`

	Steps           StepAccuracy         `json:"steps"`
	Intervals       Sharpness            `json:"intervals"`       // of left-out rows
	IntervalsKnown  Sharpness            `json:"intervals_known"` // but for folds that took away the only session of a context
	Control         Accuracy             `json:"control"`         // left out, with the times dealt out at random
	Experiments     []ExperimentResidual `json:"experiments"`     // left out
	TermChecks      []TermCheck          `json:"terms"`
	Candidates      []TermCheck          `json:"candidates"` // terms that were tried and are no part of the sum
	Identifiability []Identified         `json:"identifiability"`

	Devices []Device `json:"-"` // fitted families, in the order given; those without rows are missing

	options Options
	fitted  map[string]bool // experiments
	models  []rival
	train   []sample
}

// Baseline is the accuracy of a model that ours must beat.
type Baseline struct {
	Fit   Accuracy `json:"fit"`
	LOO   Accuracy `json:"loo"`
	Score Accuracy `json:"score"`
}

// Session is the factor that a session puts on all its rows, estimated and thrown away.
type Session struct {
	Experiment string  `json:"experiment"`
	Device     string  `json:"device"`
	Rows       int     `json:"rows"`
	Scale      float64 `json:"scale"`
}

// FittedConstant is one constant of one device as the report shows it.
type FittedConstant struct {
	Device     string  `json:"device"`
	Name       string  `json:"name"`
	Value      float64 `json:"value"`
	SD         float64 `json:"sd"`
	Unit       string  `json:"unit"`
	Prior      float64 `json:"prior"`
	PriorSD    float64 `json:"prior_sd"`
	Confidence string  `json:"confidence"`
	Source     string  `json:"source"`
}

// Calibrate fits the constants of every device family that has rows, leaves out each experiment in turn, and does the same
// for the baselines. Rows that cannot be fitted are listed by class; none is dropped in silence.
func Calibrate(rows []Measurement, opt Options) (*Calibration, error) {
	s := newSampler(opt.Devices, opt.Models)
	train := s.samples(rows)
	if len(train) == 0 {
		return nil, fmt.Errorf("no row to fit: want warm %s rows with %s, one query token, quality A or B and a chunk number", fitModel, fitKVMode)
	}
	c := &Calibration{FormatVersion: "1.0", options: opt, train: train, models: rivals(), Baselines: map[string]Baseline{},
		fitted: map[string]bool{}, Excluded: s.excluded.sorted("train"), Doubts: Doubts(rows), Rows: []Residual{}}
	for i := range train {
		c.fitted[train[i].Experiment] = true
	}
	c.fitDevices(rows)
	for _, m := range c.models {
		c.fitAndLeaveOut(m)
	}
	c.leaveOutSteps(rows)
	if c.TermChecks, c.Candidates = []TermCheck{}, []TermCheck{}; c.LOO.ChunkRaw.N > 0 {
		c.Control = c.shuffledControl()
		c.checkTerms()
		c.checkCandidates()
	} else {
		c.Control = accuracyOf(nil)
	}
	return c, nil
}

// fitDevices fits each family with rows and measures how far its intervals must reach.
func (c *Calibration) fitDevices(rows []Measurement) {
	for i, base := range c.options.Devices {
		family := familyOf(c.train, i)
		if len(family) == 0 {
			continue
		}
		d := fitChunks(base.FromPriors(), family)
		d = fitHost(d, hostSamples(family, rows))
		d.Evidence.IntervalFactor, d.Evidence.WorstMiss = leftOutSpread(base, family)
		c.Devices = append(c.Devices, d)
		c.Identifiability = append(c.Identifiability, Identify(d)...)
		for _, t := range TermNames() {
			c.Constants = append(c.Constants, fittedConstant(&d, t))
		}
		for _, session := range groupBy(family, func(s *sample) string { return s.Experiment }) {
			c.Sessions = append(c.Sessions, Session{Experiment: session[0].Experiment, Device: d.Name, Rows: len(session), Scale: sessionScale(&d, session)})
		}
	}
}

// Families are told apart by their place in the options, because two device files may claim similar names.
func familyOf(samples []sample, i int) []sample {
	var all []sample
	for _, s := range samples {
		if s.family == i {
			all = append(all, s)
		}
	}
	return all
}

// The prior stands beside the value, so that a reader sees how far the rows moved it.
func fittedConstant(d *Device, name string) FittedConstant {
	t, _ := ParseTerm(name)
	k := &d.Constants[t]
	return FittedConstant{Device: d.Name, Name: name, Value: k.Value, SD: k.SD, Unit: t.Unit(), Prior: k.Prior.Value, PriorSD: k.Prior.SD,
		Confidence: k.Confidence, Source: k.Source}
}

// sessionScale estimates the factor of a session from its residuals: the mean shift u of [problem.addSession], shrunk by
// its prior.
func sessionScale(d *Device, session []sample) float64 {
	var sum float64
	precision := 1 / square(d.Noise.Session)
	for i := range session {
		s := &session[i]
		w := 1 / (square(d.Noise.Chunk) + square(printedSD/s.Seconds))
		precision += w
		sum += w * (1 - d.seconds(&s.q)/s.Seconds)
	}
	return 1 / (1 - sum/precision)
}

// leftOutSpread leaves out every experiment of a family. The factor is the 90 % point of the left-out rows' errors in
// predicted standard deviations; the worst miss is that of a session's chunk sum.
func leftOutSpread(base Device, family []sample) (factor, worst float64) {
	var z []float64
	for _, f := range folds(family) {
		if len(f.train) == 0 {
			break // the only session: nothing to predict it from
		}
		d := fitChunks(base.FromPriors(), f.train)
		var measured, predicted float64
		for i := range f.test {
			s := &f.test[i]
			e := d.estimate(s.plan, s.chunk, s.q)
			z = append(z, math.Abs(e.seconds-s.Seconds)/d.sd(e))
			measured, predicted = measured+s.Seconds, predicted+e.seconds
		}
		worst = max(worst, math.Abs(predicted/measured-1))
	}
	return intervalFactor(z), worst
}

// intervalFactor is the 90 % point of the errors, but not less than minIntervalFactor: the standard deviations count doubts
// that few sessions put to the test, and a few that agree by luck are no licence for a thin interval.
func intervalFactor(z []float64) float64 {
	if len(z) == 0 {
		return normal90
	}
	sort.Float64s(z)
	return max(quantile(0.9, z), minIntervalFactor)
}

const minIntervalFactor = 1.2

// fold is one experiment left out.
type fold struct {
	train, test []sample
}

// Whole experiments leave together: rows of one session share its factor, and a row that stayed behind would give it
// away.
func folds(samples []sample) []fold {
	var all []fold
	for _, session := range groupBy(samples, func(s *sample) string { return s.Experiment }) {
		f := fold{test: session}
		for _, s := range samples {
			if s.Experiment != session[0].Experiment {
				f.train = append(f.train, s)
			}
		}
		all = append(all, f)
	}
	return all
}

// AddScore predicts the rows of another file with the fitted constants. Rows of experiments that were fitted are listed,
// not scored.
func (c *Calibration) AddScore(rows []Measurement) {
	s := newSampler(c.options.Devices, c.options.Models)
	var fresh []sample
	for _, one := range s.samples(rows) {
		switch {
		case c.fitted[one.Experiment]:
			s.excluded.add(one.Measurement, "experiment was fitted on")
		case len(familyOf(c.train, one.family)) == 0:
			s.excluded.add(one.Measurement, "nothing was fitted on "+one.Device)
		default:
			fresh = append(fresh, one)
		}
	}
	c.Excluded = append(c.Excluded, s.excluded.sorted("score")...)
	for _, d := range Doubts(rows) {
		c.Doubts = append(c.Doubts, "score file, "+d)
	}
	for _, m := range c.models {
		c.scoreWith(m, fresh)
	}
}

// fitAndLeaveOut files the accuracy of one model on the training rows, seen and left out.
func (c *Calibration) fitAndLeaveOut(m rival) {
	var fit, loo []Residual
	for i := range c.options.Devices {
		family := familyOf(c.train, i)
		if len(family) == 0 {
			continue
		}
		fit = append(fit, residuals("fit", m.fit(c.options.Devices[i], family), family)...)
		for _, f := range folds(family) {
			if len(f.train) == 0 {
				continue
			}
			loo = append(loo, residuals("loo", m.fit(c.options.Devices[i], f.train), f.test)...)
		}
	}
	if m.name != "" {
		c.Baselines[m.name] = Baseline{Fit: accuracyOf(fit), LOO: accuracyOf(loo), Score: accuracyOf(nil)}
		return
	}
	c.Fit, c.LOO, c.Score = accuracyOf(fit), accuracyOf(loo), accuracyOf(nil)
	c.Coverage90, c.ScoreCoverage = c.LOO.Coverage90, c.Score.Coverage90
	c.experimentResiduals(loo)
	c.Intervals, c.IntervalsKnown = sharpnessOf(loo), c.sharpnessOfKnown(loo)
	c.Rows = append(append(c.Rows, fit...), loo...)
}

// Constants are fitted on the training rows alone; nothing of the score file reaches them.
func (c *Calibration) scoreWith(m rival, fresh []sample) {
	var score []Residual
	for i, base := range c.options.Devices {
		family, test := familyOf(c.train, i), familyOf(fresh, i)
		if len(family) > 0 && len(test) > 0 {
			score = append(score, residuals("score", m.fit(base, family), test)...)
		}
	}
	if m.name != "" {
		b := c.Baselines[m.name]
		b.Score = accuracyOf(score)
		c.Baselines[m.name] = b
		return
	}
	c.Score = accuracyOf(score)
	c.ScoreCoverage = c.Score.Coverage90
	c.Rows = append(c.Rows, score...)
}
