package gemma4

import "anelab/swa"

// layer is one decoder layer in the order of the paper: attention, MLP, per-layer input, each normed before the sum, then the
// whole stream times layer_scalar (spec forward.md §2.3).
func (m *Model) layer(p *Pass, l int) {
	w, eps, d := &m.w.layers[l], m.Config.RMSNormEps, m.Config.HiddenSize
	ws := p.ws
	ws.h, ws.branch = grow(ws.h, p.T*d), grow(ws.branch, p.T*d)

	m.a.RMSNorm(ws.h, p.X, w.inputNorm, d, eps)
	m.attention(p, l)
	p.tap(PointAttnOut, l, ws.branch, dims{p.T, d})
	m.a.RMSNorm(ws.branch, ws.branch, w.postAttnNorm, d, eps)
	m.a.Add(p.X, p.X, ws.branch)

	m.a.RMSNorm(ws.h, p.X, w.preFFNNorm, d, eps)
	m.mlp(p, l)
	p.tap(PointFFNOut, l, ws.branch, dims{p.T, d})
	m.a.RMSNorm(ws.branch, ws.branch, w.postFFNNorm, d, eps)
	m.a.Add(p.X, p.X, ws.branch)

	if m.Config.HiddenSizePerLayer > 0 {
		m.perLayerInput(p, l)
		p.tap(PointPLEOut, l, ws.branch, dims{p.T, d})
		m.a.RMSNorm(ws.branch, ws.branch, w.postPLENorm, d, eps)
		m.a.Add(p.X, p.X, ws.branch)
	}
	m.a.Scale(p.X, p.X, float64(w.scalar[0]))
	p.tap(PointHidden, l, p.X, dims{p.T, d})
}

// attention fills ws.branch with o_proj(softmax(q·Kᵀ)·V) of ws.h. An owner stages its keys and values first, so a token sees
// itself; a shared layer reads its donor's store, which already holds this call's rows.
func (m *Model) attention(p *Pass, l int) {
	w, y, ws := &m.w.layers[l], m.Layers[l], p.ws
	n := y.Heads * y.HeadDim
	ws.q, ws.mixed = grow(ws.q, p.T*n), grow(ws.mixed, p.T*n)
	m.a.Linear(ws.q, w.q, ws.h, p.T)
	m.a.RMSNorm(ws.q, ws.q, w.qNorm, y.HeadDim, m.Config.RMSNormEps)
	m.rotate(p, y, ws.q)
	p.tap(PointQ, l, ws.q, dims{p.T, y.Heads, y.HeadDim})
	if y.OwnsKV() && p.staged != l+1 {
		m.keysValues(p, l)
	}
	store := p.Stores[y.KVSource]
	m.tapKV(p, y, store)
	m.attend(p, y, store)
	m.a.Linear(ws.branch, w.o, ws.mixed, p.T)
}

// keysValues stages K = RoPE(RMS(Wk·h)) and V = RMS₁(Wv·h). V is normed without gain, never rotated; with KEqV it is the norm
// of the raw key projection, taken before the key's own norm.
func (m *Model) keysValues(p *Pass, l int) {
	w, y, ws, eps := &m.w.layers[l], m.Layers[l], p.ws, m.Config.RMSNormEps
	n := p.T * y.KVWidth()
	ws.k, ws.v = grow(ws.k, n), grow(ws.v, n)
	m.a.Linear(ws.k, w.k, ws.h, p.T)
	if y.KEqV {
		copy(ws.v, ws.k)
	} else {
		m.a.Linear(ws.v, w.v, ws.h, p.T)
	}
	m.a.VNorm(ws.v, ws.v, y.HeadDim, eps)
	m.a.RMSNorm(ws.k, ws.k, w.kNorm, y.HeadDim, eps)
	m.rotate(p, y, ws.k)
	if like := m.form(l).Like; like > 0 {
		m.borrowDirections(p, y, p.Stores[like-1])
	}
	p.Stores[l].Stage(p.First, ws.k, ws.v)
}

// remember does of layer l only what later positions need: it stages the keys and values of the stream.
func (m *Model) remember(p *Pass, l int) {
	d := m.Config.HiddenSize
	p.ws.h = grow(p.ws.h, p.T*d)
	m.a.RMSNorm(p.ws.h, p.X, m.w.layers[l].inputNorm, d, m.Config.RMSNormEps)
	m.keysValues(p, l)
}

// rotate applies RoPE to every head of x [T, heads, d].
func (m *Model) rotate(p *Pass, y Layer, x []float32) {
	d, r := y.HeadDim, p.Rope[y.Kind]
	width := len(x) / p.T
	for i := 0; i < len(x); i += d {
		t := i / width
		m.a.RoPE(x[i:i+d], r.Cos[t*d:(t+1)*d], r.Sin[t*d:(t+1)*d])
	}
}

// attend runs the policy of layer y for every token, shared among the cores: by token, or by position and column when there
// is one.
func (m *Model) attend(p *Pass, y Layer, store swa.Store) {
	if p.T == 1 && p.Trace == nil && m.simple[y.Index] {
		m.attendOne(p, y, store)
		return
	}
	j := &p.ws.job
	j.m, j.p, j.l, j.k, j.v = m, p, y, store.Keys(), store.Values()
	if p.Trace != nil {
		j.seen = make([]float32, y.Heads*p.T*(p.First+p.T))
	}
	m.a.Parallel(p.T, 1, j)
	if p.Trace != nil {
		p.tap(PointProbs, y.Index, j.seen, dims{y.Heads, p.T, p.First + p.T})
	}
}

// tapKV traces the key and value rows of the call's own positions as attention reads them.
func (m *Model) tapKV(p *Pass, y Layer, store swa.Store) {
	if p.Trace == nil {
		return
	}
	for _, kv := range []struct {
		point Point
		view  swa.View
	}{{PointK, store.Keys()}, {PointV, store.Values()}} {
		rows := make([]float32, p.T*y.KVWidth())
		for i := range p.T * y.KVHeads {
			kv.view.Head(i%y.KVHeads).Load(rows[i*y.HeadDim:(i+1)*y.HeadDim], p.First+i/y.KVHeads, 1)
		}
		p.tap(kv.point, y.Index, rows, dims{p.T, y.KVHeads, y.HeadDim})
	}
}

// mlp fills ws.branch with Wdown(gelu(Wgate·h) ⊙ Wup·h).
func (m *Model) mlp(p *Pass, l int) {
	w, ws := &m.w.layers[l], p.ws
	n := p.T * m.Layers[l].FFN
	ws.gate, ws.up = grow(ws.gate, n), grow(ws.up, n)
	m.a.Linear(ws.gate, w.gate, ws.h, p.T)
	m.a.Linear(ws.up, w.up, ws.h, p.T)
	m.a.GELUMul(ws.gate, ws.gate, ws.up)
	m.a.Linear(ws.branch, w.down, ws.gate, p.T)
}

// perLayerInput fills ws.branch with Wproj(gelu(Wgate·x) ⊙ ple[l]); the gate reads the stream un-normed.
func (m *Model) perLayerInput(p *Pass, l int) {
	w, ws, n := &m.w.layers[l], p.ws, m.Config.HiddenSizePerLayer
	ws.ple, ws.slice = grow(ws.ple, p.T*n), grow(ws.slice, p.T*n)
	all := len(m.Layers) * n
	for t := range p.T {
		copy(ws.slice[t*n:(t+1)*n], p.PLE[t*all+l*n:])
	}
	m.a.Linear(ws.ple, w.pleGate, p.X, p.T)
	m.a.GELUMul(ws.ple, ws.ple, ws.slice)
	m.a.Linear(ws.branch, w.pleProj, ws.ple, p.T)
}
