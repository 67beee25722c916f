package emit

import (
	"fmt"
	"math"

	"anelab/attention"
	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
	"anelab/internal/half"
)

// writer writes one function of one chunk.
type writer struct {
	*graph
	part  *part
	fn    *call
	chunk *chunking.Chunk
	c     *gemma4.Config
	eps   float64
	cache keeper
	masks map[string]string // causal mask with what a policy hides, by mask, policy and rows
	rows  map[int][2]string // keys and values that layers read, by the layer that owns them
	ple   string            // combined per-layer inputs [1, L·P, 1, T]
}

// layer is one decoder layer (spec forward.md §2.3) on the stream x [1, T, D].
func (w *writer) layer(x string, y gemma4.Layer) string {
	at := fmt.Sprintf("layers_%d_", y.Index)
	w.prefix = at + "self_attn_"
	h := w.branch(w.rmsOf("input_norm", x, y, "input_layernorm"), w.attention, y)
	x = w.residual(at, x, h, y, "post_attention_layernorm")

	w.prefix = at + "mlp_"
	h = w.branch(w.rmsOf("input_norm", x, y, "pre_feedforward_layernorm"), w.mlp, y)
	x = w.residual(at, x, h, y, "post_feedforward_layernorm")

	if w.c.HiddenSizePerLayer > 0 {
		w.prefix = at + "per_layer_input_"
		h = w.branch(x, w.perLayerInput, y)
		x = w.residual(at, x, h, y, "post_per_layer_input_norm")
	}
	w.prefix = at
	return w.mul("output", x, w.scalar(y))
}

// branch runs a part of a layer in channel layout and brings its result back.
func (w *writer) branch(h string, part func(h string, y gemma4.Layer) string, y gemma4.Layer) string {
	return w.toRows(part(w.toChannels(h), y))
}

// rmsOf norms with a gain of layer y.
func (w *writer) rmsOf(name, x string, y gemma4.Layer, gain string) string {
	return w.rmsNorm(name, x, w.gain(fmt.Sprintf("layers.%d.%s.weight", y.Index, gain), w.c.HiddenSize), w.eps)
}

// residual adds a normed branch to the stream.
func (w *writer) residual(at, x, h string, y gemma4.Layer, gain string) string {
	normed := w.rmsOf("output_norm", h, y, gain)
	return w.add2("residual", x, normed)
}

// linear multiplies with a weight of layer y.
func (w *writer) linear(kind chunking.OpKind, x string, y gemma4.Layer) string {
	name := string(kind)
	switch kind {
	case chunking.OpQ, chunking.OpK, chunking.OpV, chunking.OpO:
		name = "self_attn." + name
	case chunking.OpGate, chunking.OpUp, chunking.OpDown:
		name = "mlp." + name
	}
	return w.product(opKey{kind, y.Index}, fmt.Sprintf("layers.%d.%s.weight", y.Index, name), x)
}

// attention is o_proj(softmax(q·Kᵀ + mask)·V) of the normed stream h [1, D, 1, T].
func (w *writer) attention(h string, y gemma4.Layer) string {
	cos, sin := run.RopeNames[y.Kind][0], run.RopeNames[y.Kind][1]
	gain := func(name string) string {
		return w.gain(fmt.Sprintf("layers.%d.self_attn.%s.weight", y.Index, name), y.HeadDim)
	}
	q := w.heads("q_heads", w.linear(chunking.OpQ, h, y), y.Heads, y)
	q = w.rope("q", w.rmsNorm("q_normed", q, gain("q_norm"), w.eps), cos, sin)
	if y.OwnsKV() {
		raw := w.heads("k_heads", w.linear(chunking.OpK, h, y), y.KVHeads, y)
		values := raw
		if !y.KEqV {
			values = w.heads("v_heads", w.linear(chunking.OpV, h, y), y.KVHeads, y)
		}
		v := w.unit(values, w.eps)
		k := w.rope("k", w.rmsNorm("k_normed", raw, gain("k_norm"), w.eps), cos, sin)
		keys, stored := w.cache.store(w, y, k, v)
		w.rows[y.Index] = [2]string{keys, stored}
	}
	return w.linear(chunking.OpO, w.attend(q, y), y)
}

// heads turns the result of a projection [1, n·d, 1, T] into [1, n, T, d].
func (w *writer) heads(name, x string, n int, y gemma4.Layer) string {
	split := w.reshape("split", x, 1, int64(n), int64(y.HeadDim), int64(w.fn.Tokens))
	return w.transpose(name, split, 0, 1, 3, 2)
}

// attend mixes the values that q [1, H, T, d] sees. The query heads of a KV head are rows of one product, so that keys and values
// are read once and never repeated (spec forward.md §7.3).
func (w *writer) attend(q string, y gemma4.Layer) string {
	kv := w.rows[y.KVSource]
	t, d, heads, groups := int64(w.fn.Tokens), int64(y.HeadDim), int64(y.Heads), int64(y.KVHeads)
	length := w.shape(kv[0])[2]
	grouped := w.reshape("q_grouped", q, 1, groups, heads/groups*t, d)
	scores := w.reshape("scores", w.matmul("products", grouped, kv[0], true), 1, heads, t, length)
	mask := w.maskOf(y, length)
	masked := w.add2("masked", scores, mask)
	var mixed string
	if b, ok := attention.As[attention.Blockwise](w.fn.Memory.Policies[y.Index]); ok {
		mixed = w.blockwise(masked, mask, kv[1], y, int64(b.BlockRows()))
	} else {
		mixed = w.mix("mixed", w.softmax(masked), kv[1], y)
	}
	return w.reshape("joined", w.transpose("transposed", mixed, 0, 1, 3, 2), 1, heads*d, 1, t)
}

// mix is p [1, H, T, rows] times values [1, K, rows, d]: [1, H, T, d].
func (w *writer) mix(name, p, values string, y gemma4.Layer) string {
	t, d, heads, groups := int64(w.fn.Tokens), int64(y.HeadDim), int64(y.Heads), int64(y.KVHeads)
	grouped := w.reshape("p_grouped", p, 1, groups, heads/groups*t, w.shape(p)[3])
	return w.reshape("heads", w.matmul(name, grouped, values, false), 1, heads, t, d)
}

// mlp is Wdown(gelu(Wgate·h) ⊙ Wup·h).
func (w *writer) mlp(h string, y gemma4.Layer) string {
	gate := w.gelu(w.linear(chunking.OpGate, h, y))
	return w.linear(chunking.OpDown, w.mul("gated", gate, w.linear(chunking.OpUp, h, y)), y)
}

// perLayerInput is Wproj(gelu(Wgate·x) ⊙ ple[l]); the gate reads the stream un-normed.
func (w *writer) perLayerInput(x string, y gemma4.Layer) string {
	n := int64(w.c.HiddenSizePerLayer)
	gate := w.gelu(w.linear(chunking.OpPLEGate, x, y))
	slice := w.slice("row", w.ple, 1, int64(y.Index)*n, int64(y.Index+1)*n)
	return w.linear(chunking.OpPLEProj, w.mul("gated", gate, slice), y)
}

// combine turns raw rows of the per-layer table into per-layer inputs: (RMS(W·x·D^−½) + raw)·2^−½ (spec forward.md §2.2). Scale and
// weight stay apart: folded into the weight, the scale would be rounded into every entry of a palette.
func (w *writer) combine(x, raw string) string {
	w.prefix = "per_layer_"
	n, layers, t := int64(w.c.HiddenSizePerLayer), int64(w.c.NumHiddenLayers), int64(w.fn.Tokens)
	proj := w.toRows(w.product(opKey{chunking.OpPLEModel, -1}, "per_layer_model_projection.weight", w.toChannels(x)))
	proj = w.reshape("slices", w.scale("scaled", proj, 1/math.Sqrt(float64(w.c.HiddenSize))), 1, t, layers, n)
	normed := w.rmsNorm("norm", proj, w.gain("per_layer_projection_norm.weight", int(n)), w.eps)
	sum := w.add2("sum", w.reshape("flat", normed, 1, t, layers*n), raw)
	return w.scale("combined", sum, math.Sqrt2/2)
}

// scalar is the factor of a layer's output.
func (w *writer) scalar(y gemma4.Layer) string {
	name := fmt.Sprintf("layers.%d.layer_scalar", y.Index)
	x := must(w.part.weights.vector(name, 1))
	return w.named(identifier(name), f16(float64(half.RoundF16(x[0]))))
}
