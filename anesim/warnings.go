package anesim

import (
	"fmt"
	"strings"

	"anelab/chunking"
)

// warnings says, once per plan, where it leaves what the device was calibrated on.
func (d *Device) warnings(p *chunking.Plan) []string {
	all := []string{}
	say := func(text string, args ...any) { all = append(all, fmt.Sprintf(text, args...)) }
	e := &d.Evidence
	if e.Experiments == 0 {
		say("%s was never measured: every constant is a prior, the range is what the priors leave", d.Title)
		return append(all, d.planWarnings(p)...)
	}
	if len(e.Chunks) == 0 {
		say("no chunk was timed on %s, only its stream of weights: attention, hand-off and host are those of a relative", d.Title)
		return append(all, d.planWarnings(p)...)
	}
	if lo, hi := e.contextRange(); p.Context < lo || p.Context > hi {
		say("context %d is outside the calibrated %s; the estimate is an extrapolation", p.Context, contextText(lo, hi))
	} else if text := d.layoutDoubt(p); text != "" {
		say("%s", text)
	}
	if !e.knows("", p.Model) {
		say("the model has %d layers of width %d; constants were fitted on %s", len(p.Model.Layers), p.Model.Config.HiddenSize, e.modelNames())
	}
	for _, w := range unmeasuredWeights(p, e) {
		say("weights %s were not measured on %s: priced by bytes, but the rate per element may be the limit; the range allows for both", w, d.Title)
	}
	return append(all, d.planWarnings(p)...)
}

func contextText(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d–%d", lo, hi)
}

// layoutDoubt names chunks that were not timed at a context where too few layouts were.
func (d *Device) layoutDoubt(p *chunking.Plan) string {
	base := d.Evidence.nearestSupported(p.Context)
	if base == p.Context {
		return ""
	}
	var unknown []string
	for i, q := range planQuantities(p, CopyBackNone) {
		if d.contextDoubt(p.Chunks[i], p, &q) > 0 {
			unknown = append(unknown, p.Chunks[i].String())
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	for _, c := range d.Evidence.Contexts {
		if c.Context == p.Context {
			return fmt.Sprintf("context %d was measured with one layout only (%s): how the time of %s splits between attention and hand-off is not known, the range allows for it",
				p.Context, strings.Join(c.Layouts, ", "), strings.Join(unknown, ", "))
		}
	}
	return fmt.Sprintf("no chunk was timed at context %d; the estimate is interpolated", p.Context)
}

func (e *Evidence) modelNames() string {
	var names []string
	for _, m := range e.Models {
		names = append(names, fmt.Sprintf("%s (%d layers of width %d)", m.Name, m.Layers, m.HiddenSize))
	}
	return strings.Join(names, ", ")
}

// unmeasuredWeights lists encodings of the plan that no calibration row had, each once.
func unmeasuredWeights(p *chunking.Plan, e *Evidence) []string {
	var all []string
	seen := map[string]bool{}
	for _, c := range p.Chunks {
		w := c.Weights.String()
		if !seen[w] && !e.hasWeights(w) && e.Experiments > 0 {
			all = append(all, w)
		}
		seen[w] = true
	}
	return all
}

// planWarnings are about the plan alone.
func (d *Device) planWarnings(p *chunking.Plan) []string {
	if t := p.Layout.QueryTokens; t > 1 {
		return []string{fmt.Sprintf("%d query tokens per call: constants were fitted on one; the work per token is priced, the time of a verify call is not calibrated", t)}
	}
	return nil
}
