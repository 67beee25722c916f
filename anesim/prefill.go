package anesim

import (
	"fmt"
	"math"

	"anelab/chunking"
)

// Engine is what a batched prefill runs on.
type Engine string

// Where prefill was measured.
const (
	EngineANE Engine = "ane"
	EngineGPU Engine = "gpu"
)

// Prompt is a prompt and how it is taken in.
type Prompt struct {
	Tokens int
	Rows   int    // N of the batched prefill graphs; 0 = none, every token through decode
	Engine Engine // of the batch; "" = ANE
	Cached int    // leading tokens whose caches are restored (prefix cache)
}

// Prefill is the time to the first token, as a sum of parts. It rests on a handful of sessions: ranges are wide.
type Prefill struct {
	Parts     []PrefillPart `json:"parts"`
	TimeS     float64       `json:"ttft_s"`
	TimeRange Range         `json:"ttft_range90_s"`
	Notes     []string      `json:"notes"`
}

// PrefillPart is one part with its bounds.
type PrefillPart struct {
	Name   string  `json:"name"`
	TimeS  float64 `json:"time_s"`
	Range  Range   `json:"range90_s"`
	Source string  `json:"source"`
}

// batchRates is what batched prefill was seen to do on a class of device.
type batchRates struct {
	flops, flopsSD     float64 // per second, of the rows that count
	fixed, fixedSD     float64 // s per call beyond dispatch and weights
	host, hostSD       float64 // s per real token: embedding, per-layer rows, spreading keys and values
	hostFixed          float64 // s
	padded             bool    // every row of the batch costs, real or not
	handoff, handoffSD float64 // s that the first decode step behind a prefill takes longer
	source             string
}

// Rates are not constants of the device file: no session separates them, and they must not look as if one had.
var batchRatesOf = map[Class]batchRates{
	IPhone: {flops: 5.7e12, flopsSD: 1.2e12, fixed: 12e-3, fixedSD: 6e-3, host: 0.8e-3, hostSD: 0.2e-3, hostFixed: 5e-3, handoff: 27e-3, handoffSD: 10e-3,
		source: "iphone17pro-e2b-prefill512-20260423: 10 and 348 real tokens of N = 512, per chunk; E4B at N = 1024 saw padded rows cost full time"},
	Mac: {flops: 8.7e12, flopsSD: 1.2e12, fixed: 0.3e-3, fixedSD: 0.5e-3, host: 0.4e-3, hostSD: 0.2e-3, hostFixed: 1e-3, padded: true, handoff: 0, handoffSD: 12e-3,
		source: "macstudio-e2b-prefillsweep1-20260423: chunk 1 at N = 64 to 512, masked rows included; host from macstudio-e2b-prefill64-20260422"},
}

// gpuRatio is the time of a prefill on the GPU over that on the Neural Engine. The observations disagree by a factor of
// thirty-five: 9.7 on the Mac of prefill-gpu-mac, 0.28 on an M5 Pro with another model and runtime (spec ane.md A7). Nobody
// measured a phone.
var gpuRatio = Range{Lo: 0.28, Hi: 9.7}

// minCached is the shortest prefix that the runtime restores (spec forward.md §6.6).
const minCached = 64

// PredictPrefill prices a prompt up to and with its first output token.
func PredictPrefill(p *chunking.Plan, d Device, prompt Prompt) Prefill {
	var out Prefill
	step := Predict(p, d, Workload{})
	rates := batchRatesOf[d.Class]
	rest := prompt.Tokens
	switch {
	case prompt.Cached >= minCached && prompt.Cached < prompt.Tokens:
		out.add(restorePart(p, d))
		rest = prompt.Tokens - prompt.Cached
	case prompt.Cached > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("a prefix of %d tokens is not used: the runtime restores %d or more, and never a whole prompt", prompt.Cached, minCached))
		fallthrough
	default:
		if prompt.Rows > 0 {
			real := min(prompt.Tokens, prompt.Rows)
			out.add(batchPart(p, d, prompt, rates))
			out.add(hostPart(real, rates))
			rest = prompt.Tokens - real
		}
	}
	if rest > 0 { // the last decode step gives the first token; a batch gives it itself
		out.add(PrefillPart{Name: fmt.Sprintf("%d tokens through decode", rest), TimeS: float64(rest) * step.TimeS,
			Range: Range{Lo: float64(rest) * step.TimeRange.Lo, Hi: float64(rest) * step.TimeRange.Hi}, Source: step.Basis})
	}
	if p.Context < prompt.Tokens {
		out.Notes = append(out.Notes, fmt.Sprintf("the prompt has %d tokens and the context %d: it does not fit", prompt.Tokens, p.Context))
	}
	out.sum()
	return out
}

func (f *Prefill) add(p PrefillPart) { f.Parts = append(f.Parts, p) }

// sum adds bounds as they are: the parts rest on the same few sessions, so their errors do not average out.
func (f *Prefill) sum() {
	for _, p := range f.Parts {
		f.TimeS += p.TimeS
		f.TimeRange.Lo += p.Range.Lo
		f.TimeRange.Hi += p.Range.Hi
	}
}

// batchPart is one batched call of every chunk: weights once, two FLOPs per weight and row. The head runs on one row. Inside a
// task the stream of weights and the products overlap, and the longer one is the time (spec ane.md §0.1, suggested form).
func batchPart(p *chunking.Plan, d Device, prompt Prompt, r batchRates) PrefillPart {
	totals := p.Totals()
	real := min(prompt.Tokens, prompt.Rows)
	rows := real
	if r.padded {
		rows = prompt.Rows
	}
	perRow := 2 * float64(totals.LinearParams-headParams(p))
	calls := float64(len(p.Chunks))
	stream := d.Constants[WeightStream].Value * float64(totals.WeightBytes)
	work := func(rows int, flops float64) float64 { return max(stream, perRow*float64(rows)/flops) } // they overlap inside a task
	base := calls * (d.Constants[Dispatch].Value + r.fixed)
	seconds := base + work(rows, r.flops)
	lo := base - normal90*calls*r.fixedSD + work(rows, r.flops+normal90*r.flopsSD)
	// On the phone one session followed the real tokens and another did not: the upper bound pays for every row.
	hi := base + normal90*calls*r.fixedSD + work(prompt.Rows, r.flops-normal90*r.flopsSD)
	part := PrefillPart{Name: fmt.Sprintf("batch of %d rows, %d real, on the %s", prompt.Rows, real, engineName(prompt.Engine)), TimeS: seconds,
		Range: Range{Lo: max(lo, seconds/10), Hi: hi}, Source: r.source}
	if prompt.Engine == EngineGPU {
		part.TimeS = seconds * math.Sqrt(gpuRatio.Lo*gpuRatio.Hi)
		part.Range = Range{Lo: part.Range.Lo * gpuRatio.Lo, Hi: part.Range.Hi * gpuRatio.Hi}
		part.Source = "effects.csv prefill-gpu-mac (9.7 times the Neural Engine's time); spec ane.md A7 (0.28 times, another model on an M5 Pro)"
	}
	return part
}

func engineName(e Engine) string {
	if e == EngineGPU {
		return "GPU"
	}
	return "Neural Engine"
}

// headParams are the weights of the LM head, which a batch runs on its last row alone.
func headParams(p *chunking.Plan) int64 {
	for _, c := range p.Chunks {
		for _, op := range c.Ops {
			if op.Kind == chunking.OpHead {
				return int64(op.Rows) * int64(op.Cols)
			}
		}
	}
	return 0
}

// On the phone the host took as long as the engine: keys and values are spread by scalar loops (effects.csv
// prefill-real10-to-348).
func hostPart(tokens int, r batchRates) PrefillPart {
	n := float64(tokens)
	return PrefillPart{Name: "host: rows in, keys and values out", TimeS: r.hostFixed + n*r.host,
		Range: Range{Lo: n * (r.host - normal90*r.hostSD), Hi: 2*r.hostFixed + n*(r.host+normal90*r.hostSD)}, Source: r.source}
}

// restorePart copies a snapshot of all caches into their buffers.
func restorePart(p *chunking.Plan, d Device) PrefillPart {
	bytes := float64(p.Totals().CacheInBytes)
	k := &d.Constants[CopyBackBytes]
	// From a file the first time: 1 GB/s is what a phone's flash gives to a plain read.
	return PrefillPart{Name: "restore the prefix", TimeS: bytes * k.Value, Range: Range{Lo: bytes * k.Value / 3, Hi: bytes * 1e-9},
		Source: "spec forward.md §6.6 for the size; copyback_bytes for the rate; a file read at 1 GB/s as the bound"}
}

// FirstStepAfterPrefill is how much longer the first decode step takes behind a batched prefill: the engine changes programs.
func FirstStepAfterPrefill(d Device) (seconds float64, r Range, source string) {
	rates := batchRatesOf[d.Class]
	half := normal90 * rates.handoffSD
	return rates.handoff, Range{Lo: max(0, rates.handoff-half), Hi: rates.handoff + half},
		"effects.csv warm-first-after-prefill-iphone: 36 to 63 ms on E2B; 71 to 993 ms was seen on E4B with prefill programs still loading"
}
