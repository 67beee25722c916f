package chunking

import (
	"anelab/gemma4"
	"anelab/quant"
)

// paletteFloor: a weight of at most this many elements is left in fp16 by the palettiser (spec forward.md §4.0).
const paletteFloor = 2048

// ops lists the chunk's work in the order in which a graph does it.
func (g *graphs) ops(c *Chunk) []Op {
	m := g.model
	w := weigher{weights: c.Weights, tokens: int64(g.tokens)}
	hidden, ple := m.Config.HiddenSize, m.Config.HiddenSizePerLayer
	var ops []Op
	if c.Lo == 0 && c.Hi > 0 && m.hasPLE() {
		ops = append(ops, w.linear(OpPLEModel, -1, m.pleWidth(), hidden), w.gains(-1, ple))
	}
	for _, l := range g.layers(c) {
		ops = append(ops, w.gains(l.Index, m.layerGains(l)))
		ops = w.attention(ops, l, hidden, g.reach[l.Index].form.Rank)
		ops = append(g.rebuild(ops, w, l), g.attend(l),
			w.linear(OpO, l.Index, hidden, l.Heads*l.HeadDim),
			w.linear(OpGate, l.Index, l.FFN, hidden), w.linear(OpUp, l.Index, l.FFN, hidden), w.linear(OpDown, l.Index, hidden, l.FFN))
		if m.hasPLE() {
			ops = append(ops, w.linear(OpPLEGate, l.Index, ple, hidden), w.linear(OpPLEProj, l.Index, hidden, ple))
		}
	}
	if c.Head {
		ops = append(ops, w.gains(-1, hidden), w.linear(OpHead, -1, m.Config.VocabSize, hidden))
	}
	return ops
}

// weigher makes ops with weights.
type weigher struct {
	weights quant.Encoding
	tokens  int64 // T
}

// linear is a product with a weight [rows, cols].
func (w weigher) linear(kind OpKind, layer, rows, cols int) Op {
	enc := w.weights
	if enc.Palette() && (rows*cols <= paletteFloor || !divides(enc, rows, cols)) {
		enc = quant.DenseF16
	}
	return Op{Kind: kind, Layer: layer, Rows: rows, Cols: cols, Encoding: enc, WeightBytes: enc.Bytes(rows, cols),
		MACs: w.tokens * int64(rows) * int64(cols)}
}

// divides reports whether the channels of a weight [rows, cols] are whole groups. Where they are not, the palettiser leaves the
// weight dense (spec coreml.md §5 no. 3).
func divides(e quant.Encoding, rows, cols int) bool {
	channels, vector := [2]int{rows, cols}[e.Axis], max(e.Vector, 1)
	if e.Group == 0 {
		return channels%vector == 0
	}
	return channels%e.Group == 0 && e.Group%vector == 0
}

// Undivided reports whether the op's weight is dense only because its channels are no whole groups of the encoding that the chunk
// asks for.
func (o Op) Undivided(asked quant.Encoding) bool {
	return asked.Palette() && o.Rows*o.Cols > paletteFloor && !divides(asked, o.Rows, o.Cols)
}

// gains are fp16 vectors, n values together; what they multiply is not counted.
func (w weigher) gains(layer, n int) Op {
	return Op{Kind: OpNorm, Layer: layer, Rows: n, Cols: 1, Encoding: quant.DenseF16, WeightBytes: quant.DenseF16.Bytes(n, 1)}
}

// attention appends the projections in front of the mix. A shared layer has only queries; with KEqV the values are the raw
// key projection, so there is no v_proj. Rows stored as coordinates need only the projections to those, rank 0 is all of a row.
func (w weigher) attention(ops []Op, l gemma4.Layer, hidden, rank int) []Op {
	width := l.KVWidth()
	if rank > 0 {
		width = rank * l.KVHeads
	}
	ops = append(ops, w.linear(OpQ, l.Index, l.Heads*l.HeadDim, hidden))
	if !l.OwnsKV() {
		return ops
	}
	ops = append(ops, w.linear(OpK, l.Index, width, hidden))
	if l.KEqV {
		return ops
	}
	return append(ops, w.linear(OpV, l.Index, width, hidden))
}

// rebuild makes rows of their coordinates, all that the call reads: RMS and RoPE come after it, so it cannot be folded into the
// queries (PALU folds it where a model has neither).
func (g *graphs) rebuild(ops []Op, w weigher, l gemma4.Layer) []Op {
	r := &g.reach[l.Index]
	if r.form.Rank == 0 {
		return ops
	}
	for range 2 { // keys and values
		op := w.linear(OpRebuild, l.Index, l.KVWidth(), r.form.Rank)
		op.MACs = int64(l.HeadDim) * int64(r.form.Rank) * r.read
		ops = append(ops, op)
	}
	return ops
}

// attend is QKᵀ and PV: d products each per query head and row. An index over blocks is one more QKᵀ.
func (g *graphs) attend(l gemma4.Layer) Op {
	r := &g.reach[l.Index]
	const kAndV = 2
	return Op{Kind: OpAttention, Layer: l.Index, KVReadBytes: r.keyValueBytes(l),
		MACs: kAndV * int64(l.HeadDim) * (r.mixed + int64(l.Heads)*r.index) * int64(g.tokens)}
}

// layerGains counts the values of a layer outside its linears: norms of the hidden state before and after attention and MLP
// and after the per-layer input, of queries and keys, and the layer scalar (spec forward.md §3.2).
func (m *Model) layerGains(l gemma4.Layer) int {
	n := 4*m.Config.HiddenSize + l.HeadDim + 1
	if m.hasPLE() {
		n += m.Config.HiddenSize
	}
	if l.OwnsKV() {
		n += l.HeadDim
	}
	return n
}
