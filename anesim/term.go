package anesim

import "math"

// Term is one term of the cost model: the index of its constant in [Device.Constants].
type Term uint8

// The terms of a chunk, then those of the host.
const (
	Dispatch Term = iota
	WeightStream
	AttentionOwn
	AttentionShared
	HandoffBytes
	HandoffCall
	HandoffFirst
	CopyBackBytes
	PLEProjection
	HostStep
	HostPositions

	NumTerms
)

// chunkTerms come first in the list; the host's follow.
const chunkTerms = HostStep

// termFacts is what is true of a term on every device.
type termFacts struct {
	name     string
	resource string // what the time goes to, as tables print it
	unit     string // of the constant
	quantity string // what the constant is multiplied by
	regime   string // where the term is needed although no row may show it
}

var terms = [NumTerms]termFacts{
	Dispatch:        {"dispatch", "dispatch", "s/call", "calls", "cuts into many small chunks"},
	WeightStream:    {"weight_stream", "weights", "s/byte", "weight bytes", "other models and weight encodings"},
	AttentionOwn:    {"attention_own", "attention", "s/position", "positions × KV heads of full layers with own KV", "contexts and windows that were not timed"},
	AttentionShared: {"attention_shared", "attention", "s/position", "positions of full layers with shared KV", "contexts and windows that were not timed"},
	HandoffBytes:    {"handoff_bytes", "hand-off", "s/byte", "bytes of imported KV", "cuts behind the donors at other contexts"},
	HandoffCall:     {"handoff_call", "hand-off", "s/call", "calls that import KV", "numbers of importing chunks that were not timed"},
	HandoffFirst:    {"handoff_first", "hand-off", "s/call", "calls that import KV from the chunk before", "cuts that put an importer right behind a donor"},
	CopyBackBytes:   {"copyback_bytes", "copy-back", "s/byte", "cache bytes copied inside the call", "synchronous copies at other contexts"},
	PLEProjection:   {"ple_projection", "ple", "s/call", "calls that compute the per-layer inputs", "first chunks of other lengths"},
	HostStep:        {"host_step", "host", "s/token", "tokens", "whole steps"},
	HostPositions:   {"host_positions", "host", "s/position", "positions of the context", "whole steps at other contexts"},
}

// String is the name of the term's constant in device files.
func (t Term) String() string { return terms[t].name }

// Resource is what the time of the term goes to: several terms may share one.
func (t Term) Resource() string { return terms[t].resource }

// Unit of the term's constant.
func (t Term) Unit() string { return terms[t].unit }

// Quantity says what the constant is multiplied by.
func (t Term) Quantity() string { return terms[t].quantity }

// TermNames lists the constants of a device file in order.
func TermNames() []string {
	names := make([]string, NumTerms)
	for t := range NumTerms {
		names[t] = t.String()
	}
	return names
}

// ParseTerm finds a term by the name of its constant.
func ParseTerm(name string) (Term, bool) {
	for t := range NumTerms {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// contextTerms grow with the context.
var contextTerms = [...]Term{AttentionOwn, AttentionShared, HandoffBytes}

// finite reports whether x is a usable number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
