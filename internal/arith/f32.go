package arith

import (
	"math"
	"sync"

	"anelab/internal/kernel"
	"anelab/quant"
	"anelab/swa"
)

// f32 computes and stores in float32. Results do not depend on the number of threads or on batch and chunk borders; they may
// differ between kernels and architectures in the last bits.
type f32 struct{ rounded }

func newF32(pool *kernel.Pool) *f32 {
	keep := func(x float32) float32 { return x }
	return &f32{rounded: rounded{
		name: "f32", round: keep, pool: pool,
		constant: func(c float64) float64 { return float64(float32(c)) },
		exp:      func(x float32) float32 { return float32(math.Exp(float64(x))) },
		tanh:     func(x float32) float32 { return float32(math.Tanh(float64(x))) },
		gelu:     func(x float32) float32 { return float32(gelu64(float64(x))) },
	}}
}

func (a *f32) Weight(w quant.Matrix) quant.Matrix { return w }

func (a *f32) ScaledWeight(w quant.Matrix, c float64) (quant.Matrix, float64) { return w, c }

// EmbeddingScale multiplies by the scale as float32.
func (a *f32) EmbeddingScale(y, row []float32, scale float64) { a.Scale(y, row, scale) }

func (a *f32) Linear(y []float32, w quant.Matrix, x []float32, t int) {
	checkLinear(y, w, x, t)
	if p, ok := w.(*quant.Packed); ok {
		a.palette(y, p, x, t)
		return
	}
	j := jobs32.Get().(*linear32)
	*j = linear32{y: y, x: x, w: w, t: t}
	a.pool.Do(w.Rows(), grain(w, t), j)
	*j = linear32{}
	jobs32.Put(j)
}

var jobs32 = sync.Pool{New: func() any { return new(linear32) }}

// linear32 is Linear with float32 sums.
type linear32 struct {
	y, x []float32
	w    quant.Matrix
	t    int
}

func (j *linear32) Run(lo, hi int) {
	rows, cols := j.w.Rows(), j.w.Cols()
	buf := rowBuffer(4*cols + 4*j.t)
	defer rowBuffers.Put(buf)
	w, sums := (*buf)[:4*cols], (*buf)[4*cols:4*cols+4*j.t]
	for r := lo; r < hi; r += 4 {
		n := decode4(w, j.w, r, hi)
		for i, end := 0, 0; i < j.t; i = end {
			end = min(i+block(cols), j.t)
			y := sums[:4*(end-i)]
			kernel.Rows32(y, w, j.x[i*cols:end*cols], cols)
			for t := i; t < end; t++ {
				copy(j.y[t*rows+r:t*rows+r+n], y[4*(t-i):])
			}
		}
	}
}

// The elementwise operations of this mode round by nature: no rounding has to be called.

func (a *f32) Add(y, p, q []float32) {
	for i := range y {
		y[i] = p[i] + q[i]
	}
}

func (a *f32) Mul(y, p, q []float32) {
	for i := range y {
		y[i] = p[i] * q[i]
	}
}

// Scale rounds the product of two float32 numbers once.
func (a *f32) Scale(y, x []float32, c float64) {
	k := float32(c)
	for i, v := range x {
		y[i] = v * k
	}
}

func (a *f32) RoPE(x, cos, sin []float32) {
	h := len(x) / 2
	low, high, cosLow, cosHigh, sinLow, sinHigh := x[:h], x[h:2*h], cos[:h], cos[h:2*h], sin[:h], sin[h:2*h]
	for i, lo := range low {
		hi := high[i]
		low[i] = float32(lo*cosLow[i]) - float32(hi*sinLow[i])
		high[i] = float32(hi*cosHigh[i]) + float32(lo*sinHigh[i])
	}
}

// RMSNorm sums squares in float64: cheap, and closer to the true value than any float32 order.
func (a *f32) RMSNorm(y, x, gain []float32, n int, eps float64) {
	for i := 0; i < len(x); i += n {
		row, out := x[i:i+n], y[i:i+n]
		r := float32(1 / math.Sqrt(kernel.Dot64(row, row)/float64(n)+eps))
		if gain != nil {
			kernel.MulGain(out, row, gain, r)
			continue
		}
		for k, v := range row {
			out[k] = v * r
		}
	}
}

func (a *f32) VNorm(y, x []float32, n int, eps float64) { a.RMSNorm(y, x, nil, n, eps) }

func (a *f32) GELUMul(y, x, z []float32) { kernel.GELUMul(y, x, z) }

func (a *f32) Scores(s, q []float32, k swa.View, spans []swa.Span) {
	d, n := k.Dim(), swa.Count(spans)
	heads := len(q) / d
	buf := rowBuffer(4*d + 4*heads)
	defer rowBuffers.Put(buf)
	rows, sums, at := (*buf)[:4*d], (*buf)[4*d:4*d+4*heads], 0
	for _, span := range spans {
		for p := span.Lo; p < span.Hi; p += 4 {
			count := min(4, span.Hi-p)
			k.Load(rows, p, count)
			kernel.Rows32(sums, rows, q, d)
			for h := range heads {
				copy(s[h*n+at:h*n+at+count], sums[4*h:])
			}
			at += count
		}
	}
}

func (a *f32) Softmax(p []float32, spans []swa.Span) {
	kernel.ExpShift(p, p, kernel.Max(p))
	kernel.Divide(p, p, float32(sumByPosition(p, spans)))
}

// Mix adds rows one by one, those of fp16 where they lie.
func (a *f32) Mix(o, p []float32, v swa.View, spans []swa.Span) {
	d, n, at := v.Dim(), swa.Count(spans), 0
	clear(o)
	for _, span := range spans {
		for pos := span.Lo; pos < span.Hi; {
			rows, stride, count := v.Halves(pos, span.Hi-pos)
			if count > 0 {
				kernel.MixHalves(o, p[at:], rows, kernel.Mixing{Heads: len(o) / d, Columns: d, Width: d, Positions: n, Rows: count, Stride: stride})
			} else {
				count = min(4, span.Hi-pos)
				mixLoaded(o, p[at:], v, [3]int{pos, count, n})
			}
			pos, at = pos+count, at+count
		}
	}
}

// mixLoaded adds up to four rows of any kind; at is the first position, their number, and the numbers from one head of p to the next.
func mixLoaded(o, p []float32, v swa.View, at [3]int) {
	d, count := v.Dim(), at[1]
	buf := rowBuffer(4 * d)
	defer rowBuffers.Put(buf)
	rows := (*buf)[:4*d]
	v.Load(rows, at[0], count)
	clear(rows[count*d:])
	for h := range len(o) / d {
		var w [4]float32
		copy(w[:count], p[h*at[2]:])
		kernel.Axpy4(o[h*d:(h+1)*d], rows, d, &w)
	}
}

// softCap32 shares the vocabulary among the cores.
type softCap32 struct {
	y, x  []float32
	limit float32
}

var softCaps32 = sync.Pool{New: func() any { return new(softCap32) }}

func (a *f32) SoftCap(y, x []float32, limit float64) {
	j := softCaps32.Get().(*softCap32)
	*j = softCap32{y: y, x: x, limit: float32(limit)}
	a.pool.Do(len(x), 1<<13, j)
	*j = softCap32{}
	softCaps32.Put(j)
}

func (j *softCap32) Run(lo, hi int) { kernel.SoftCap(j.y[lo:hi], j.x[lo:hi], j.limit) }
