package arith

import (
	"math"
	"sync"

	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
	"anelab/swa"
)

// hfBF16 is Hugging Face eager attention in bfloat16 (spec forward.md §2.11): every operator rounds its result to bf16
// once; norms and softmax compute in float32 inside. Embedding scales are tensors in bf16 (39.25 for E2B), other
// constants stay float32.
type hfBF16 struct{ rounded }

func newHFBF16(pool *kernel.Pool) *hfBF16 {
	t := bf16Tables()
	return &hfBF16{rounded{
		name: "hf-bf16", kv: swa.BFloat16, round: half.RoundBF16, pool: pool,
		constant: func(c float64) float64 { return float64(float32(c)) },
		exp:      func(x float32) float32 { return half.RoundBF16(float32(Exp64(float64(x)))) },
		tanh:     t.tanh.at,
		gelu:     t.gelu.at,
	}}
}

// bf16Table is a function of one bf16 value, rounded to bf16, for all 65536 of them.
type bf16Table [1 << 16]float32

func (t *bf16Table) at(x float32) float32 { return t[half.F32ToBF16(x)] }

func newBF16Table(f func(float64) float64) *bf16Table {
	t := new(bf16Table)
	for i := range t {
		t[i] = half.RoundBF16(float32(f(float64(half.BF16ToF32(uint16(i))))))
	}
	return t
}

var bf16Tables = sync.OnceValue(func() (t struct{ tanh, gelu *bf16Table }) {
	t.tanh, t.gelu = newBF16Table(Tanh64), newBF16Table(gelu64)
	return t
})

func (a *hfBF16) Weight(w quant.Matrix) quant.Matrix { return quant.AsBF16(w) }

func (a *hfBF16) ScaledWeight(w quant.Matrix, c float64) (quant.Matrix, float64) {
	return a.Weight(w), c
}

func (a *hfBF16) EmbeddingScale(y, row []float32, scale float64) {
	s := half.RoundBF16(float32(scale))
	for i, v := range row {
		y[i] = a.round(a.round(v) * s)
	}
}

// RMSNorm: statistic and gain in float32, one rounding to bf16 at the end.
func (a *hfBF16) RMSNorm(y, x, gain []float32, n int, eps float64) {
	for i := 0; i < len(x); i += n {
		row, out := x[i:i+n], y[i:i+n]
		variance := float32(kernel.Dot64(row, row)/float64(n)) + float32(eps)
		r := float32(1 / math.Sqrt(float64(variance)))
		for k, v := range row {
			u := float32(v * r)
			if gain != nil {
				u = float32(u * gain[k])
			}
			out[k] = a.round(u)
		}
	}
}

func (a *hfBF16) VNorm(y, x []float32, n int, eps float64) { a.RMSNorm(y, x, nil, n, eps) }

// Softmax is float32 inside: difference, exponential, sum and quotient are float32 values, the quotient is rounded to bf16.
func (a *hfBF16) Softmax(p []float32, spans []swa.Span) {
	m := a.Max(p)
	for i, s := range p {
		p[i] = float32(Exp64(float64(float32(s - m))))
	}
	sum := float32(sumByPosition(p, spans))
	for i, e := range p {
		p[i] = a.round(e / sum)
	}
}

// SoftCap rounds three times: quotient, tanh, product.
func (a *hfBF16) SoftCap(y, x []float32, limit float64) {
	l := float32(limit)
	for i, v := range x {
		y[i] = a.round(a.tanh(a.round(v/l)) * l)
	}
}
