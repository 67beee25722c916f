package anesim

import "anelab/chunking"

// Energy is joules per token. Nobody measured a phone: it is arithmetic on published figures of other chips, and the range
// is as wide as those differ.
type Energy struct {
	JoulesPerToken float64     `json:"j_per_token"` // middle of the range
	Range          Range       `json:"j_per_token_range"`
	Parts          []JoulePart `json:"parts"`
	Provenance     string      `json:"provenance"`
}

// JoulePart is one contribution: a quantity of the plan times a published figure.
type JoulePart struct {
	Name     string  `json:"name"`
	Quantity float64 `json:"quantity"`
	Unit     string  `json:"unit"`
	PerUnit  Range   `json:"j_per_unit"`
	Source   string  `json:"source"`
}

// Published figures (spec ane.md A8, measured on an M6 but for the compiler's assumption).
var (
	joulesPerDRAMByte = Range{Lo: 22e-12, Hi: 50e-12}     // memory rail alone; what the compiler assumes
	joulesPerMAC      = Range{Lo: 0.58e-12, Hi: 0.80e-12} // fp16
	joulesPerCall     = Range{Lo: 0.15e-3, Hi: 1.8e-3}    // engine alone; engine and host
)

// PredictEnergy adds up the published figures over one decode step.
func PredictEnergy(p *chunking.Plan) Energy {
	t := p.Totals()
	moved := float64(t.WeightBytes + t.InputBytes + t.OutputBytes)
	e := Energy{Provenance: "published figures of an M6 and of Apple's compiler (spec ane.md A8); no energy of a phone was measured: rank by it, do not promise it"}
	e.add(JoulePart{"memory traffic", moved, "bytes", joulesPerDRAMByte, "22 pJ/B on the memory rail, at most 46 in all, 50 assumed by the compiler"})
	e.add(JoulePart{"multiply-accumulates", float64(t.MACs), "MACs", joulesPerMAC, "0.58 to 0.80 pJ per fp16 MAC"})
	e.add(JoulePart{"calls", float64(len(p.Chunks)), "calls", joulesPerCall, "0.15 mJ on the engine and 1.6 mJ on the CPU per call"})
	return e
}

// Bounds add up as they are: the figures behind them are not independent.
func (e *Energy) add(p JoulePart) {
	e.Parts = append(e.Parts, p)
	e.Range.Lo += p.Quantity * p.PerUnit.Lo
	e.Range.Hi += p.Quantity * p.PerUnit.Hi
	e.JoulesPerToken = (e.Range.Lo + e.Range.Hi) / 2
}
