package golden

import (
	"encoding/json"
	"os"

	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/parity"
)

// Noise is the measured error of the reference's own runs against a float64 run of the same weights: run → yardstick
// ("vs_float64", "vs_float64_with_fp32_rope_tables") → tensor.
type Noise map[string]map[string]map[string]Error

// Error is the largest error over all cases, layers and elements of a tensor.
type Error struct {
	MaxAbs       float64 `json:"max_abs"`
	MaxRelToPeak float64 `json:"max_rel_to_peak"`
}

// UnmarshalJSON accepts an error, or the count of agreeing tokens that stands among them.
func (e *Error) UnmarshalJSON(text []byte) error {
	var count int
	if json.Unmarshal(text, &count) == nil {
		*e = Error{}
		return nil
	}
	type plain Error
	return json.Unmarshal(text, (*plain)(e))
}

// ReadNoise reads a tolerances.json.
func ReadNoise(path string) (Noise, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	var n Noise
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, &format.Error{Path: path, Err: err, Want: "run → yardstick → tensor → max_abs and max_rel_to_peak"}
	}
	return n, nil
}

// Limits of a float32 implementation relative to the peak of the tensor. The reference's own error is at most 1.4e-5 and, for the
// first two tensors, 2.4e-7 (measured; tolerances.json), so there is room for another order of summation and for no mistake:
// the smallest known one, an embedding scale rounded to another type, moves the embeddings by 1.5e-3.
const (
	float32Limit      = 5e-5
	float32EmbedLimit = 1e-6
)

// Float32 are the tolerances of a float32 run against a float32 or float64 golden.
func Float32() parity.Tolerances {
	embeds := parity.Tolerance{PeakRel: float32EmbedLimit}
	return parity.Tolerances{
		Default: parity.Tolerance{PeakRel: float32Limit},
		Points: map[gemma4.Point]parity.Tolerance{
			gemma4.PointEmbeds: embeds,
			gemma4.PointPLE:    embeds,
			gemma4.PointLogits: {PeakRel: float32Limit, MinArgmax: 1},
		},
	}
}

// BF16 are the tolerances of the bf16 rounding schedule against the bf16 passes of a model without experts: every hidden state
// and logit is exact, and single elements inside attention fall on the other side of a tie. Such an element is one step off, or
// more of its own steps where it is what a cancellation left (measured: three elements of a tensor, 3e-4 of the peak).
func BF16() parity.Tolerances {
	tie := parity.Tolerance{MaxULP: 1, PeakRel: 1e-3, MaxUnequal: 3}
	return parity.Tolerances{Points: map[gemma4.Point]parity.Tolerance{
		gemma4.PointQ: tie, gemma4.PointV: tie, gemma4.PointProbs: tie, gemma4.PointAttnOut: tie,
	}}
}

// BF16Decode are the tolerances for cached bf16 decoding: the reference's cache turns single near ties of its own rounding, which
// the next layers multiply, so a row of logits may be off by half a unit (the step of bf16 at their peak is an eighth) while
// the tokens stay the same.
func BF16Decode() parity.Tolerances {
	rows := parity.Tolerance{PeakRel: 0.02} // measured: 0.0044
	return parity.Tolerances{
		Points: map[gemma4.Point]parity.Tolerance{
			gemma4.PointK: rows, gemma4.PointV: rows,
			gemma4.PointLogits: {Abs: 0.5, MinArgmax: 1},
		},
	}
}
