package anesim

// estimator predicts the time of a chunk and, if it can, an interval.
type estimator func(s *sample) (seconds float64, interval Range)

// rival is a way to predict chunk times that can be fitted to samples of one family. The cost model has no name.
type rival struct {
	name string
	fit  func(base Device, train []sample) estimator
}

// rivals are the cost model and what it must beat to have earned its terms (spec ane.md, baselines).
func rivals() []rival {
	return []rival{
		{"", fitModelOf},
		{"ms_per_layer", fitPerLayer},
		{"bytes_per_bandwidth_plus_floor", fitBytesFloor},
	}
}

// fitModelOf is the cost model with intervals from the folds within the training rows.
func fitModelOf(base Device, train []sample) estimator {
	d := fitChunks(base.FromPriors(), train)
	d.Evidence.IntervalFactor, d.Evidence.WorstMiss = leftOutSpread(base, train)
	return func(s *sample) (float64, Range) {
		e := d.estimate(s.plan, s.chunk, s.q)
		return e.seconds, d.around(e.seconds, d.sd(e))
	}
}

// fitPerLayer is constant time per layer: the first thing that anyone tries on a spreadsheet.
func fitPerLayer(_ Device, train []sample) estimator {
	return fitPlain(train, func(s *sample) []float64 { return []float64{float64(s.totals().Layers)} })
}

// fitBytesFloor is weight bytes over a bandwidth plus a time per call: the roofline of decode, which is bound by its weights
// (spec ane.md B1, LLM-Viewer). Its users complain that it is too fast by a factor of 1.4 to 1.9.
func fitBytesFloor(_ Device, train []sample) estimator {
	return fitPlain(train, func(s *sample) []float64 { return []float64{float64(s.totals().WeightBytes), 1} })
}

// fitPlain is least squares of relative errors with non-negative coefficients and nothing known beforehand: the same
// session factor as the cost model's, priors so wide that they only fix the scale.
func fitPlain(train []sample, features func(*sample) []float64) estimator {
	scale := features(&train[0])
	priors := make([]Prior, len(scale))
	for i, x := range scale {
		priors[i] = Prior{SD: wide * train[0].Seconds / max(x, 1)}
	}
	p := newProblem(priors)
	for _, session := range groupBy(train, func(s *sample) string { return s.Experiment }) {
		var obs []observation
		for i := range session {
			obs = append(obs, observation{x: overTime(features(&session[i]), session[i].Seconds), sd: plainChunkSD})
		}
		p.addSession(obs, plainSessionSD)
	}
	theta := p.solve().value
	return func(s *sample) (float64, Range) {
		var seconds float64
		for i, x := range features(s) {
			seconds += float64(theta[i] * x)
		}
		return seconds, Range{}
	}
}

// The noise that the baselines are fitted with, and how many times the first row's time their coefficients may explain.
const (
	plainChunkSD   = 0.01
	plainSessionSD = 0.02
	wide           = 100
)
