package place

import (
	"regexp"
	"slices"
	"strings"

	"anelab/chunking"
	"anelab/coreml/mil"
	"anelab/gemma4"
)

// attention reads a product of two results. One whose left side is a softmax of another such product is PV, and the other QKᵀ.
// Products with the one-hot of a write only move rows. What is left at the end belongs to nothing that is known.
func (r *chunkReader) attention(op *mil.Op) {
	if op.Type == "scaled_dot_product_attention" {
		r.fused(op)
		return
	}
	r.loose = append(r.loose, op)
	scores := r.scoresOf(operandName(op, "x"))
	if scores == nil {
		return
	}
	a, okA := shapeOf(scores)
	b, okB := shapeOf(op)
	if !okA || !okB || contraction(op, r.operands(op)) != a[len(a)-1] {
		return
	}
	r.loose = slices.DeleteFunc(r.loose, func(o *mil.Op) bool { return o == op || o == scores })
	width := contraction(scores, r.operands(scores))
	r.attend(op, look{rows: a[len(a)-1], width: width, heads: product(a) / (a[len(a)-1] * int64(r.tokens)), products: product(a)*width + product(b)*a[len(a)-1],
		keys: operandName(scores, "y")})
}

func shapeOf(op *mil.Op) (shape []int64, ok bool) {
	t, ok := op.Outputs[0].Type.AsTensor()
	return t.Shape, ok && t.Static() && len(t.Shape) > 1 && slices.Min(t.Shape) > 0
}

// scoresOf goes back from a name through a softmax, in one op or in its parts, to the product that it is of.
func (r *chunkReader) scoresOf(name string) *mil.Op {
	const farthest = 16 // ops between the two products
	soft := false
	for range farthest {
		op := r.producers[name]
		if op == nil || r.weightOf(op) != nil {
			return nil
		}
		soft = soft || op.Type == "softmax" || op.Type == "exp" || op.Type == "exp2"
		if op.Type == "matmul" || op.Type == "einsum" {
			if soft {
				return op
			}
			return nil
		}
		if name = r.mainOperand(op); name == "" {
			return nil
		}
	}
	return nil
}

// mainOperand is the result that an op maps: the first that is not fixed and not a port.
func (r *chunkReader) mainOperand(op *mil.Op) string {
	for _, param := range []string{"x", "y", "a", "values"} {
		for _, b := range op.Input(param) {
			if b.Name != "" && !r.fixed[b.Name] && r.producers[b.Name] != nil {
				return b.Name
			}
		}
	}
	return ""
}

// settle says what the products are that belong to no attention.
func (r *chunkReader) settle() {
	for _, op := range r.loose {
		if !r.writes(op) {
			r.unusual(op.Type, op)
		}
	}
}

// writes reports whether a product puts rows where a one-hot says.
func (r *chunkReader) writes(op *mil.Op) bool {
	for _, param := range []string{"x", "y"} {
		for _, port := range r.trace(operandName(op, param)).ports {
			if roleOf(port, nil) == chunking.RoleUpdate {
				return true
			}
		}
	}
	return false
}

// fused is attention in one op.
func (r *chunkReader) fused(op *mil.Op) {
	operands := r.operands(op)
	q, _ := find(operands, "query")
	key, _ := find(operands, "key")
	n := len(key.typ.Shape)
	total, known := q.typ.Count()
	if n < 2 || !known || slices.Min(key.typ.Shape) < 1 {
		r.unusual(op.Type, op)
		return
	}
	rows, width := key.typ.Shape[n-2], key.typ.Shape[n-1]
	r.attend(op, look{rows: rows, width: width, heads: total / (width * int64(r.tokens)), products: 2 * total * rows, keys: operandName(op, "key")})
}

// look is how the queries of a layer look at keys.
type look struct {
	rows     int64 // keys
	width    int64 // d
	heads    int64
	products int64
	keys     string // name of what holds them
}

// sliding are names of ports that only layers with a window read.
var sliding = regexp.MustCompile(`(?i)sliding|kv13|window|local|^(cos|sin)_s$`)

// attend appends the op of a layer's attention, and says of the layer what it shows. Without names an attention begins a layer.
func (r *chunkReader) attend(op *mil.Op, l look) {
	from := r.trace(l.keys)
	if len(r.layers) == 0 {
		r.layer = r.addLayer()
	}
	if r.layer < 0 {
		r.unusual(op.Type, op)
		return
	}
	layer := &r.model.Layers[r.layer]
	layer.HeadDim, layer.Heads = int(l.width), int(max(1, l.heads))
	layer.KVHeads = max(1, min(layer.Heads, r.kvHeads(from, l.width)))
	r.source(layer, from)
	windowed := false
	for _, port := range from.ports {
		windowed = windowed || sliding.MatchString(port)
	}
	if windowed || r.context > 0 && l.rows < int64(r.context) {
		layer.Window, layer.Kind = int(l.rows), gemma4.Sliding
	}
	r.context = max(r.context, int(l.rows))
	const kAndV, fp16 = 2, 2
	r.Ops = append(r.Ops, chunking.Op{Kind: chunking.OpAttention, Layer: r.layer, MACs: l.products, KVReadBytes: kAndV * fp16 * l.rows * int64(layer.KVWidth())})
}

// source says whose keys and values the layer reads. A projection that no layer has read yet is its own, also where the rows of
// several layers lie in one cache; those that earlier layers have read are theirs; what comes with a port alone is of some earlier
// chunk.
func (r *chunkReader) source(layer *gemma4.Layer, from origin) {
	if len(from.projections) == 0 {
		layer.KVSource = r.donor(layer)
		return
	}
	theirs := -1
	for _, name := range from.projections {
		owner, known := r.owners[name]
		if !known {
			r.owners[name], theirs = layer.Index, layer.Index
		} else if theirs != layer.Index {
			theirs = owner
		}
	}
	layer.KVSource = theirs
}

// donor is the last layer before the chunk, or the first of the model where there is none.
func (r *chunkReader) donor(layer *gemma4.Layer) int {
	if r.Lo == 0 {
		return layer.Index
	}
	return r.Lo - 1
}

// origin is where keys come from.
type origin struct {
	projections []string // weights
	rows        []int64  // of their results
	ports       []string
	heads       int64 // dimension 1 of a port of rank 4
}

// trace goes back from a name over everything that rearranges or blends, to projections and ports. Other products end it.
func (r *chunkReader) trace(name string) (from origin) {
	seen := map[string]bool{}
	queue := []string{name}
	for len(queue) > 0 {
		name, queue = queue[0], queue[1:]
		if seen[name] || r.fixed[name] {
			continue
		}
		seen[name] = true
		op := r.producers[name]
		if op == nil {
			from.ports = append(from.ports, name)
			if t, ok := r.types[name].AsTensor(); ok && len(t.Shape) == 4 && !carriesRows(name) {
				from.heads = t.Shape[1]
			}
			continue
		}
		if w := r.weightOf(op); w != nil {
			from.projections = append(from.projections, w.Name)
			from.rows = append(from.rows, w.Type.Shape[0])
			continue
		}
		for next := range mil.Uses(op) {
			queue = append(queue, next)
			if data := r.written[next]; data != "" {
				queue = append(queue, data)
			}
		}
	}
	return from
}

// carriesRows reports whether a port of rank 4 holds masks or rotations, and no keys.
func carriesRows(name string) bool {
	return strings.Contains(name, "mask") || strings.HasPrefix(name, "cos") || strings.HasPrefix(name, "sin") || strings.Contains(name, "indicator")
}

// kvHeads counts the heads of keys: rows of their projection, or the heads of the port they came with.
func (r *chunkReader) kvHeads(from origin, width int64) int {
	for _, rows := range from.rows {
		if rows%width == 0 {
			return int(rows / width)
		}
	}
	return int(from.heads)
}

func operandName(op *mil.Op, param string) string {
	if bound := op.Input(param); len(bound) > 0 {
		return bound[0].Name
	}
	return ""
}
