package arith

import (
	"math"
	"sync"

	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
	"anelab/swa"
)

// ANERules are the choices of the ane mode where the hardware or other converters may differ. The zero value is what our own
// emitter writes (spec forward.md §5.3); the others are for comparing with packages that were made differently.
type ANERules struct {
	Overflow   OverflowRule
	Eps        EpsRule
	VNorm      VNormRule
	SoftCap    SoftCapRule
	Softmax    SoftmaxRule
	Subnormals SubnormalRule
	PLEScale   PLEScaleRule
}

// OverflowRule says what a finite result beyond fp16 becomes.
type OverflowRule uint8

// Upstream reports that the ANE saturates where a CPU gives infinity.
const (
	OverflowSaturates OverflowRule = iota
	OverflowInfinite
)

// EpsRule says which eps the norms add.
type EpsRule uint8

// Every real package holds eps 1e-6 as fp16, 1.0133e-6.
const (
	EpsFP16 EpsRule = iota
	EpsExact
)

// VNormRule is the form of the gain-free norm of values.
type VNormRule uint8

// The literal form squares in fp16 and overflows at |x| ≥ 256.
const (
	VNormAsLayerNorm VNormRule = iota
	VNormFiveSteps
)

// SoftCapRule is how logits are divided by the cap.
type SoftCapRule uint8

// Converters turn the division into a product with fp16(1/30).
const (
	SoftCapDivides SoftCapRule = iota
	SoftCapMultiplies
)

// SoftmaxRule is the form of the softmax.
type SoftmaxRule uint8

// Five ops with one rounding each, or one fused op with one rounding at the end.
const (
	SoftmaxFiveOps SoftmaxRule = iota
	SoftmaxFused
)

// SubnormalRule says what happens to results below 2^-14. It never applies to eps.
type SubnormalRule uint8

// Flushing is reported by upstream, unverified.
const (
	SubnormalsKept SubnormalRule = iota
	SubnormalsFlushed
)

// PLEScaleRule says where hidden^-½ of the per-layer projection is applied.
type PLEScaleRule uint8

// CoreML-LLM's converter folds the scale into the fp16 weight.
const (
	PLEScaleSeparate PLEScaleRule = iota
	PLEScaleFolded
)

// ane stores fp16 and rounds once per materialised value.
type ane struct {
	rounded
	rules ANERules
}

// NewANE returns the ane mode with explicit rules; threads 0 means all cores.
func NewANE(rules ANERules, threads int) Arithmetic {
	round := half.RoundF16Saturate
	if rules.Overflow == OverflowInfinite {
		round = half.RoundF16
	}
	if rules.Subnormals == SubnormalsFlushed {
		round = flushSubnormals(round)
	}
	t := f16Tables()
	through := func(t *f16Table) func(float32) float32 {
		return func(x float32) float32 { return round(t[half.F32ToF16(x)]) }
	}
	return &ane{rules: rules, rounded: rounded{
		name: "ane", kv: swa.Float16, round: round, pool: kernel.SharedPool(threads),
		constant: func(c float64) float64 { return float64(half.RoundF16(float32(c))) },
		exp:      through(t.exp), tanh: through(t.tanh), gelu: through(t.gelu),
	}}
}

// flushSubnormals makes results below the least normal fp16 zero of the same sign.
func flushSubnormals(round func(float32) float32) func(float32) float32 {
	return func(x float32) float32 {
		y := round(x)
		if y < 0x1p-14 && y > -0x1p-14 {
			return float32(math.Copysign(0, float64(y)))
		}
		return y
	}
}

// f16Table is a function of one fp16 value for all 65536 of them: the float32 value before the rounding to storage.
type f16Table [1 << 16]float32

func newF16Table(f func(float64) float64) *f16Table {
	t := new(f16Table)
	for i := range t {
		t[i] = float32(f(float64(half.F16ToF32(uint16(i)))))
	}
	return t
}

var f16Tables = sync.OnceValue(func() (t struct{ exp, tanh, gelu *f16Table }) {
	t.exp, t.tanh, t.gelu = newF16Table(Exp64), newF16Table(Tanh64), newF16Table(gelu64)
	return t
})

func (a *ane) Weight(w quant.Matrix) quant.Matrix { return quant.AsF16(w) }

func (a *ane) ScaledWeight(w quant.Matrix, c float64) (quant.Matrix, float64) {
	if a.rules.PLEScale == PLEScaleFolded {
		return quant.ScaledF16(a.Weight(w), half.RoundF16(float32(c))), 1
	}
	return a.Weight(w), c
}

// EmbeddingScale rounds the exact product once; tables are inputs of the chunks and never pass through fp16 unscaled.
func (a *ane) EmbeddingScale(y, row []float32, scale float64) {
	for i, v := range row {
		y[i] = a.narrow(float64(v) * scale)
	}
}

func (a *ane) eps(eps float64) float64 {
	if a.rules.Eps == EpsExact {
		return eps
	}
	return float64(half.RoundF16(float32(eps)))
}

// RMSNorm is layer_norm([x, −x]), whose mean is zero and whose variance is mean(x²), then the gain: two roundings.
func (a *ane) RMSNorm(y, x, gain []float32, n int, eps float64) {
	buf := rowBuffer(2 * n)
	defer rowBuffers.Put(buf)
	z := (*buf)[:2*n]
	for i := 0; i < len(x); i += n {
		for k, v := range x[i : i+n] {
			z[k], z[n+k] = v, -v
		}
		a.LayerNorm(z, z, a.eps(eps))
		if gain == nil {
			copy(y[i:i+n], z)
			continue
		}
		a.Mul(y[i:i+n], z[:n], gain)
	}
}

func (a *ane) VNorm(y, x []float32, n int, eps float64) {
	if a.rules.VNorm == VNormAsLayerNorm {
		a.RMSNorm(y, x, nil, n, eps)
		return
	}
	for i := 0; i < len(x); i += n {
		a.vNormSteps(y[i:i+n], x[i:i+n], eps)
	}
}

// vNormSteps is x² → mean → +eps → rsqrt → product, each rounded.
func (a *ane) vNormSteps(y, x []float32, eps float64) {
	var l kernel.Lanes
	for i, v := range x {
		l[i&7] += float64(a.round(v * v))
	}
	mean := a.narrow(l.Sum() / float64(len(x)))
	sum := a.narrow(float64(mean) + a.eps(eps))
	r := a.narrow(1 / math.Sqrt(float64(sum)))
	for i, v := range x {
		y[i] = a.round(v * r)
	}
}

// Softmax is max, difference, exponential, sum, quotient: five ops, one rounding each. Masked positions are skipped, not
// added as −∞.
func (a *ane) Softmax(p []float32, spans []swa.Span) {
	if a.rules.Softmax == SoftmaxFused {
		a.softmaxFused(p, spans)
		return
	}
	m := a.Max(p)
	for i, s := range p {
		p[i] = a.exp(a.round(s - m))
	}
	sum := a.narrow(sumByPosition(p, spans))
	for i, e := range p {
		p[i] = a.round(e / sum)
	}
}

func (a *ane) softmaxFused(p []float32, spans []swa.Span) {
	m := a.Max(p)
	for i, s := range p {
		p[i] = float32(Exp64(float64(s) - float64(m)))
	}
	sum := sumByPosition(p, spans)
	for i, e := range p {
		p[i] = a.narrow(float64(e) / sum)
	}
}

// SoftCap rounds quotient, tanh and product.
func (a *ane) SoftCap(y, x []float32, limit float64) {
	if a.rules.SoftCap == SoftCapMultiplies {
		a.Scale(y, x, 1/limit)
	} else {
		for i, v := range x {
			y[i] = a.round(v / float32(limit))
		}
	}
	a.Tanh(y, y)
	a.Scale(y, y, limit)
}
