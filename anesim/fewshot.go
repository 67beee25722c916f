package anesim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"anelab/chunking"
	"anelab/internal/format"
)

// MaxShots is how many timed calls a transfer is meant for; more than that is a calibration.
const MaxShots = 5

// Spread of constants between relatives: how far one device or model may be from another before any call says so.
const (
	// Streams of M1 to M5 base parts lie between 51 and 70 GB/s, of Pro and Max parts twice that (spec ane.md A2.1), so a
	// device of the same class is within a third of its relative.
	deviceSpread = 0.35
	// On the same device the rates are the same; what differs is the shape of the work behind a byte or a position.
	modelSpread = 0.25
	// Calls that miss the fit by so much, the session's factor forgiven, do not belong together: whole sessions of the data
	// scatter by 1 %, and left-out chunks of other layouts miss by at most 7 %.
	mixedUp = 0.15
)

// Transfer is a device or a model made from a relative and a few timed calls.
type Transfer struct {
	Device Device
	Fit    Stats    // of the calls, the session's factor forgiven
	Notes  []string // what the constants rest on
}

// Relation says what is new: another device runs a known model, or a known device runs another model.
type Relation uint8

// The two kinds of transfer.
const (
	OtherDevice Relation = iota
	OtherModel
)

// TransferTo fits the constants of a relative to a few timed calls. The source's constants become priors, as uncertain as
// relatives differ; the calls move what they can tell, and what they cannot keeps the source's value and a wide range.
func TransferTo(target Device, source Device, relation Relation, rows []Measurement, models map[string]*chunking.Model) (Transfer, error) {
	spread := deviceSpread
	if relation == OtherModel {
		spread = modelSpread
	}
	base := inherit(target, source, spread)
	samples, err := shots(base, rows, models)
	if err != nil {
		return Transfer{}, err
	}
	d := fitChunks(base.FromPriors(), samples)
	d.Evidence.IntervalFactor = normal90 // nothing was left out to measure it
	// The calls are of one session on one build, and no other tells how far builds differ.
	d.Noise.Session = math.Hypot(source.Noise.Session, source.Noise.Step)
	d.Evidence.HostSDSeconds = max(source.Evidence.HostSDSeconds, d.Constants[HostStep].SD)
	if err := together(&d, samples); err != nil {
		return Transfer{}, err
	}
	loo := residuals("shot", func(s *sample) (float64, Range) { return d.seconds(&s.q), Range{} }, samples)
	out := Transfer{Device: d, Fit: accuracyOf(loo).ChunkScaled}
	out.Notes = append(out.Notes, fmt.Sprintf("%d timed calls; everything else from %s, ± %.0f %%", len(samples), source.Title, 100*spread))
	return out, nil
}

// inherit makes the source's constants the target's priors.
func inherit(target, source Device, spread float64) Device {
	d := target
	d.Noise = source.Noise
	for t := range NumTerms {
		k := &source.Constants[t]
		p := Prior{Value: k.Value, SD: math.Hypot(k.SD, spread*k.Value), Source: fmt.Sprintf("%s, ± %.0f %% between relatives", source.Title, 100*spread)}
		if p.SD == 0 {
			p.SD = k.Prior.SD
		}
		d.Constants[t] = Constant{Unit: t.Unit(), Group: k.Group, Prior: p}
	}
	return d
}

// shots turns rows into samples and refuses what does not belong to one device and one way of measuring.
func shots(d Device, rows []Measurement, models map[string]*chunking.Model) ([]sample, error) {
	var samples []sample
	devices, modelNames := map[string]int{}, map[string]int{}
	planners := map[string]*chunking.Planner{}
	for _, m := range rows {
		model := models[m.Model]
		if model == nil {
			return nil, shotError(m, "model "+m.Model, "a model with a configuration: "+strings.Join(names(models), ", "))
		}
		if reason := m.unfitShot(); reason != "" {
			return nil, shotError(m, reason, "warm decode calls of single chunks, quality A or B")
		}
		devices[m.Device]++
		modelNames[m.Model]++
		if planners[m.Model] == nil {
			planners[m.Model] = chunking.NewPlanner(model)
		}
		s, err := shot(m, model, planners[m.Model])
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	switch {
	case len(samples) == 0:
		return nil, &format.Error{Path: "calls", Got: "none", Want: fmt.Sprintf("1 to %d timed calls", MaxShots)}
	case len(samples) > MaxShots:
		return nil, &format.Error{Path: "calls", Got: fmt.Sprint(len(samples)), Want: fmt.Sprintf("at most %d timed calls", MaxShots), Fix: "calibrate a device file of its own on them"}
	case len(devices) > 1:
		return nil, &format.Error{Path: "calls", Got: "devices " + strings.Join(keys(devices), " and "), Want: "calls of one device", Fix: "transfer to each by itself"}
	case len(modelNames) > 1:
		return nil, &format.Error{Path: "calls", Got: "models " + strings.Join(keys(modelNames), " and "), Want: "calls of one model", Fix: "transfer to each by itself"}
	}
	return samples, nil
}

// unfitShot is [Measurement.unfit] without the rule that one model alone is fitted.
func (m Measurement) unfitShot() string {
	m.Model = fitModel
	return m.unfit()
}

// The layout is planned for the row's own model, which may be another one than the source was fitted on.
func shot(m Measurement, model *chunking.Model, planner *chunking.Planner) (sample, error) {
	layout, err := m.layout(model)
	if err != nil {
		return sample{}, err
	}
	plan, err := planner.Plan(layout)
	if err != nil {
		return sample{}, err
	}
	k := m.chunkNumber() - 1
	if k >= len(plan.Chunks) {
		return sample{}, shotError(m, "chunk "+m.Component, fmt.Sprintf("a chunk of the layout, 1 to %d", len(plan.Chunks)))
	}
	return sample{Measurement: m, plan: plan, chunk: k, q: planQuantities(plan, m.copyBack())[k]}, nil
}

// Rows are named by line and experiment, as everywhere that measurements are refused.
func shotError(m Measurement, got, want string) error {
	return &format.Error{Path: "calls", Field: m.where(), Got: got, Want: want}
}

// together refuses calls that no device explains: after the fit, and after each session's own factor, one of them is far off.
func together(d *Device, samples []sample) error {
	var problems []error
	for _, session := range groupBy(samples, func(s *sample) string { return s.Experiment }) {
		ratios := make([]float64, len(session))
		for i := range session {
			ratios[i] = session[i].Seconds / d.seconds(&session[i].q)
		}
		scale := median(ratios)
		for i := range session {
			if off := ratios[i]/scale - 1; math.Abs(off) > mixedUp {
				problems = append(problems, &format.Error{Path: "calls", Field: session[i].where(),
					Got:  fmt.Sprintf("%.3g ms, %+.0f %% beside the other calls", 1e3*session[i].Seconds, 100*off),
					Want: "calls of one device in one state", Fix: "leave out cold, throttled or GPU-placed runs; time each chunk again"})
			}
		}
	}
	return errors.Join(problems...)
}

// In order, for messages that read the same every time.
func names(models map[string]*chunking.Model) []string {
	count := map[string]int{}
	for n := range models {
		count[n]++
	}
	return keys(count)
}

// keys of a map in order, for messages that read the same every time.
func keys(m map[string]int) []string {
	return slices.Sorted(maps.Keys(m))
}
