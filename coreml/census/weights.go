package census

import (
	"fmt"
	"slices"

	"anelab/coreml/mil"
)

// Form is how a weight is stored.
type Form string

// The forms, by the constexpr op that yields the weight.
const (
	Dense   Form = "dense"
	Palette Form = "palette" // indices into tables
	Scaled  Form = "scaled"  // integers times a scale
	Sparse  Form = "sparse"  // a mask, and the values where it is set
	Cast    Form = "cast"    // another floating type
)

// forms are the constexpr ops.
var forms = map[string]Form{
	"const":                           Dense,
	"constexpr_lut_to_dense":          Palette,
	"constexpr_affine_dequantize":     Scaled,
	"constexpr_blockwise_shift_scale": Scaled,
	"constexpr_sparse_to_dense":       Sparse,
	"constexpr_cast":                  Cast,
}

// Weight is one constant as its readers see it.
type Weight struct {
	Name    string
	Type    mil.Type // of the elements that readers see
	Form    Form
	Bits    int     // of one stored element or index
	Blocks  []int64 // tables or scales along each dimension; nil for other forms
	Parts   []*mil.Value
	Readers []*mil.Op // in execution order, without constexpr ops
	Op      *mil.Op   // that yields it
}

// Elements is the number of elements that readers see.
func (w *Weight) Elements() int64 {
	n, _ := w.Type.Count()
	return n
}

// Bytes is what the parts take as stored, each once.
func (w *Weight) Bytes() int64 {
	var n int64
	seen := map[any]bool{}
	for _, p := range w.Parts { // ops of a chain may share a mask
		if id := Identity(p); !seen[id] {
			seen[id] = true
			b, _ := p.Type.ByteSize()
			n += b
		}
	}
	return n
}

// Encoding names the form for people: fp16, palette4, scaled8, sparse16.
func (w *Weight) Encoding() string {
	if w.Form == Dense {
		return w.Type.DType.String()
	}
	return fmt.Sprintf("%s%d", w.Form, w.Bits)
}

// Weights lists the weights of a function in the order of its ops: compressed constants, and tensors of a weights file.
func Weights(f *mil.Function) []Weight {
	c := constants{ops: map[string]*mil.Op{}, readers: map[string][]*mil.Op{}, inner: map[string]bool{}}
	for op := range f.Body.All() {
		c.see(op)
	}
	var all []Weight
	for op := range f.Body.All() {
		if w, ok := c.weight(op); ok {
			all = append(all, w)
		}
	}
	return all
}

// constants finds the way from a reader to what is stored.
type constants struct {
	ops     map[string]*mil.Op   // const and constexpr ops by the names of what they yield
	readers map[string][]*mil.Op // other ops, by what they read
	inner   map[string]bool      // names that a constexpr op reads
}

func (c *constants) see(op *mil.Op) {
	constant := isConstant(op)
	for _, out := range op.Outputs {
		if constant {
			c.ops[out.Name] = op
		}
	}
	for name := range mil.Uses(op) {
		switch {
		case constant:
			c.inner[name] = true
		case !slices.Contains(c.readers[name], op):
			c.readers[name] = append(c.readers[name], op)
		}
	}
}

func isConstant(op *mil.Op) bool { return op.Type == "const" || op.IsConstexpr() }

// weight makes a weight of an op that yields one; parts of another weight are none.
func (c *constants) weight(op *mil.Op) (Weight, bool) {
	if !isConstant(op) || len(op.Outputs) == 0 {
		return Weight{}, false
	}
	out := op.Outputs[len(op.Outputs)-1] // sparse forms yield their mask first
	if c.inner[out.Name] || out.Type.Kind != mil.Tensor || out.Type.IsScalar() {
		return Weight{}, false
	}
	w := Weight{Name: out.Name, Type: out.Type, Form: forms[op.Type], Readers: c.readers[out.Name], Op: op}
	if w.Form == "" {
		w.Form = Sparse
	}
	c.parts(&w, op)
	if op.Type == "const" && (len(w.Parts) == 0 || !stored(w.Parts[0])) {
		return Weight{}, false
	}
	c.measure(&w, op)
	return w, true
}

// parts collects what is stored behind an op.
func (c *constants) parts(w *Weight, op *mil.Op) {
	if op.Type == "const" {
		if v := op.Attribute("val"); v != nil {
			w.Parts = append(w.Parts, v)
		}
		return
	}
	for param, v := range op.Values() {
		if v.Type.Kind == mil.Tensor && v.Type.DType != mil.String && !describing[param] {
			w.Parts = append(w.Parts, v)
		}
	}
	for name := range mil.Uses(op) {
		if from := c.ops[name]; from != nil {
			c.parts(w, from)
		}
	}
}

// describing are operands of constexpr ops that say how to read the others.
var describing = map[string]bool{"shape": true, "axis": true, "vector_axis": true, "output_dtype": true, "name": true}

// stored reports whether a value lies, or will lie, in a weights file.
func stored(v *mil.Value) bool {
	_, elsewhere := v.Content.(mil.Data)
	return elsewhere
}

// measure finds the bits of an element, and the blocks.
func (c *constants) measure(w *Weight, op *mil.Op) {
	w.Bits = w.Type.DType.Bits()
	switch w.Form {
	case Palette:
		w.Bits, w.Blocks = c.palette(op)
	case Scaled:
		if t, ok := c.operand(op, "data", "quantized_data"); ok {
			w.Bits = t.DType.Bits()
		}
		if t, ok := c.operand(op, "scale"); ok {
			w.Blocks = t.Shape
		}
	case Sparse:
		if t, ok := c.operand(op, "nonzero_data"); ok {
			w.Bits = t.DType.Bits()
		}
	case Cast:
		if t, ok := c.operand(op, "source_val"); ok {
			w.Bits = t.DType.Bits()
		}
	}
}

// palette reads bits and tables off the shape of the tables: [G…, 2^bits, V], or [2^bits] in the older form.
func (c *constants) palette(op *mil.Op) (bits int, blocks []int64) {
	lut, ok := c.operand(op, "lut")
	if !ok || len(lut.Shape) == 0 {
		return 0, nil
	}
	entries := lut.Shape[0]
	if n := len(lut.Shape); n > 1 {
		entries, blocks = lut.Shape[n-2], lut.Shape[:n-2]
	}
	for int64(1)<<bits < entries {
		bits++
	}
	return bits, blocks
}

// operand is the type of the first operand that the op has, given in place, by name, or as an attribute.
func (c *constants) operand(op *mil.Op, params ...string) (mil.Type, bool) {
	for _, p := range params {
		if v := op.Attribute(p); v != nil {
			return v.Type, true
		}
		for _, b := range op.Input(p) {
			if b.Value != nil {
				return b.Value.Type, true
			}
			if from := c.ops[b.Name]; from != nil {
				return outputOf(from, b.Name)
			}
		}
	}
	return mil.Type{}, false
}

func outputOf(op *mil.Op, name string) (mil.Type, bool) {
	for _, out := range op.Outputs {
		if out.Name == name {
			return out.Type, true
		}
	}
	return mil.Type{}, false
}
