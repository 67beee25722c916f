package arith

import (
	"anelab/internal/format"
	"anelab/internal/kernel"
	"anelab/quant"
	"anelab/swa"
)

// Arithmetic is one numerics mode. Implementations are safe for concurrent use.
type Arithmetic interface {
	// Name is the mode's name on the command line.
	Name() string
	// KV is the type in which keys and values are kept without a further rounding.
	KV() swa.Elem
	// Weight returns w as the mode stores it; ScaledWeight does so for a weight whose product is multiplied by c, and
	// returns the factor that is still to be applied after it.
	Weight(w quant.Matrix) quant.Matrix
	ScaledWeight(w quant.Matrix, c float64) (quant.Matrix, float64)
	// Store rounds x in place to the storage type: gains, port tensors.
	Store(x []float32)

	Primitives

	// Linear is y = x·Wᵀ for t rows: x [t, Cols] → y [t, Rows]. Row results do not depend on t.
	Linear(y []float32, w quant.Matrix, x []float32, t int)
	// GELUMul is y = gelu(x) ⊙ z, in the roundings of GELU and Mul.
	GELUMul(y, x, z []float32)
	// RMSNorm norms rows of length n: y = x·(mean(x²)+eps)^−½·gain; gain [n], or nil for none.
	RMSNorm(y, x, gain []float32, n int, eps float64)
	// VNorm is the gain-free norm of values.
	VNorm(y, x []float32, n int, eps float64)
	// EmbeddingScale multiplies a table row by a scale that the mode holds beside the table.
	EmbeddingScale(y, row []float32, scale float64)
	// RopeTable fills cos and sin [d] for one position from float32 frequencies [d/2]; both halves hold the same values.
	RopeTable(cos, sin []float32, pos int, freq []float32)
	// RoPE rotates one head x [d] in place, pairs (i, i+d/2).
	RoPE(x, cos, sin []float32)
	// Scores is s [G, n] = q·K[p] for G query heads q [G, d] that read one KV head, and the n positions p of spans, ascending.
	Scores(s, q []float32, k swa.View, spans []swa.Span)
	// Softmax normalises p, one value per position of spans, in place. An empty row stays empty.
	Softmax(p []float32, spans []swa.Span)
	// Mix is o [G, d] = Σ p[g][i]·V[position i] with p [G, n]; zero where nothing is visible.
	Mix(o, p []float32, v swa.View, spans []swa.Span)
	// Parallel shares rows [0, n) of a job among the mode's cores, in blocks of grain rows; a job must not call Linear.
	Parallel(n, grain int, job Job)
	// SoftCap is y = tanh(x/limit)·limit.
	SoftCap(y, x []float32, limit float64)
}

// Job is work on independent rows.
type Job = kernel.Job

// Primitives are operations with one rounding per value, the ops of an emitted graph. y may be an operand.
type Primitives interface {
	Add(y, a, b []float32)
	Sub(y, a, b []float32)
	Mul(y, a, b []float32)
	Div(y, a, b []float32)
	// Scale multiplies by a constant that the mode holds as it holds constants.
	Scale(y, x []float32, c float64)
	Exp(y, x []float32)
	Tanh(y, x []float32)
	// GELU is the tanh form: ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
	GELU(y, x []float32)
	// LayerNorm is y = (x − mean)/√(var + eps) over the whole slice.
	LayerNorm(y, x []float32, eps float64)
	// Sum adds x in the canonical structure, lane of x[i] = i mod 8; Max is the greatest value.
	Sum(x []float32) float32
	Max(x []float32) float32
}

// Modes lists the modes that models are run in. New accepts "strict" too, an oracle.
var Modes = []string{"f32", "hf-bf16", "ane"}

// New returns a mode by name with its default rules; threads 0 means all cores.
func New(name string, threads int) (Arithmetic, error) {
	pool := kernel.SharedPool(threads)
	switch name {
	case "f32":
		return newF32(pool), nil
	case "hf-bf16":
		return newHFBF16(pool), nil
	case "ane":
		return NewANE(ANERules{}, threads), nil
	case "strict":
		return newStrict(threads), nil
	}
	return nil, &format.Error{Field: "mode", Got: name, Want: "f32, hf-bf16 or ane", Fix: format.DidYouMean(name, Modes)}
}
