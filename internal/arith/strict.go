package arith

import (
	"anelab/quant"
	"anelab/swa"
)

// strict is the ane mode as hardware without wide accumulators would compute it: fp16 after every product and every sum of a linear, of
// attention and of softmax, in index order. It is an oracle of how much the accumulators matter, not a mode to run a model in. Norm
// statistics stay wide: a sum of squares leaves the range of fp16.
type strict struct{ ane }

func newStrict(threads int) *strict {
	s := &strict{ane: *NewANE(ANERules{}, threads).(*ane)}
	s.name = "strict"
	return s
}

// dot is Σ w[i]·x[i], rounded after every step.
func (a *strict) dot(w, x []float32) float32 {
	var s float32
	for i, v := range w {
		s = a.round(s + a.round(v*x[i]))
	}
	return s
}

// strictLinear is Linear of the strict mode; a row of the job is a row of the weight.
type strictLinear struct {
	a    *strict
	y, x []float32
	w    quant.Matrix
	t    int
}

// Linear decodes every row once.
func (a *strict) Linear(y []float32, w quant.Matrix, x []float32, t int) {
	checkLinear(y, w, x, t)
	a.pool.Do(w.Rows(), grain(w, t), &strictLinear{a: a, y: y, x: x, w: w, t: t})
}

func (j *strictLinear) Run(lo, hi int) {
	rows, cols := j.w.Rows(), j.w.Cols()
	buf := rowBuffer(cols)
	defer rowBuffers.Put(buf)
	row := (*buf)[:cols]
	for r := lo; r < hi; r++ {
		j.w.Row(row, r)
		for t := range j.t {
			j.y[t*rows+r] = j.a.dot(row, j.x[t*cols:(t+1)*cols])
		}
	}
}

// Sum adds in index order.
func (a *strict) Sum(x []float32) float32 {
	var s float32
	for _, v := range x {
		s = a.round(s + v)
	}
	return s
}

// Scores multiplies position by position.
func (a *strict) Scores(s, q []float32, k swa.View, spans []swa.Span) {
	d, n, at := k.Dim(), swa.Count(spans), 0
	buf := rowBuffer(d)
	defer rowBuffers.Put(buf)
	row := (*buf)[:d]
	for _, span := range spans {
		for p := span.Lo; p < span.Hi; p++ {
			k.Load(row, p, 1)
			for h := range len(q) / d {
				s[h*n+at] = a.dot(q[h*d:(h+1)*d], row)
			}
			at++
		}
	}
}

// Softmax is the five ops of the ane mode with a sum that rounds every time.
func (a *strict) Softmax(p []float32, _ []swa.Span) {
	m := a.Max(p)
	for i, s := range p {
		p[i] = a.exp(a.round(s - m))
	}
	sum := a.Sum(p)
	for i, e := range p {
		p[i] = a.round(e / sum)
	}
}

// Mix adds position by position.
func (a *strict) Mix(o, p []float32, v swa.View, spans []swa.Span) {
	d, n, at := v.Dim(), swa.Count(spans), 0
	buf := rowBuffer(d)
	defer rowBuffers.Put(buf)
	row := (*buf)[:d]
	clear(o)
	for _, span := range spans {
		for pos := span.Lo; pos < span.Hi; pos++ {
			v.Load(row, pos, 1)
			for h := range len(o) / d {
				for i, x := range row {
					o[h*d+i] = a.round(o[h*d+i] + a.round(p[h*n+at]*x))
				}
			}
			at++
		}
	}
}
