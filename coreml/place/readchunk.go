package place

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"anelab/chunking"
	"anelab/coreml/census"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/quant"
)

// chunkReader reads one function.
type chunkReader struct {
	*chunking.Chunk
	*scope
	f         *mil.Function
	model     *chunking.Model // grows with the chunks
	producers map[string]*mil.Op
	weights   map[string]*census.Weight
	counted   map[string]bool   // weights that ops have been made for
	written   map[string]string // state → what was written to it last
	scales    map[string]bool   // names that something is multiplied with, element by element

	layers  map[string]int // number in a name → layer of the model
	layer   int            // of the op at hand; −1 before the first
	tokens  int
	hidden  int
	context int
	loose   []*mil.Op      // products of two results that belong to no attention yet
	owners  map[string]int // key projection → layer that owns it
	strange classes
	notes   []string
}

// readChunk reads one function; its layers are appended to the model.
func readChunk(f *mil.Function, m *chunking.Model, earlier map[string]bool) (*chunkReader, error) {
	r := &chunkReader{Chunk: &chunking.Chunk{Lo: len(m.Layers)}, scope: scopeOf(f), f: f, model: m, producers: f.Body.Producers(), weights: map[string]*census.Weight{},
		counted: map[string]bool{}, scales: map[string]bool{}, written: map[string]string{}, layers: map[string]int{}, layer: -1, owners: map[string]int{}, strange: classes{}}
	var in []mil.Variable
	for _, v := range f.Inputs {
		in = append(in, v.Variable)
	}
	out, err := f.Results()
	if err != nil {
		return nil, err
	}
	r.Inputs, r.Outputs = readPorts(in, earlier), readPorts(out, nil)
	for _, p := range r.Outputs {
		r.Head = r.Head || p.Role == chunking.RoleToken
		earlier[p.Name] = true
	}
	r.tokens, r.hidden = stream(r.Inputs)
	r.tokens = max(r.tokens, 1)
	r.context = maskedRows(r.Inputs)
	for _, w := range census.Weights(f) {
		r.weights[w.Name] = &w
	}
	for op := range f.Body.All() {
		r.op(op)
	}
	r.settle()
	r.gains()
	r.Hi = len(m.Layers)
	r.Weights = r.mostlyStored()
	return r, nil
}

// op reads one op: a product with a weight, a product of two results, or something that moves and maps elements.
func (r *chunkReader) op(op *mil.Op) {
	if op.Type == "const" || op.IsConstexpr() {
		return
	}
	for name := range mil.Uses(op) {
		if n := layerNumber.FindStringSubmatch(name); n != nil && r.weights[name] != nil {
			r.enter(n[1])
		}
	}
	if w := r.weightOf(op); w != nil {
		r.product(op, w)
		return
	}
	switch op.Type {
	case "write_state", "coreml_update_state":
		for _, b := range op.Input("input") {
			r.written[b.Name] = operandName(op, "data")
		}
		if op.Type == "coreml_update_state" {
			for _, b := range op.Input("state") {
				r.written[b.Name] = operandName(op, "value")
			}
		}
	case "mul":
		for name := range mil.Uses(op) {
			r.scales[name] = true
		}
	case "matmul", "einsum", "scaled_dot_product_attention":
		r.attention(op)
	default:
		if !priced[op.Type] {
			r.unusual(op.Type, op)
		}
	}
}

// weightOf is the weight that an op multiplies with; nil for other ops.
func (r *chunkReader) weightOf(op *mil.Op) *census.Weight {
	switch op.Type {
	case "conv", "conv_transpose", "linear", "matmul":
		for name, param := range mil.Uses(op) {
			if w := r.weights[name]; w != nil && param != "bias" && len(w.Type.Shape) > 1 {
				return w
			}
		}
	}
	return nil
}

var layerNumber = regexp.MustCompile(`(?:layers?|blocks?|h)[._](\d+)[._]`)

// product is an op with a weight [rows, cols].
func (r *chunkReader) product(op *mil.Op, w *census.Weight) {
	out, _ := op.Outputs[0].Type.AsTensor()
	results, _ := out.Count()
	shape := w.Type.Shape
	rows, cols := shape[0], product(shape[1:])
	if op.Type == "matmul" {
		cols = contraction(op, r.operands(op))
		rows = product(shape) / max(1, cols)
	}
	one := chunking.Op{Kind: r.kindOf(w.Name, rows), Layer: r.layer, Rows: int(rows), Cols: int(cols), Encoding: encodingOf(w), MACs: results * cols}
	if one.Kind == chunking.OpPLEModel || one.Kind == chunking.OpHead {
		one.Layer = -1
	}
	if !r.counted[w.Name] {
		r.counted[w.Name] = true
		one.WeightBytes = w.Bytes()
	}
	r.Ops = append(r.Ops, one)
	if len(shape) > 2 && product(shape[2:]) > 1 {
		r.unusual(op.Type+" with a kernel", op)
	}
}

// kinds are the names of weights, by the op that they make. Longer names come first.
var kinds = []chunking.OpKind{chunking.OpPLEModel, chunking.OpPLEGate, chunking.OpPLEProj, chunking.OpQ, chunking.OpK, chunking.OpV, chunking.OpO, chunking.OpGate, chunking.OpUp,
	chunking.OpDown, chunking.OpHead}

// kindOf tells a weight by its name. Converters lose names; without one, what is as wide as the per-layer inputs and comes before the
// layers makes those, and of the others nothing depends on which they are.
func (r *chunkReader) kindOf(name string, rows int64) chunking.OpKind {
	for _, k := range kinds {
		if strings.Contains(name, string(k)) {
			return k
		}
	}
	if r.layer < 0 {
		for _, p := range r.Inputs {
			if n := len(p.Shape); p.Role == chunking.RolePLE && n > 0 && int64(p.Shape[n-1]) == rows {
				return chunking.OpPLEModel
			}
		}
	}
	return chunking.OpO
}

// enter goes to the layer of a number in a name. A number that continues the count of the model is the layer itself, others count
// from the first of the chunk.
func (r *chunkReader) enter(number string) {
	if at, ok := r.layers[number]; ok {
		r.layer = at
		return
	}
	r.layer = r.addLayer()
	r.layers[number] = r.layer
	n, _ := strconv.Atoi(number)
	if first := r.layer - r.Lo; n != first && n != r.layer && len(r.notes) == 0 {
		r.notes = append(r.notes, fmt.Sprintf("%s: layers are counted in the order of the program; layer %s of the names is layer %d", r.f.Name, number, r.layer))
	}
}

func (r *chunkReader) addLayer() int {
	at := len(r.model.Layers)
	r.model.Layers = append(r.model.Layers, gemma4.Layer{Index: at, KVSource: at, Kind: gemma4.Full, Heads: 1, KVHeads: 1, HeadDim: 1})
	return at
}

// encodingOf is the form of a weight in the terms of plans.
func encodingOf(w *census.Weight) quant.Encoding {
	dtypes := map[mil.DType]quant.DType{mil.Float16: quant.F16, mil.Float32: quant.F32, mil.BFloat16: quant.BF16}
	e := quant.Encoding{DType: dtypes[w.Type.DType], Bits: w.Bits}
	switch w.Form {
	case census.Palette:
		for axis, n := range w.Blocks {
			if n > 1 && axis < 2 {
				e.Axis, e.Group = axis, int(w.Type.Shape[axis]/n)
			}
		}
	case census.Scaled:
		e.DType = quant.I8
		if len(w.Blocks) > 1 && w.Blocks[1] > 1 {
			e.Group = int(w.Type.Shape[1] / w.Blocks[1])
		}
	}
	return e
}

// mostlyStored is the encoding that most elements of the chunk's linears have.
func (r *chunkReader) mostlyStored() quant.Encoding {
	sums := map[quant.Encoding]int{}
	best := quant.DenseF16
	for _, o := range r.Ops {
		if o.Kind == chunking.OpNorm || o.Rows == 0 {
			continue
		}
		sums[o.Encoding] += o.Rows * o.Cols
		if sums[o.Encoding] > sums[best] {
			best = o.Encoding
		}
	}
	return best
}

// repeated ends the names of the copies that converters make of a constant for each of its readers.
var repeated = regexp.MustCompile(`_promoted(_\d+)?(_to_fp16)?$`)

// gains collects the vectors and factors that are not multiplied as matrices: one op, as in the plans of layouts each has some.
// The shortest are in the program's text: the factor of a layer.
func (r *chunkReader) gains() {
	var n, bytes int64
	seen := map[string]bool{}
	for name, w := range r.weights {
		name = repeated.ReplaceAllString(name, "")
		if !r.counted[w.Name] && !seen[name] && w.Type.DType.IsFloat() && !padding(w) {
			seen[name], n, bytes = true, n+w.Elements(), bytes+w.Bytes()
		}
	}
	for name, v := range r.values {
		if v == nil || r.weights[name] != nil || v.Type.DType != mil.Float16 || v.Type.IsScalar() && !strings.Contains(name, "layer_scalar") {
			continue
		}
		if k, ok := v.Type.Count(); ok && r.scales[name] {
			n, bytes = n+k, bytes+2*k
		}
	}
	if n > 0 {
		r.Ops = append(r.Ops, chunking.Op{Kind: chunking.OpNorm, Layer: -1, Rows: int(n), Cols: 1, Encoding: quant.DenseF16, WeightBytes: bytes})
	}
}

// padding reports whether a constant is only joined to something: zeros, not weights.
func padding(w *census.Weight) bool {
	for _, op := range w.Readers {
		if op.Type != "concat" && op.Type != "stack" {
			return false
		}
	}
	return len(w.Readers) > 0
}

// priced are the ops of the chunks that cost models were fitted on. Their time is in the constants per byte, row and call.
var priced = setOf("add cast concat expand_dims gelu identity layer_norm mul pad pow read_state real_div reduce_max reduce_mean reduce_sum reshape rsqrt slice_by_index " +
	"slice_update softmax split squeeze stack sub tanh tile transpose write_state coreml_update_state exp gather_along_axis reduce_argmax sqrt silu sigmoid " +
	"logical_not select equal greater greater_equal less less_equal not_equal maximum minimum relu clip square tensor_buffer_to_tensor tensor_to_tensor_buffer")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// unusual notes an op that no term stands for.
func (r *chunkReader) unusual(class string, op *mil.Op) {
	s := r.seconds(op, &shipped)
	expected := s[ANE]
	if r.refuse(op, Options{}.limits()) != nil {
		expected = s[BNNS] + 2*DefaultCosts.ChangeSeconds
	}
	r.strange.add(class, expected)
}

func (r *chunkReader) unknown() []Unknown { return r.strange.sorted() }
