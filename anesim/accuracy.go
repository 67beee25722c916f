package anesim

import (
	"math"
	"sort"
	"strconv"
)

// Percent prints as a JSON number, or null when there was nothing to measure.
type Percent float64

// nan is the percentage of nothing.
var nan = Percent(math.NaN())

// MarshalJSON writes NaN as null.
func (p Percent) MarshalJSON() ([]byte, error) {
	if !finite(float64(p)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(p), 'g', 6, 64), nil
}

// Stats sums up absolute relative errors.
type Stats struct {
	N      int     `json:"n"`
	Median Percent `json:"median_pct"`
	P90    Percent `json:"p90_pct"` // linear between order statistics
	Max    Percent `json:"max_pct"`
}

// Accuracy of predictions: of single chunks and of the chunk sums of sessions that timed all chunks; raw, and after
// dividing by the session's own median(measured/predicted), which forgives a warm phone but not a wrong proportion.
type Accuracy struct {
	ChunkRaw    Stats `json:"chunk_raw"`
	ChunkScaled Stats `json:"chunk_scaled"` // experiments with ≥ 3 rows only
	SumRaw      Stats `json:"sum_raw"`
	SumScaled   Stats `json:"sum_scaled"`

	Coverage90 Percent `json:"coverage90_pct"` // share of chunks inside their 90 % interval; null for models without one
}

// minScaled is the least number of rows that a session factor may be taken from.
const minScaled = 3

// Residual is one row beside its prediction.
type Residual struct {
	Set        string   `json:"set"` // "fit", "loo" or "score"
	Line       int      `json:"line"`
	Experiment string   `json:"experiment"`
	Device     string   `json:"device"`
	Component  string   `json:"component"`
	Chunk      string   `json:"chunk"`
	Layout     string   `json:"layout"`
	Context    int      `json:"context"`
	MeasuredS  float64  `json:"measured_s"`
	PredictedS float64  `json:"predicted_s"`
	Range      Range    `json:"range90_s"`
	Inside     bool     `json:"inside90"`
	ErrorPct   Percent  `json:"error_pct"`        // 100·(predicted/measured − 1)
	Scale      *float64 `json:"scale"`            // median(measured/predicted) of the experiment; null under 3 rows
	ScaledPct  Percent  `json:"scaled_error_pct"` // null under 3 rows

	chunks int // of the layout
}

// residuals predicts samples of one family, session by session.
func residuals(set string, predict estimator, samples []sample) []Residual {
	var all []Residual
	for _, session := range groupBy(samples, func(s *sample) string { return s.Experiment }) {
		rows := make([]Residual, len(session))
		ratios := make([]float64, len(session))
		for i := range session {
			rows[i] = residual(set, predict, &session[i])
			ratios[i] = rows[i].MeasuredS / rows[i].PredictedS
		}
		if len(rows) >= minScaled {
			scale := median(ratios)
			for i := range rows {
				rows[i].Scale = &scale
				rows[i].ScaledPct = Percent(100 * (rows[i].PredictedS*scale/rows[i].MeasuredS - 1))
			}
		}
		all = append(all, rows...)
	}
	return all
}

// A row is inside when the measured time lies in the interval; the error is signed so that a bias shows.
func residual(set string, predict estimator, s *sample) Residual {
	seconds, interval := predict(s)
	return Residual{Set: set, Line: s.Line, Experiment: s.Experiment, Device: s.Device, Component: s.Component,
		Chunk: s.plan.Chunks[s.chunk].String(), Layout: s.Layout, Context: s.plan.Context,
		MeasuredS: s.Seconds, PredictedS: seconds, Range: interval, Inside: interval.Lo <= s.Seconds && s.Seconds <= interval.Hi,
		ErrorPct: Percent(100 * (seconds/s.Seconds - 1)), ScaledPct: nan, chunks: s.chunks()}
}

// accuracyOf sums up residuals; those of one experiment stand together.
func accuracyOf(rows []Residual) Accuracy {
	covered := coverage(rows)
	var chunkRaw, chunkScaled, sumRaw, sumScaled []float64
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Experiment == rows[0].Experiment {
			n++
		}
		session := rows[:n]
		rows = rows[n:]
		for _, r := range session {
			chunkRaw = append(chunkRaw, float64(r.ErrorPct))
			if r.Scale != nil {
				chunkScaled = append(chunkScaled, float64(r.ScaledPct))
			}
		}
		if measured, predicted, ok := sums(session); ok {
			sumRaw = append(sumRaw, 100*(predicted/measured-1))
			if scale := session[0].Scale; scale != nil {
				sumScaled = append(sumScaled, 100*(predicted**scale/measured-1))
			}
		}
	}
	return Accuracy{ChunkRaw: statsOf(chunkRaw), ChunkScaled: statsOf(chunkScaled), SumRaw: statsOf(sumRaw), SumScaled: statsOf(sumScaled),
		Coverage90: covered}
}

// sums adds the chunks of a session; false when one of them was not timed. Repeats of a chunk count on both sides.
func sums(session []Residual) (measured, predicted float64, complete bool) {
	timed := map[string]bool{}
	for _, r := range session {
		measured += r.MeasuredS
		predicted += r.PredictedS
		timed[r.Component] = true
	}
	return measured, predicted, len(timed) == session[0].chunks
}

// It sorts its argument, and makes it absolute: callers hand over a slice of their own.
func statsOf(errors []float64) Stats {
	if len(errors) == 0 {
		return Stats{Median: nan, P90: nan, Max: nan}
	}
	for i := range errors {
		errors[i] = math.Abs(errors[i])
	}
	sort.Float64s(errors)
	return Stats{N: len(errors), Median: Percent(quantile(0.5, errors)), P90: Percent(quantile(0.9, errors)), Max: Percent(errors[len(errors)-1])}
}

// coverage is the share of rows inside their interval, NaN where there are no intervals.
func coverage(rows []Residual) Percent {
	inside, intervals := 0, 0
	for _, r := range rows {
		if r.Range.Hi > 0 {
			intervals++
		}
		if r.Inside {
			inside++
		}
	}
	return Percent(100 * float64(inside) / float64(intervals))
}

// Of an even number it is the mean of the middle two.
func median(x []float64) float64 {
	x = append([]float64(nil), x...)
	sort.Float64s(x)
	return quantile(0.5, x)
}

// quantile is linear between order statistics: position q·(n−1), definition 7 of Hyndman and Fan (1996), which R and
// numpy use. Gonum's LinInterp counts positions from 1/n instead.
func quantile(q float64, sorted []float64) float64 {
	pos := q * float64(len(sorted)-1)
	i := int(pos)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	return sorted[i] + (pos-float64(i))*(sorted[i+1]-sorted[i])
}
