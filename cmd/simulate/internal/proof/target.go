package proof

import (
	"strings"

	"anelab/gemma4"
	"anelab/parity"
	"anelab/parity/golden"
	"anelab/quant"
)

// Target is what a golden asks of a mode.
type Target struct {
	Tolerances parity.Tolerances
	// LeastEqual is the least share of equal elements of all tensors inside attention together; 0 asks for nothing.
	LeastEqual float64
	// Information says why nothing is asked for; "" where something is.
	Information string
}

// Longest prompt at real dimensions whose angles do not matter yet, and the limit beyond it for a golden whose angles are exact
// (goldens' README §3: 7.2e-5 measured at 600).
const (
	shortPrompt     = 100
	exactAngleLimit = 2e-4
)

// leastEqual is what remains when single elements fall on the other side of a tie (measured: 3 of 79,000).
const leastEqual = 0.9999

// targetOf is what the golden's README says a mode can reach.
func targetOf(f *golden.File, mode string) Target {
	double := strings.Contains(f.Run.Compute, "64")
	switch {
	case mode == "ane":
		return Target{Information: "no reference computes in this mode's fp16; the distance is for information"}
	case mode == "hf-bf16" && f.Run.Compute != "torch.bfloat16":
		return Target{Information: "the golden was computed in " + f.Run.Compute + ": the distance is that of bf16 itself"}
	case mode == "hf-bf16" && f.Kind == golden.Formula:
		return Target{Information: "at real width sums near a tie flip with their order: the same schedule in other code is 0.3% (first layer) " +
			"to 6% (layer 9) in relative rms from this reference at 24 tokens, logits up to 1.5 apart (3.3 at 600 tokens)"}
	case mode == "hf-bf16" && f.Kind == golden.Decode:
		return Target{Tolerances: golden.BF16Decode()}
	case mode == "hf-bf16":
		return Target{Tolerances: golden.BF16(), LeastEqual: leastEqual}
	case f.Run.Compute == "torch.bfloat16":
		return Target{Information: "the golden was computed in bfloat16: the distance is that of bf16 from float32"}
	}
	t := Target{Tolerances: golden.Float32()}
	if f.Kind == golden.Formula && double && len(f.Cases()[0].Prompt) > shortPrompt {
		t.Tolerances.Default.PeakRel = exactAngleLimit
		t.Tolerances.Points[gemma4.PointLogits] = parity.Tolerance{PeakRel: exactAngleLimit, MinArgmax: 1}
	}
	return t
}

// storageOf is the type that a mode stores values in: the unit of ULPs.
func storageOf(mode string) quant.DType {
	switch mode {
	case "hf-bf16":
		return quant.BF16
	case "ane":
		return quant.F16
	}
	return quant.F32
}

// Wanted reports whether a golden is the record of weights of this type in a mode.
func Wanted(f *golden.File, weights quant.DType, mode string) bool {
	stored := map[string]quant.DType{"fp32": quant.F32, "bf16": quant.BF16, "bin-fp16": quant.F16}[f.Run.Weights]
	if stored != weights {
		return false
	}
	return (mode == "hf-bf16") == (f.Run.Compute == "torch.bfloat16")
}
