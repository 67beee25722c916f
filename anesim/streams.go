package anesim

import (
	"fmt"
	"math"

	"anelab/internal/format"
)

// Stream is one timed call of a program that does little but stream its weights, as benchmarks of bandwidth run them: an LM
// head by itself, a stack of linears.
type Stream struct {
	Name        string
	WeightBytes float64
	Seconds     float64
}

// TransferStreams fits the two constants that such calls can tell, dispatch and weight stream, to calls of one session;
// every other one keeps the value of the relative and a wide range. The calls say nothing of chunks, so no context, model or
// weight encoding counts as seen.
func TransferStreams(target, source Device, calls []Stream) (Transfer, error) {
	base := inherit(target, source, deviceSpread)
	d := base.FromPriors()
	p := newProblem(priorsOf(&d, 0, chunkTerms))
	var obs []observation
	for _, c := range calls {
		if !(c.WeightBytes > 0) || !(c.Seconds >= minCallSeconds && c.Seconds <= maxCallSeconds) {
			return Transfer{}, &format.Error{Path: "calls", Field: c.Name, Got: fmt.Sprintf("%g MB in %g ms", c.WeightBytes/1e6, 1e3*c.Seconds),
				Want: "weights, and a time of 0.1 ms to a minute"}
		}
		q := c.quantities()
		obs = append(obs, observation{x: overTime(q[:], c.Seconds), sd: d.Noise.Chunk})
	}
	if len(obs) == 0 {
		return Transfer{}, &format.Error{Path: "calls", Got: "none", Want: "timed calls on the Neural Engine with the size of their weights"}
	}
	p.addSession(obs, d.Noise.Session)
	d.adopt(p.solve(), 1, len(obs))
	d.Evidence = Evidence{Experiments: 1, Rows: len(obs), IntervalFactor: normal90,
		HostSDSeconds: max(source.Evidence.HostSDSeconds, d.Constants[HostStep].SD)}
	d.Noise.Session = math.Hypot(source.Noise.Session, source.Noise.Step)
	out := Transfer{Device: d}
	out.Notes = append(out.Notes, fmt.Sprintf("%d timed streams of weights; attention, hand-off and host from %s, ± %.0f %%", len(obs), source.Title, 100*deviceSpread))
	return out, out.missOf(calls)
}

// quantities of a program without caches.
func (s *Stream) quantities() Quantities {
	var q Quantities
	q[Dispatch], q[WeightStream] = 1, s.WeightBytes
	return q
}

// missOf files how far the calls are from the fit, the session's factor forgiven, and refuses a call that is far off: it ran
// on another engine, or its size is that of the file and not of what is streamed.
func (t *Transfer) missOf(calls []Stream) error {
	ratios := make([]float64, len(calls))
	for i := range calls {
		q := calls[i].quantities()
		ratios[i] = calls[i].Seconds / t.Device.seconds(&q)
	}
	scale := median(ratios)
	var errs []float64
	worst := 0
	for i, r := range ratios {
		errs = append(errs, 100*(scale/r-1))
		if math.Abs(r/scale-1) > math.Abs(ratios[worst]/scale-1) {
			worst = i
		}
	}
	t.Fit = statsOf(errs)
	if off := ratios[worst]/scale - 1; math.Abs(off) > mixedUp {
		return &format.Error{Path: "calls", Field: calls[worst].Name, Got: fmt.Sprintf("%.3g ms, %+.0f %% beside the other calls", 1e3*calls[worst].Seconds, 100*off),
			Want: "programs that stream their weights on one device in one state", Fix: "leave out this one, or the others"}
	}
	return nil
}
