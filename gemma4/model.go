package gemma4

import (
	"math"

	"anelab/attention"
	"anelab/internal/arith"
	"anelab/quant"
	"anelab/swa"
)

// Model is a loaded model in one numerics mode: immutable, safe for concurrent use by any number of States.
type Model struct {
	Config Config
	Layers []Layer
	// Warnings are findings at load that do not stop the model, for example weights that overflow in this mode.
	Warnings []error

	a        arith.Arithmetic
	kv       swa.Elem
	rows     Rows // nil for the checkpoint's tables
	w        *modelWeights
	policies []attention.Policy // per layer
	runs     [][]attention.Run  // per layer
	simple   []bool             // per layer: visible positions alone decide, and rows are as they were computed
	owner    int                // the highest layer that computes keys and values
	freq     [2][]float32       // RoPE frequencies per Kind, [d/2]
}

// Options are the choices made at load.
type Options struct {
	// Policies replaces the attention policy of single layers.
	Policies map[int]attention.Policy
	// Linear replaces a linear weight as the checkpoint stores it, for example by a palette; nil keeps all. The embedding table
	// passes through it as LM head only: lookups read the checkpoint's own.
	Linear func(name string, m quant.Matrix) (quant.Matrix, error)
	// KV says in how many bits states remember keys and values.
	KV KVStorage
	// Rows replaces the lookup of embeddings and per-layer rows; nil reads the checkpoint's tables.
	Rows Rows
}

// Rows gives the rows of a token, scaled and representable in the mode's storage type, for example from the int8 tables of an app.
type Rows interface {
	// Embed fills x [D] with the embedding of a token.
	Embed(x []float32, token int)
	// PLERaw fills raw [L, P] with the per-layer rows of a token.
	PLERaw(raw []float32, token int)
}

// KVStorage is the type of the stores.
type KVStorage uint8

// KVExact keeps what the mode computes without a further rounding: float32 in f32, 16 bits in the pinned modes. KVFloat16 halves the
// memory of the f32 mode at the price of one rounding to fp16, as llama.cpp does by default.
const (
	KVExact KVStorage = iota
	KVFloat16
)

// Load reads all weights of a checkpoint. Dense weights stay where the source maps them.
func Load(c Config, src Source, a arith.Arithmetic, o Options) (*Model, error) {
	m, err := newModel(c, a, o)
	if err != nil {
		return nil, err
	}
	l := &loader{src: src, a: a, linear: o.Linear, form: m.form}
	m.w = l.load(c, m.Layers)
	m.Warnings = l.warnings
	return m, l.err
}

// newModel is a model without weights.
func newModel(c Config, a arith.Arithmetic, o Options) (*Model, error) {
	layers, err := c.Layers()
	if err != nil {
		return nil, err
	}
	m := &Model{Config: c, Layers: layers, a: a, kv: a.KV(), rows: o.Rows}
	if o.KV == KVFloat16 && m.kv == swa.Float32 {
		m.kv = swa.Float16
	}
	if err := m.resolvePolicies(o.Policies); err != nil {
		return nil, err
	}
	for _, y := range layers {
		if m.freq[y.Kind] == nil {
			m.freq[y.Kind] = arith.InvFreq(y.Rope.Theta, y.HeadDim, y.Rope.Pairs)
		}
	}
	return m, nil
}

// Arithmetic is the numerics mode the model was loaded for.
func (m *Model) Arithmetic() arith.Arithmetic { return m.a }

// Policy is the attention policy of layer l.
func (m *Model) Policy(l int) attention.Policy { return m.policies[l] }

// Policy is the layer's own attention policy.
func (l Layer) Policy() attention.Policy {
	if l.Kind == Sliding {
		return attention.Sliding{Window: l.Window}
	}
	return attention.Full{}
}

// StepBytes are the weight bytes that one decoded token reads: every linear and the head; of the tables only a row.
func (m *Model) StepBytes() int64 {
	all := []quant.Matrix{m.w.head, m.w.pleModel}
	for _, l := range m.w.layers {
		all = append(all, l.q, l.k, l.v, l.o, l.gate, l.up, l.down, l.pleGate, l.pleProj)
	}
	var n int64
	for _, w := range all {
		if w != nil {
			n += w.Bytes()
		}
	}
	return n
}

// invSqrt is n^−½.
func invSqrt(n int) float64 { return 1 / math.Sqrt(float64(n)) }

// Embed fills x [T, D] with the scaled embeddings of tokens.
func (m *Model) Embed(x []float32, tokens []int) {
	if m.rows == nil {
		m.lookup(x, m.w.embed, tokens, m.Config.HiddenSize)
		return
	}
	for t, id := range tokens {
		m.rows.Embed(x[t*m.Config.HiddenSize:(t+1)*m.Config.HiddenSize], id)
	}
}

// PLERaw fills raw [T, L, P] with the scaled rows of the per-layer table; layer l owns columns [l·P, (l+1)·P).
func (m *Model) PLERaw(raw []float32, tokens []int) {
	if m.rows == nil {
		m.lookup(raw, m.w.pleTable, tokens, m.Config.HiddenSizePerLayer)
		return
	}
	n := len(m.Layers) * m.Config.HiddenSizePerLayer
	for t, id := range tokens {
		m.rows.PLERaw(raw[t*n:(t+1)*n], id)
	}
}

// lookup gathers rows of a table and scales them by √width.
func (m *Model) lookup(x []float32, table quant.Matrix, tokens []int, width int) {
	n, scale := table.Cols(), math.Sqrt(float64(width))
	for t, id := range tokens {
		row := x[t*n : (t+1)*n]
		table.Row(row, id)
		m.a.EmbeddingScale(row, row, scale)
	}
}

// CombinePLE turns raw table rows into the per-layer inputs, in place: ple = (RMS(W·x·D^−½) + raw)·2^−½ with x [T, D] the
// scaled embeddings and ple [T, L, P] (spec forward.md §2.2). proj is scratch of the same size.
func (m *Model) CombinePLE(ple, proj, x []float32) {
	p, t := m.Config.HiddenSizePerLayer, len(x)/m.Config.HiddenSize
	m.a.Linear(proj, m.w.pleModel, x, t)
	if m.w.pleModelRest != 1 {
		m.a.Scale(proj, proj, m.w.pleModelRest)
	}
	m.a.RMSNorm(proj, proj, m.w.pleNorm, p, m.Config.RMSNormEps)
	m.a.Add(ple, proj, ple)
	m.a.Scale(ple, ple, math.Sqrt2/2)
}

// FinalNorm is y = RMS(x; norm), rows of D.
func (m *Model) FinalNorm(y, x []float32) {
	m.a.RMSNorm(y, x, m.w.norm, m.Config.HiddenSize, m.Config.RMSNormEps)
}

// Logits fills pre [T, V] = E·x with the tied, unscaled embedding, and capped [T, V] with the soft-capped values. The two may
// be one slice.
func (m *Model) Logits(capped, pre, x []float32) {
	m.a.Linear(pre, m.w.head, x, len(x)/m.Config.HiddenSize)
	if limit := m.Config.FinalLogitSoftcapping; limit > 0 {
		m.a.SoftCap(capped, pre, limit)
	} else {
		copy(capped, pre)
	}
}

// Argmax is the index of the greatest value, the lowest on a tie, after the soft-cap: rounding makes ties, and the cap decides
// them (spec forward.md §2.10).
func Argmax(logits []float32) int {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return best
}
