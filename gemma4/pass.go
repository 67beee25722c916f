package gemma4

import (
	"context"
	"sync"

	"anelab/attention"
	"anelab/swa"
)

// Pass is one forward call over T consecutive tokens: what moves through the layers and where it reads and writes. The whole
// model and a chunk differ only in where X, PLE, Rope and Stores come from.
type Pass struct {
	First  int         // absolute position of row 0
	T      int         //
	X      []float32   // [T, D], the residual stream
	PLE    []float32   // [T, L, P], combined per-layer inputs; nil without PLE
	Rope   [2]RopeRows // by Kind
	Stores []swa.Store // [L]; a layer reads Stores[KVSource] and, as owner, stages into it
	Trace  Tracer      // nil when nobody listens

	ws     *Workspace
	staged int // one more than the layer whose keys and values are staged already; 0 for none
}

// RopeRows are the rotary tables of a call's positions.
type RopeRows struct {
	Cos, Sin []float32 // [T, d]
}

// Workspace is the scratch memory of one call at a time. Reuse it, and steady decode allocates nothing.
type Workspace struct {
	h, branch  []float32 // [T, D]
	q, mixed   []float32 // [T, H·d]
	k, v       []float32 // [T, K·d]
	gate, up   []float32 // [T, F]
	ple, slice []float32 // [T, P]
	proj       []float32 // [T, L, P]
	rope       [2]RopeRows
	job        attendJob
	one        oneJob
	tail       Pass // the last token of a prompt, when the others are done
}

// grow returns s with length n, reallocated only when it is too small.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// Begin prepares a pass of t tokens at positions first…: its RoPE rows and its scratch. ws belongs to the pass until the next Begin.
func (m *Model) Begin(p *Pass, ws *Workspace) {
	p.ws = ws
	for kind, freq := range m.freq {
		d := 2 * len(freq)
		r := &ws.rope[kind]
		r.Cos, r.Sin = grow(r.Cos, p.T*d), grow(r.Sin, p.T*d)
		for t := range p.T {
			m.a.RopeTable(r.Cos[t*d:(t+1)*d], r.Sin[t*d:(t+1)*d], p.First+t, freq)
		}
	}
	p.Rope = ws.rope
}

// dims is the shape of a tap; unused axes are zero. A value, so that a call nobody traces allocates nothing.
type dims [3]int

// tap hands a tensor to the tracer.
func (p *Pass) tap(point Point, layer int, data []float32, shape dims) {
	if p.Trace != nil {
		p.send(point, layer, data, shape)
	}
}

func (p *Pass) send(point Point, layer int, data []float32, shape dims) {
	axes := shape[:]
	for axes[len(axes)-1] == 0 {
		axes = axes[:len(axes)-1]
	}
	p.Trace(Tap{Point: point, Layer: layer, First: p.First, Shape: axes, Data: data})
}

// RunLayers carries the stream through layers [lo, hi). It stops between layers when the context ends; nothing is committed.
func (m *Model) RunLayers(ctx context.Context, p *Pass, lo, hi int) error {
	for l := lo; l < hi; l++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.layer(p, l)
	}
	return nil
}

// last narrows the pass to its last token, whose keys and values of layer l are staged with those of the others.
func (m *Model) last(p *Pass, l int) *Pass {
	t, ws := p.T-1, p.ws
	q := &ws.tail
	*q = Pass{First: p.First + t, T: 1, Stores: p.Stores, Trace: p.Trace, ws: ws, staged: l + 1}
	q.X = p.X[t*m.Config.HiddenSize:]
	if n := len(m.Layers) * m.Config.HiddenSizePerLayer; n > 0 {
		q.PLE = p.PLE[t*n:]
	}
	for kind, r := range p.Rope {
		d := 2 * len(m.freq[kind])
		q.Rope[kind] = RopeRows{Cos: r.Cos[t*d:], Sin: r.Sin[t*d:]}
	}
	return q
}

// attendJob is the attention of one layer; a row of the job is one token.
type attendJob struct {
	m    *Model
	p    *Pass
	l    Layer
	k, v swa.View
	seen []float32 // probabilities [H, T, positions] when traced
}

var scratches = sync.Pool{New: func() any { return new(attention.Scratch) }}

func (j *attendJob) Run(lo, hi int) {
	s := scratches.Get().(*attention.Scratch)
	defer scratches.Put(s)
	n := j.l.Heads * j.l.HeadDim
	for t := lo; t < hi; t++ {
		attention.Attend(j.m.a, attention.Query{
			Pos: j.p.First + t, Q: j.p.ws.q[t*n : (t+1)*n], Out: j.p.ws.mixed[t*n : (t+1)*n],
			HeadDim: j.l.HeadDim, Keys: j.k, Values: j.v,
			Policy: j.m.policies[j.l.Index], Runs: j.m.runs[j.l.Index],
		}, s, j.probs(t))
	}
}

// probs returns the receiver of row t's probabilities, nil when nobody listens.
func (j *attendJob) probs(t int) attention.Probs {
	if j.p.Trace == nil {
		return nil
	}
	width := j.p.First + j.p.T
	return func(head int, p []float32, spans []swa.Span) {
		row := j.seen[(head*j.p.T+t)*width:][:width]
		for _, s := range spans {
			p = p[copy(row[s.Lo:s.Hi], p):]
		}
	}
}
