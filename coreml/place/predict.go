package place

import (
	"fmt"
	"math"

	"anelab/coreml/census"
	"anelab/coreml/mil"
)

// Options say which machine is meant.
type Options struct {
	Limits Limits // zero = Since16
	Costs  Costs  // zero = DefaultCosts
}

func (o Options) limits() *Limits {
	if o.Limits == (Limits{}) {
		o.Limits = Since16
	}
	return &o.Limits
}

func (o Options) costs() Costs {
	if o.Costs == (Costs{}) {
		return DefaultCosts
	}
	return o.Costs
}

// OpPlacement is where one op runs.
type OpPlacement struct {
	Name    string
	Type    string
	Backend Backend
	Refusal *Refusal // why the engine does not take it; nil if it would
	// PenaltySeconds is how much more the compiler expects of the cheapest placement that has the op on the engine: 0 where it is
	// there, +Inf where it cannot be.
	PenaltySeconds float64
}

// Placement is where the ops of a function run.
type Placement struct {
	Function string
	Ops      []OpPlacement // in program order; constants are none
	Between  int           // ops besides, which only rearrange tensors and run where their neighbours do; 0 for programs
	Seconds  float64       // what the compiler expects of the path, which is no prediction of time
	Size     *Refusal      // why the whole program is not on the engine
}

// Predict says where the ops of a function will run.
func Predict(f *mil.Function, o Options) *Placement { return predict(f, o, &shipped) }

func predict(f *mil.Function, o Options, priced *prices) *Placement {
	s, limits := scopeOf(f), o.limits()
	p := &Placement{Function: f.Name}
	var steps []Seconds
	for op := range f.Body.All() {
		if op.Type == "const" || op.IsConstexpr() {
			continue
		}
		at := OpPlacement{Name: op.Name(), Type: op.Type, Refusal: s.refuse(op, limits)}
		estimate := s.seconds(op, priced)
		if at.Refusal != nil {
			estimate[ANE] = refused
		}
		p.Ops, steps = append(p.Ops, at), append(steps, estimate)
	}
	p.follow(steps, o.costs())
	weights := census.Weights(f)
	var bytes int64
	for _, share := range census.Tally(weights) {
		bytes += share.Bytes
	}
	p.judgeSize(bytes, limits)
	return p
}

// follow puts every op where the cheapest path has it.
func (p *Placement) follow(steps []Seconds, c Costs) {
	paths := Cheapest(steps, c)
	p.Seconds = paths.Seconds
	for i := range p.Ops {
		p.Ops[i].Backend = paths.Best[i]
		if paths.Best[i] != ANE {
			p.Ops[i].PenaltySeconds = paths.Through[i][ANE] - paths.Seconds
		}
	}
}

// judgeSize moves a program to the GPU that is too large for the engine's compiler.
func (p *Placement) judgeSize(weightBytes int64, limits *Limits) {
	if weightBytes <= limits.ProgramBytes {
		return
	}
	p.Size = &Refusal{RuleSize, fmt.Sprintf("%.2f GB of weights in one program, more than %.2f", float64(weightBytes)/1e9, float64(limits.ProgramBytes)/1e9)}
	for i := range p.Ops {
		at := &p.Ops[i]
		at.Backend, at.PenaltySeconds = GPU, math.Inf(1)
		if at.Refusal == nil {
			at.Refusal = p.Size
		}
	}
}

// Count is how many ops run on a unit: ANE, CPU or GPU.
func (p *Placement) Count(unit string) int {
	n := 0
	for _, op := range p.Ops {
		if op.Backend.Unit() == unit {
			n++
		}
	}
	return n
}

// MostOffEngine is the share of ops off the engine with which the run book still passes a chunk.
const MostOffEngine = 0.05

// Passes reports whether few enough ops are off the engine.
func (p *Placement) Passes() bool {
	off := len(p.Ops) - p.Count("ANE")
	if p.Size != nil {
		return false
	}
	return float64(off) <= MostOffEngine*float64(len(p.Ops)+p.Between)
}

// Why says in words why an op is not on the engine; "" if it is.
func (at *OpPlacement) Why() string {
	switch {
	case at.Backend == ANE:
		return ""
	case at.Refusal != nil:
		return fmt.Sprintf("%s: %s", at.Refusal.Rule, at.Refusal.Text)
	case at.PenaltySeconds < tie:
		return "tie: on the engine it would cost the same"
	}
	return fmt.Sprintf("cheaper: going to the engine would cost %.3g µs more than it saves", 1e6*at.PenaltySeconds)
}
