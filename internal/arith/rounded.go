package arith

import (
	"math"
	"sync"

	"anelab/internal/kernel"
	"anelab/quant"
	"anelab/swa"
)

// rounded is the part that modes share: every primitive computes a value in float64 or float32 and rounds it once by round.
// The pinned modes embed it as it is; f32 replaces the sums.
type rounded struct {
	name     string
	kv       swa.Elem
	round    func(float32) float32 // float32 → storage
	constant func(float64) float64 // how a Python-float constant is held
	exp      func(float32) float32 // of one stored value, rounded
	tanh     func(float32) float32
	gelu     func(float32) float32
	pool     *kernel.Pool
}

func (a *rounded) Name() string { return a.name }

func (a *rounded) KV() swa.Elem { return a.kv }

// narrow rounds a wide sum to storage: float64 → float32 → storage, two roundings in this order, everywhere.
func (a *rounded) narrow(x float64) float32 { return a.round(float32(x)) }

func (a *rounded) Store(x []float32) { a.apply(x, x, a.round) }

func (a *rounded) apply(y, x []float32, f func(float32) float32) {
	for i, v := range x {
		y[i] = f(v)
	}
}

func (a *rounded) Add(y, p, q []float32) {
	for i := range y {
		y[i] = a.round(p[i] + q[i])
	}
}

func (a *rounded) Sub(y, p, q []float32) {
	for i := range y {
		y[i] = a.round(p[i] - q[i])
	}
}

func (a *rounded) Mul(y, p, q []float32) {
	for i := range y {
		y[i] = a.round(p[i] * q[i])
	}
}

func (a *rounded) Div(y, p, q []float32) {
	for i := range y {
		y[i] = a.round(p[i] / q[i])
	}
}

func (a *rounded) Scale(y, x []float32, c float64) {
	k := a.constant(c)
	for i, v := range x {
		y[i] = a.narrow(float64(v) * k)
	}
}

func (a *rounded) Exp(y, x []float32)  { a.apply(y, x, a.exp) }
func (a *rounded) Tanh(y, x []float32) { a.apply(y, x, a.tanh) }
func (a *rounded) GELU(y, x []float32) { a.apply(y, x, a.gelu) }

func (a *rounded) GELUMul(y, x, z []float32) {
	a.GELU(y, x)
	a.Mul(y, y, z)
}

func (a *rounded) Max(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func (a *rounded) Sum(x []float32) float32 {
	var l kernel.Lanes
	l.AddLanes(x, 0)
	return a.narrow(l.Sum())
}

func (a *rounded) LayerNorm(y, x []float32, eps float64) {
	var l, sq kernel.Lanes
	l.AddLanes(x, 0)
	mean := l.Sum() / float64(len(x))
	for i, v := range x {
		d := float64(v) - mean
		sq[i&7] += float64(d * d)
	}
	deviation := math.Sqrt(sq.Sum()/float64(len(x)) + eps)
	for i, v := range x {
		y[i] = a.narrow((float64(v) - mean) / deviation)
	}
}

// Linear gives each core a range of output rows; a row is decoded once and multiplied with every x.
func (a *rounded) Linear(y []float32, w quant.Matrix, x []float32, t int) {
	checkLinear(y, w, x, t)
	if p, ok := w.(*quant.Packed); ok && t < paletteBatch {
		for i := range t {
			a.paletteWide(y[i*w.Rows():(i+1)*w.Rows()], p, x[i*w.Cols():(i+1)*w.Cols()])
		}
		return
	}
	j := jobs64.Get().(*linear64)
	*j = linear64{a: a, y: y, x: x, w: w, t: t}
	a.pool.Do(w.Rows(), grain(w, t), j)
	*j = linear64{}
	jobs64.Put(j)
}

func (a *rounded) Parallel(n, grain int, job Job) { a.pool.Do(n, grain, job) }

var jobs64 = sync.Pool{New: func() any { return new(linear64) }}

// linear64 is Linear for the pinned modes.
type linear64 struct {
	a    *rounded
	y, x []float32
	w    quant.Matrix
	t    int
}

func (j *linear64) Run(lo, hi int) {
	rows, cols := j.w.Rows(), j.w.Cols()
	buf, wide := rowBuffer(4*cols), wideBuffer(4*j.t)
	defer rowBuffers.Put(buf)
	defer wideBuffers.Put(wide)
	w := (*buf)[:4*cols]
	for r := lo; r < hi; r += 4 {
		n := decode4(w, j.w, r, hi)
		for i, end := 0, 0; i < j.t; i = end {
			end = min(i+block(cols), j.t)
			y := (*wide)[:4*(end-i)]
			kernel.Rows64(y, w, j.x[i*cols:end*cols], cols)
			for t := i; t < end; t++ {
				for k := range n {
					j.y[t*rows+r+k] = j.a.narrow(y[4*(t-i)+k])
				}
			}
		}
	}
}

func (a *rounded) RoPE(x, cos, sin []float32) {
	h := len(x) / 2
	for i := range h {
		lo, hi := x[i], x[i+h]
		x[i] = a.round(a.round(lo*cos[i]) + a.round(-hi*sin[i]))
		x[i+h] = a.round(a.round(hi*cos[i+h]) + a.round(lo*sin[i+h]))
	}
}

func (a *rounded) RopeTable(cos, sin []float32, pos int, freq []float32) {
	h := len(freq)
	for i, f := range freq {
		s, c := SinCos64(float64(float32(pos) * f)) // the angle is an fp32 product, as HF forms it
		cos[i], sin[i] = a.narrow(c), a.narrow(s)
	}
	copy(cos[h:], cos[:h])
	copy(sin[h:], sin[:h])
}

func (a *rounded) Scores(s, q []float32, k swa.View, spans []swa.Span) {
	d, n := k.Dim(), swa.Count(spans)
	heads := len(q) / d
	buf, wide := rowBuffer(4*d), wideBuffer(4*heads)
	defer rowBuffers.Put(buf)
	defer wideBuffers.Put(wide)
	rows, sums, at := (*buf)[:4*d], (*wide)[:4*heads], 0
	for _, span := range spans {
		for p := span.Lo; p < span.Hi; p += 4 {
			count := min(4, span.Hi-p)
			k.Load(rows, p, count)
			kernel.Rows64(sums, rows, q, d)
			for h := range heads {
				for i := range count {
					s[h*n+at+i] = a.narrow(sums[4*h+i])
				}
			}
			at += count
		}
	}
}

func (a *rounded) Mix(o, p []float32, v swa.View, spans []swa.Span) {
	d, n := v.Dim(), swa.Count(spans)
	buf, wide := rowBuffer(d), wideBuffer(8*len(o))
	defer rowBuffers.Put(buf)
	defer wideBuffers.Put(wide)
	row, lanes, at := (*buf)[:d], (*wide)[:8*len(o)], 0
	clear(lanes)
	for _, span := range spans {
		for pos := span.Lo; pos < span.Hi; pos++ {
			v.Load(row, pos, 1)
			for h := range len(o) / d {
				kernel.Axpy64(lanes[(pos&7)*len(o)+h*d:][:d], row, p[h*n+at])
			}
			at++
		}
	}
	for i := range o {
		var l kernel.Lanes
		for k := range l {
			l[k] = lanes[k*len(o)+i]
		}
		o[i] = a.narrow(l.Sum())
	}
}

// sumByPosition adds p in the canonical structure, lane = absolute position mod 8.
func sumByPosition(p []float32, spans []swa.Span) float64 {
	var l kernel.Lanes
	for _, span := range spans {
		n := span.Len()
		l.AddLanes(p[:n], span.Lo)
		p = p[n:]
	}
	return l.Sum()
}
