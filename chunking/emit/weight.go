package emit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"anelab/chunking"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/internal/kernel"
	"anelab/quant"
)

// opKey finds an op of the plan.
type opKey struct {
	kind  chunking.OpKind
	layer int
}

// weights makes the constants of one chunk, each once for all its functions. Nothing is read before it is written, but gains.
type weights struct {
	ctx      context.Context // ends the making of palettes, which happens while a package is written
	src      gemma4.Source
	asked    quant.Encoding // of the chunk
	ops      map[opKey]chunking.Op
	made     map[string]*linear
	gains    map[string]*mil.Value
	warnings []error
	progress func(name string)
}

func newWeights(ctx context.Context, src gemma4.Source, c *chunking.Chunk) *weights {
	w := &weights{ctx: ctx, src: src, asked: c.Weights, ops: map[opKey]chunking.Op{}, made: map[string]*linear{}, gains: map[string]*mil.Value{}, progress: func(string) {}}
	for _, op := range c.Ops {
		w.ops[opKey{op.Kind, op.Layer}] = op
	}
	return w
}

// linear is a weight [out, in, 1, 1]: fp16, or indices and tables of a palette.
type linear struct {
	dense        *mil.Value
	indices, lut *mil.Value
	vectorAxis   int // of palettes of vectors; −1 for others
}

// palettized ends the names of compressed weights.
const palettized = "_palettized"

// identifier makes a name that programs may use of a name of the checkpoint.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if mil.IsIdentifier("_" + string(r)) {
			return r
		}
		return '_'
	}, name)
}

// product multiplies with a weight of the checkpoint. The op has the weight's name, so that a reader finds the layer.
func (w *writer) product(key opKey, name, x string) string {
	shown := name
	if key.kind == chunking.OpHead {
		shown = "lm_head.weight"
	}
	weight := must(w.part.weights.linear(key, name))
	id, prefix := identifier(shown), w.prefix
	w.prefix = ""
	defer func() { w.prefix = prefix }()
	return w.conv(strings.TrimSuffix(id, "_weight"), x, w.weight(id, weight))
}

// weight adds the ops of a weight, const or constexpr, once.
func (w *writer) weight(id string, l *linear) string {
	if l.dense != nil {
		return w.named(id, l.dense)
	}
	if id += palettized; w.names[id].Name != "" {
		return id
	}
	args := []arg{{"indices", []mil.Binding{mil.Literal(l.indices)}}, {"lut", []mil.Binding{mil.Literal(l.lut)}}}
	if l.vectorAxis >= 0 {
		args = append(args, arg{"vector_axis", []mil.Binding{mil.Literal(mil.Scalar(int32(l.vectorAxis)))}})
	}
	return w.op("constexpr_lut_to_dense", id, args...)
}

// gain is an fp16 vector.
func (w *writer) gain(name string, n int) string {
	v := w.part.weights.gains[name]
	if v == nil {
		x := must(w.part.weights.vector(name, n))
		bits := make([]mil.F16, n)
		for i, g := range x {
			bits[i] = mil.F16(half.F32ToF16(g))
		}
		v = stored(mil.Vector(bits...))
		w.part.weights.gains[name] = v
	}
	return w.named(identifier(name), v)
}

// vector reads a gain, rounded to fp16.
func (w *weights) vector(name string, n int) ([]float32, error) {
	if _, err := w.describe(name, n); err != nil {
		return nil, err
	}
	t, err := w.src.Tensor(name)
	if err != nil {
		return nil, err
	}
	x, err := t.Floats()
	for i := range x {
		if x[i] = half.RoundF16(x[i]); x[i]-x[i] != 0 {
			return nil, w.overflow(name, 1)
		}
	}
	return x, err
}

// describer is a source that knows the shape of a tensor without making its bytes.
type describer interface {
	Describe(name string) (quant.Tensor, error)
}

// describe is a tensor of that shape, perhaps without bytes.
func (w *weights) describe(name string, shape ...int) (quant.Tensor, error) {
	get := w.src.Tensor
	if d, ok := w.src.(describer); ok {
		get = d.Describe
	}
	t, err := get(name)
	if err == nil && fmt.Sprint(t.Shape) != fmt.Sprint(shape) {
		err = &format.Error{Path: w.src.Path(), Field: name, Got: fmt.Sprintf("shape %v", t.Shape), Want: fmt.Sprint(shape), Fix: "do config.json and the weights belong together?"}
	}
	return t, err
}

func (w *weights) overflow(name string, n int) error {
	return &format.Error{Path: w.src.Path(), Field: name, Got: fmt.Sprintf("%d weights that fp16 cannot hold", n), Want: "magnitudes up to 65504"}
}

// linear is the weight of an op in the encoding that the plan gives it.
func (w *weights) linear(key opKey, name string) (*linear, error) {
	if l := w.made[name]; l != nil {
		return l, nil
	}
	op, ok := w.ops[key]
	if !ok {
		panic("emit: a product that the plan does not have")
	}
	if _, err := w.describe(name, op.Rows, op.Cols); err != nil {
		return nil, err
	}
	l, err := w.encode(name, op)
	w.made[name] = l
	return l, err
}

// encode refuses encodings that an fp16 graph cannot hold, and tells of weights whose channels do not divide into groups.
func (w *weights) encode(name string, op chunking.Op) (*linear, error) {
	e, shape := op.Encoding, [2]int{op.Rows, op.Cols}
	switch {
	case e.Palette() && e.DType == quant.F16:
		return newPalette(w, name, shape, e), nil
	case op.Undivided(w.asked):
		w.warnings = append(w.warnings, &format.Error{Path: w.src.Path(), Field: name, Got: fmt.Sprintf("[%d, %d], which %s does not divide", op.Rows, op.Cols, w.asked),
			Want: "groups of equal size", Fix: "it is written in fp16"})
	case e != quant.DenseF16:
		return nil, &format.Error{Field: "weights", Got: e.String(), Want: "f16 or a palette of fp16 entries, such as int4g32", Fix: "the Neural Engine multiplies fp16"}
	}
	t := mil.TensorOf(mil.Float16, int64(op.Rows), int64(op.Cols), 1, 1)
	return &linear{dense: &mil.Value{Type: t, Content: &dense{w, name}}}, nil
}

// stored is a value that goes to the weights file, as converters do with ten elements and more.
func stored(v *mil.Value) *mil.Value {
	const least = 10
	raw, ok := v.Content.(mil.Raw)
	if n, _ := v.Type.Count(); !ok || n < least {
		return v
	}
	return &mil.Value{Type: v.Type, Content: &held{raw}}
}

// held are bytes in memory.
type held struct{ raw mil.Raw }

// Bytes implements mil.Data.
func (h *held) Bytes() ([]byte, error) { return []byte(h.raw), nil }

// dense is a weight in fp16, read and converted as it is written.
type dense struct {
	w    *weights
	name string
}

// Bytes implements mil.Data.
func (d *dense) Bytes() ([]byte, error) {
	b := &buffer{}
	_, err := d.WriteTo(b)
	return b.bytes, err
}

// WriteTo implements io.WriterTo.
func (d *dense) WriteTo(to io.Writer) (int64, error) {
	d.w.progress(d.name)
	m, err := d.w.matrix(d.name)
	if err != nil {
		return 0, err
	}
	row, bits, out := make([]float32, m.Cols()), make([]uint16, m.Cols()), make([]byte, 2*m.Cols())
	var n int64
	for r := range m.Rows() {
		m.Row(row, r)
		kernel.EncodeF16(bits, row)
		for i, b := range bits {
			if b&0x7c00 == 0x7c00 {
				return n, d.w.overflow(d.name, quant.Overflows(quant.AsF16(m)))
			}
			out[2*i], out[2*i+1] = byte(b), byte(b>>8)
		}
		k, err := to.Write(out)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, nil
}

// matrix is a weight of the checkpoint.
func (w *weights) matrix(name string) (quant.Matrix, error) {
	t, err := w.src.Tensor(name)
	if err != nil {
		return nil, err
	}
	m, err := quant.Dense(t)
	if err != nil {
		return nil, &format.Error{Path: w.src.Path(), Field: name, Err: err}
	}
	return m, nil
}

// buffer collects what is written.
type buffer struct{ bytes []byte }

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

// palette is a weight that is palettized when its indices are first asked for, some groups at a time, so that memory stays small.
type palette struct {
	w     *weights
	name  string
	shape [2]int // of the weight
	e     quant.Encoding

	mu      sync.Mutex
	indices []byte // once somebody has asked for them as bytes
	lut     []byte
}

func newPalette(w *weights, name string, of [2]int, e quant.Encoding) *linear {
	p := &palette{w: w, name: name, shape: of, e: e}
	shape := []int64{int64(of[0]), int64(of[1]), 1, 1}
	groups := []int64{1, 1, 1, 1}
	groups[e.Axis] = int64(of[e.Axis] / p.group())
	vector := int64(max(e.Vector, 1))
	l := &linear{vectorAxis: -1}
	if vector > 1 {
		shape[e.Axis] /= vector
		l.vectorAxis = e.Axis
	}
	types := map[int]mil.DType{1: mil.UInt1, 2: mil.UInt2, 3: mil.UInt3, 4: mil.UInt4, 6: mil.UInt6, 8: mil.UInt8}
	l.indices = &mil.Value{Type: mil.TensorOf(types[e.Bits], shape...), Content: &paletteIndices{p}}
	l.lut = &mil.Value{Type: mil.TensorOf(mil.Float16, append(groups, 1<<e.Bits, vector)...), Content: &paletteTables{p}}
	return l
}

// group is the number of channels that share a table.
func (p *palette) group() int {
	if p.e.Group > 0 {
		return p.e.Group
	}
	return p.shape[p.e.Axis]
}

// blockElements is how much of a weight is palettized at a time.
const blockElements = 1 << 23

// blockRows is a number of rows whose groups are whole and whose indices end on a byte.
func (p *palette) blockRows() int {
	rows, cols := p.shape[0], p.shape[1]
	if p.e.Axis != 0 || p.e.Group == 0 {
		return rows
	}
	unit := 8 * p.e.Group
	return max(1, blockElements/(unit*cols)) * unit
}

// make writes the indices and keeps the tables.
func (p *palette) make(to io.Writer) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.progress(p.name)
	t, err := p.w.src.Tensor(p.name)
	if err != nil {
		return 0, err
	}
	rows, step := p.shape[0], p.blockRows()
	var written int64
	var lut []byte
	for lo := 0; lo < rows; lo += step {
		m, err := p.block(t, lo, min(lo+step, rows))
		if err != nil {
			return written, err
		}
		n, err := to.Write(m.Indices())
		if written += int64(n); err != nil {
			return written, err
		}
		for g := range m.Groups() {
			for _, x := range m.Table(g) {
				bits := half.F32ToF16(x)
				lut = append(lut, byte(bits), byte(bits>>8))
			}
		}
	}
	p.lut = lut
	return written, nil
}

// block palettizes rows [lo, hi).
func (p *palette) block(t quant.Tensor, lo, hi int) (*quant.Palette, error) {
	size := t.Shape[1] * t.DType.Size()
	t.Shape, t.Data = []int{hi - lo, t.Shape[1]}, t.Data[lo*size:hi*size]
	m, err := quant.Dense(t)
	if err == nil {
		var made *quant.Palette
		made, err = quant.Palettize(p.w.ctx, quant.AsF16(m), quant.Options{Bits: p.e.Bits, Group: p.e.Group, Axis: p.e.Axis, Vector: p.e.Vector}, nil)
		if err == nil {
			return made, nil
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	return nil, &format.Error{Path: p.w.src.Path(), Field: p.name, Err: err}
}

// paletteIndices are the packed indices of a palette.
type paletteIndices struct{ p *palette }

// Bytes implements mil.Data; the indices stay in memory.
func (x *paletteIndices) Bytes() ([]byte, error) {
	if x.p.indices != nil {
		return x.p.indices, nil
	}
	b := &buffer{}
	if _, err := x.p.make(b); err != nil {
		return nil, err
	}
	x.p.indices = b.bytes
	return b.bytes, nil
}

// WriteTo implements io.WriterTo.
func (x *paletteIndices) WriteTo(to io.Writer) (int64, error) { return x.p.make(to) }

// paletteTables are the tables of a palette, [groups, 2^bits, vector].
type paletteTables struct{ p *palette }

// Bytes implements mil.Data. Writers ask for the indices first.
func (x *paletteTables) Bytes() ([]byte, error) {
	if x.p.lut == nil {
		if _, err := x.p.make(io.Discard); err != nil {
			return nil, err
		}
	}
	return x.p.lut, nil
}
