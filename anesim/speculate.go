package anesim

import (
	"fmt"
	"math"

	"anelab/chunking"
	"anelab/internal/format"
)

// Acceptance says how likely drafted tokens are to be accepted.
type Acceptance struct {
	// PerPosition[i] is the probability that draft i+1 is accepted given that all before it were. The last value holds for
	// all further positions.
	PerPosition []float64
	// Width is how many candidates a tree offers per position; 0 and 1 are a chain. Candidates are tried as if independent,
	// which is the most that a tree can gain.
	Width int
}

// at is the acceptance at position i, from 0.
func (a Acceptance) at(i int) float64 {
	p := a.PerPosition[min(i, len(a.PerPosition)-1)]
	if a.Width > 1 {
		return 1 - math.Pow(1-p, float64(a.Width))
	}
	return p
}

// check refuses what is not a probability.
func (a Acceptance) check() error {
	if len(a.PerPosition) == 0 {
		return &format.Error{Path: "acceptance", Got: "nothing", Want: "at least one probability"}
	}
	for i, p := range a.PerPosition {
		if !(p >= 0 && p <= 1) {
			return &format.Error{Path: "acceptance", Field: fmt.Sprintf("position %d", i+1), Got: fmt.Sprint(p), Want: "a probability"}
		}
	}
	return nil
}

// Tokens is the expected number of tokens per cycle with k drafts: the target's own, and each draft that was reached,
// 1 + Σᵢ Πⱼ≤ᵢ aⱼ. With one rate a this is (1−aᵏ⁺¹)/(1−a) of Leviathan, Kalman and Matias, Fast Inference from Transformers
// via Speculative Decoding (2023), eq. 1.
func (a Acceptance) Tokens(k int) float64 {
	total, reached := 1.0, 1.0
	for i := range k {
		reached *= a.at(i)
		total += reached
	}
	return total
}

// KVCommit says what a verify call does to the caches with drafts that are rejected.
type KVCommit uint8

// CommitAccepted writes accepted rows alone: the verify graph leaves the persistent caches untouched. CommitAll is the
// write-through graph: rejected rows stay in the sliding caches, and every accepted token has to be replayed by a decode
// step to repair them (effects of 2026-04-15: live acceptance fell although offline acceptance was high).
const (
	CommitAccepted KVCommit = iota
	CommitAll
)

// Speculation is a way to decode several tokens per cycle.
type Speculation struct {
	Drafts       int     // K per position chain; verify sees K+1 query tokens per path
	DraftSeconds float64 // per cycle, drafter and its host work
	Acceptance   Acceptance
	Commit       KVCommit
}

// Speculated is the price of a cycle.
type Speculated struct {
	TokensPerCycle float64  `json:"tokens_per_cycle"`
	VerifyS        float64  `json:"verify_s"`
	VerifyRange    Range    `json:"verify_range90_s"`
	CycleS         float64  `json:"cycle_s"`
	TokPerSec      float64  `json:"tok_per_s"`
	Range          Range    `json:"tok_per_s_range90"`
	DecodeTokPerS  float64  `json:"decode_tok_per_s"`
	Gain           float64  `json:"gain"`       // over plain decode, 1 = even
	BreakEven      *float64 `json:"break_even"` // per-position acceptance at which it is even; null if it never is
	Basis          string   `json:"basis"`
}

// The verify call against the decode call of the same plan. Measured ratios (effects.csv T1-to-*): 0.90 and 1.04 at T = 3,
// 0.94 and 1.03 at T = 8, so a call that streams the weights once has room for a few rows. A contended run saw 1.25. Above
// flatRows nothing was measured; the rows are then priced by the batch rate where that is more.
const (
	flatRows    = 8
	verifySD    = 0.08
	verifyBasis = "effects.csv T1-to-3-iphone, T1-to-3-mac, T1-to-8-mlstate4-mac, T1-to-8-mlstate3-mac: 0.90 to 1.04 of a decode step"
)

// VerifySeconds is the time of one verify call of t query tokens over the chunks of a plan, host included.
func VerifySeconds(p *chunking.Plan, d Device, t int) (seconds float64, r Range) {
	decode := Predict(p, d, Workload{})
	seconds = decode.TimeS
	if t > flatRows {
		rates := batchRatesOf[d.Class]
		seconds = max(seconds, 2*float64(p.Totals().LinearParams)*float64(t)/rates.flops+d.hostSeconds(p.Context))
	}
	sd := math.Hypot((decode.TimeRange.Hi-decode.TimeRange.Lo)/2/normal90, verifySD*seconds)
	if t > flatRows {
		sd = math.Hypot(sd, 0.3*seconds)
	}
	if t == 1 {
		return decode.TimeS, decode.TimeRange
	}
	return seconds, Range{Lo: max(seconds-normal90*sd, seconds/10), Hi: seconds + normal90*sd}
}

// PredictSpeculation prices decoding with drafts.
func PredictSpeculation(p *chunking.Plan, d Device, s Speculation) (Speculated, error) {
	if err := s.Acceptance.check(); err != nil {
		return Speculated{}, err
	}
	if s.Drafts < 1 || !(s.DraftSeconds >= 0) || math.IsInf(s.DraftSeconds, 1) {
		return Speculated{}, &format.Error{Path: "speculation", Got: fmt.Sprintf("%d drafts in %v s", s.Drafts, s.DraftSeconds), Want: "one or more, in a finite time"}
	}
	decode := Predict(p, d, Workload{})
	rows := s.Drafts*max(1, s.Acceptance.Width) + 1
	verify, r := VerifySeconds(p, d, rows)
	tokens := s.Acceptance.Tokens(s.Drafts)
	out := Speculated{TokensPerCycle: tokens, VerifyS: verify, VerifyRange: r, DecodeTokPerS: decode.TokPerSec, Basis: verifyBasis}
	cycle := func(verify, step float64) float64 { return s.DraftSeconds + verify + s.replays(tokens)*step }
	out.CycleS = cycle(verify, decode.TimeS)
	out.TokPerSec = tokens / out.CycleS
	out.Range = Range{Lo: tokens / cycle(r.Hi, decode.TimeRange.Hi), Hi: tokens / cycle(r.Lo, decode.TimeRange.Lo)}
	out.Gain = out.TokPerSec / decode.TokPerSec
	out.BreakEven = s.breakEven(verify, decode.TimeS)
	return out, nil
}

// replays per cycle: accepted tokens that a contaminated cache makes the target compute again.
func (s *Speculation) replays(tokens float64) float64 {
	if s.Commit == CommitAll {
		return tokens - 1
	}
	return 0
}

// breakEven bisects the uniform acceptance at which a cycle yields as many tokens per second as decode steps do. Tokens per
// cycle grow with acceptance, so there is one crossing or none.
func (s *Speculation) breakEven(verify, step float64) *float64 {
	surplus := func(a float64) float64 {
		tokens := Acceptance{PerPosition: []float64{a}, Width: s.Acceptance.Width}.Tokens(s.Drafts)
		return tokens*step - (s.DraftSeconds + verify + s.replays(tokens)*step)
	}
	if surplus(1) < 0 {
		return nil
	}
	lo, hi := 0.0, 1.0
	if surplus(0) >= 0 {
		return &lo
	}
	for range 60 {
		if mid := (lo + hi) / 2; surplus(mid) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &hi
}
