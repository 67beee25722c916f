package gemma4

import (
	"fmt"

	"anelab/internal/arith"
	"anelab/internal/format"
	"anelab/quant"
	"anelab/swa"
)

// layerWeights are the tensors of one decoder layer; names as in the checkpoint.
type layerWeights struct {
	inputNorm    []float32    // [D] input_layernorm
	postAttnNorm []float32    // [D] post_attention_layernorm
	preFFNNorm   []float32    // [D] pre_feedforward_layernorm
	postFFNNorm  []float32    // [D] post_feedforward_layernorm
	postPLENorm  []float32    // [D] post_per_layer_input_norm
	scalar       []float32    // [1] layer_scalar
	qNorm, kNorm []float32    // [d]; kNorm only where the layer owns its KV
	q            quant.Matrix // [H·d, D]
	k, v         quant.Matrix // [K·d, D]; owners only, v not on layers with KEqV
	o            quant.Matrix // [D, H·d]
	gate, up     quant.Matrix // [F, D]
	down         quant.Matrix // [D, F]
	pleGate      quant.Matrix // [P, D]
	pleProj      quant.Matrix // [D, P]
}

// modelWeights are all tensors of the text model.
type modelWeights struct {
	embed        quant.Matrix // [V, D] embed_tokens, as stored: rows are scaled after the lookup
	head         quant.Matrix // [V, D] the same tensor as the mode stores weights
	pleTable     quant.Matrix // [V, L·P] embed_tokens_per_layer
	pleModel     quant.Matrix // [L·P, D] per_layer_model_projection
	pleModelRest float64      // factor still to be applied after pleModel
	pleNorm      []float32    // [P] per_layer_projection_norm
	norm         []float32    // [D]
	layers       []layerWeights
}

// loader reads tensors and checks their shapes; the first error sticks.
type loader struct {
	src      Source
	a        arith.Arithmetic
	linear   func(name string, m quant.Matrix) (quant.Matrix, error)
	form     func(layer int) swa.Form
	err      error
	warnings []error
}

// tensor fetches a tensor of exactly that shape.
func (l *loader) tensor(name string, shape ...int) quant.Tensor {
	if l.err != nil {
		return quant.Tensor{}
	}
	t, err := l.src.Tensor(name)
	if err != nil {
		l.err = err
		return quant.Tensor{}
	}
	if fmt.Sprint(t.Shape) != fmt.Sprint(shape) {
		l.err = shapeError(l.src, name, t.Shape, shape)
	}
	return t
}

// raw is a matrix as the checkpoint stores it.
func (l *loader) raw(name string, rows, cols int) quant.Matrix {
	if l.err != nil {
		return nil
	}
	if src, ok := l.src.(MatrixSource); ok {
		return l.stored(src, name, [2]int{rows, cols})
	}
	t := l.tensor(name, rows, cols)
	if l.err != nil {
		return nil
	}
	m, err := quant.Dense(t)
	if err != nil {
		l.err = &format.Error{Path: l.src.Path(), Field: name, Err: err}
	}
	return m
}

// stored is a matrix that the source holds in a form of its own.
func (l *loader) stored(src MatrixSource, name string, shape [2]int) quant.Matrix {
	m, err := src.Matrix(name)
	if err == nil && (m.Rows() != shape[0] || m.Cols() != shape[1]) {
		err = shapeError(src, name, []int{m.Rows(), m.Cols()}, shape[:])
	}
	l.err = err
	return m
}

func shapeError(src Source, name string, got, want []int) error {
	return &format.Error{Path: src.Path(), Field: name, Got: fmt.Sprintf("shape %v", got), Want: fmt.Sprintf("%v", want),
		Fix: "do config.json and the weights belong together?"}
}

// weight is a matrix as the mode stores it. Weights that do not survive the narrowing are counted, not hidden.
func (l *loader) weight(name string, rows, cols int) quant.Matrix {
	m := l.raw(name, rows, cols)
	if l.err == nil && l.linear != nil {
		m, l.err = l.linear(name, m)
	}
	return l.narrowed(name, m)
}

// narrowed is a weight in the mode's type, with a warning where it does not survive that.
func (l *loader) narrowed(name string, m quant.Matrix) quant.Matrix {
	if l.err != nil {
		return nil
	}
	w := l.a.Weight(m)
	if w.Encoding() != m.Encoding() || quant.Translated(w) {
		if n := quant.Overflows(w); n > 0 {
			l.warnings = append(l.warnings, &format.Error{Path: l.src.Path(), Field: name,
				Got: fmt.Sprintf("%d weights that are not finite in mode %s", n, l.a.Name())})
		}
	}
	return w
}

// head is the tied embedding as a weight, or a head of its own where the source packs one.
func (l *loader) head(rows, cols int) quant.Matrix {
	src, ok := l.src.(MatrixSource)
	if !ok || l.err != nil {
		return l.weight("embed_tokens.weight", rows, cols)
	}
	m, err := src.Head()
	switch {
	case err != nil:
		l.err = err
		return nil
	case m == nil:
		return l.weight("embed_tokens.weight", rows, cols)
	case m.Rows() != rows || m.Cols() != cols:
		l.err = shapeError(src, "lm_head", []int{m.Rows(), m.Cols()}, []int{rows, cols})
		return nil
	}
	return l.a.Weight(m)
}

// vector is a gain or scalar in the mode's storage type.
func (l *loader) vector(name string, n int) []float32 {
	t := l.tensor(name, n)
	if l.err != nil {
		return nil
	}
	x, err := t.Floats()
	if err != nil {
		l.err = &format.Error{Path: l.src.Path(), Field: name, Err: err}
		return nil
	}
	l.a.Store(x)
	return x
}

// load reads every tensor of the text model.
func (l *loader) load(c Config, layers []Layer) *modelWeights {
	d, p := c.HiddenSize, c.HiddenSizePerLayer
	w := &modelWeights{embed: l.raw("embed_tokens.weight", c.VocabSize, d), norm: l.vector("norm.weight", d)}
	w.head = l.head(c.VocabSize, d)
	if p > 0 {
		all := len(layers) * p
		w.pleTable = l.raw("embed_tokens_per_layer.weight", c.VocabSizePerLayerInput, all)
		w.pleNorm = l.vector("per_layer_projection_norm.weight", p)
		w.pleModel, w.pleModelRest = l.projection(all, d)
	}
	for _, layer := range layers {
		w.layers = append(w.layers, l.layer(layer, d, p))
	}
	return w
}

// projection is the per-layer model projection and what is left of its scale.
func (l *loader) projection(rows, d int) (quant.Matrix, float64) {
	m := l.weight("per_layer_model_projection.weight", rows, d)
	if src, ok := l.src.(ScaledSource); l.err != nil || ok && src.ProjectionScaled() {
		return m, 1
	}
	return l.a.ScaledWeight(m, invSqrt(d))
}

// layer reads one decoder layer. Keys and values of shared layers are dead weights: present or not, they are never read.
func (l *loader) layer(y Layer, d, p int) (w layerWeights) {
	at := fmt.Sprintf("layers.%d.", y.Index)
	w.inputNorm = l.vector(at+"input_layernorm.weight", d)
	w.postAttnNorm = l.vector(at+"post_attention_layernorm.weight", d)
	w.preFFNNorm = l.vector(at+"pre_feedforward_layernorm.weight", d)
	w.postFFNNorm = l.vector(at+"post_feedforward_layernorm.weight", d)
	w.scalar = l.vector(at+"layer_scalar", 1)
	l.attention(&w, y, at+"self_attn.", d)
	w.gate = l.weight(at+"mlp.gate_proj.weight", y.FFN, d)
	w.up = l.weight(at+"mlp.up_proj.weight", y.FFN, d)
	w.down = l.weight(at+"mlp.down_proj.weight", d, y.FFN)
	if p > 0 {
		w.pleGate = l.weight(at+"per_layer_input_gate.weight", p, d)
		w.pleProj = l.weight(at+"per_layer_projection.weight", d, p)
		w.postPLENorm = l.vector(at+"post_per_layer_input_norm.weight", d)
	}
	return w
}

func (l *loader) attention(w *layerWeights, y Layer, at string, d int) {
	w.q = l.weight(at+"q_proj.weight", y.Heads*y.HeadDim, d)
	w.qNorm = l.vector(at+"q_norm.weight", y.HeadDim)
	w.o = l.weight(at+"o_proj.weight", d, y.Heads*y.HeadDim)
	if !y.OwnsKV() {
		return
	}
	w.k = l.keysOrValues(at+"k_proj.weight", y, d)
	w.kNorm = l.vector(at+"k_norm.weight", y.HeadDim)
	if !y.KEqV {
		w.v = l.keysOrValues(at+"v_proj.weight", y, d)
	}
}

// keysOrValues is a projection of an owner, of lower rank where its rows are stored as coordinates: RMS and RoPE come after the
// projection, so rows rebuilt from their coordinates are those of the low-rank weight.
func (l *loader) keysOrValues(name string, y Layer, d int) quant.Matrix {
	m := l.weight(name, y.KVWidth(), d)
	if rank := l.form(y.Index).Rank; l.err == nil && rank > 0 {
		low, err := quant.LowRank(m, rank, y.HeadDim)
		if err != nil {
			l.err = &format.Error{Path: l.src.Path(), Field: name, Err: err}
		}
		return l.narrowed(name, low)
	}
	return m
}
