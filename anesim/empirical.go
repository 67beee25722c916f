package anesim

import "anelab/chunking"

// KVForm says where a program's caches live.
type KVForm string

// Explicit caches are inputs and outputs of every call, as plans have them; state is Core ML's MLState; stateless programs
// return new rows alone and the host appends them.
const (
	KVExplicit  KVForm = ""
	KVState     KVForm = "mlstate"
	KVStateless KVForm = "stateless"
)

// EmpiricalFactor is a rule of thumb for what the sum of terms does not explain: times are multiplied by it. It has a wide
// spread on purpose, because behind each stands one session or two.
type EmpiricalFactor struct {
	Rule   string   `json:"rule"`
	Factor float64  `json:"factor"`
	SD     float64  `json:"sd"`
	Text   string   `json:"text"`
	Effect []string `json:"effects"` // rows of effects.csv

	applies func(p *chunking.Plan, class Class, w Workload) bool
}

// wholeProgram is where the sum law fails: merging three chunks into one program would save 1.3 ms of calls and hand-off by
// it, and cost 3.6 ms instead; 8.4 % of its ops had left the engine. Whether an explicit-I/O program would do the same, and
// from what length on, nobody tried.
var empiricalFactors = []EmpiricalFactor{
	{
		Rule: "whole-program", Factor: 1.2, SD: 0.12, Effect: []string{"layout-3to1-mlstate-mac"},
		Text: "all layers and the head in one program ran a fifth slower than the sum of its terms",
		applies: func(p *chunking.Plan, _ Class, _ Workload) bool {
			return len(p.Chunks) == 1 && p.Chunks[0].Totals.Layers >= refusedLayers
		},
	},
	{
		Rule: "state", Factor: 1, SD: 0.02,
		Effect: []string{"state-explicit-to-mlstate4-mac", "state-explicit-to-mlstate3-mac", "state-explicit-to-mlstate4-iphone"},
		Text:   "a state instead of explicit caches changed rates by −1.4 to +1.3 %, across sessions and harnesses",
		applies: func(p *chunking.Plan, _ Class, w Workload) bool {
			return w.KV == KVState && len(p.Chunks) > 1
		},
	},
	{
		Rule: "stateless", Factor: 1, SD: 0.1,
		Text:    "programs that return new rows alone were written and never timed",
		applies: func(_ *chunking.Plan, _ Class, w Workload) bool { return w.KV == KVStateless },
	},
}

// EmpiricalFactors lists the rules that a plan meets. [Predict] does not apply them: its sum stays a sum of terms.
func EmpiricalFactors(p *chunking.Plan, d Device, w Workload) []EmpiricalFactor {
	var all []EmpiricalFactor
	for _, f := range empiricalFactors {
		if f.applies(p, d.Class, w) {
			all = append(all, f)
		}
	}
	return all
}

// empiricalFactor is the first rule with a factor other than 1.
func empiricalFactor(p *chunking.Plan, class Class, w Workload) (EmpiricalFactor, string, bool) {
	for _, f := range empiricalFactors {
		if f.Factor != 1 && f.applies(p, class, w) {
			return f, f.Rule, true
		}
	}
	return EmpiricalFactor{}, "", false
}

func (f *EmpiricalFactor) warning() string { return "empirical rule " + f.Rule + ": " + f.Text }

// WithEmpirical is a prediction with the rules that the plan meets applied to its total: times and ranges, no terms.
func WithEmpirical(x Prediction, p *chunking.Plan, d Device, w Workload) Prediction {
	for _, f := range EmpiricalFactors(p, d, w) {
		half := x.TimeRange.Hi - x.TimeS
		wider := d.Evidence.IntervalFactor * f.SD * x.TimeS
		x.TimeS *= f.Factor
		x.TimeRange = Range{Lo: max(x.TimeS-half-wider, x.TimeS/10), Hi: x.TimeS + half + wider}
		x.TokPerSec, x.Range = 1/x.TimeS, Range{Lo: 1 / x.TimeRange.Hi, Hi: 1 / x.TimeRange.Lo}
		if f.Factor == 1 { // [Predict] warns of the others itself
			x.Warnings = append(x.Warnings, f.warning())
		}
	}
	return x
}
