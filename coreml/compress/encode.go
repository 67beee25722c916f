package compress

import (
	"context"
	"fmt"

	"anelab/coreml/census"
	"anelab/coreml/mil"
	"anelab/quant"
)

// encoded is a weight in few bits: the op that yields it, without its output.
type encoded struct {
	op    mil.Op
	after string // the encoding
	bytes int64
	m     quant.Matrix // as readers will see it
}

// encoder makes encoded weights.
type encoder struct {
	*Options
	progress func(done, total int) // groups of the weight at hand
}

// encode compresses one weight. An error that is not the context's is a reason to leave the weight alone.
func (e *encoder) encode(ctx context.Context, w *Weight) (out *encoded, dense quant.Matrix, err error) {
	group := whole
	if e.Linear == nil && (e.Palette.Group > 0 || e.Palette.Vector > 1 || e.Palette.ChannelScale) || e.Linear != nil && e.Linear.Spec.Granularity != quant.PerTensor {
		group = byChannel
	}
	v, err := view(w, group)
	if err != nil {
		return nil, nil, err
	}
	if e.Linear != nil {
		out, err = e.linear(w, v)
	} else {
		out, err = e.palette(ctx, w, v)
	}
	return out, v.Matrix, err
}

// palette makes constexpr_lut_to_dense.
func (e *encoder) palette(ctx context.Context, w *Weight, v *table) (*encoded, error) {
	o := e.Palette
	o.Axis = v.axis
	channels := int(v.shape[v.channel])
	switch {
	case w.opset < mil.CoreML6:
		return nil, fmt.Errorf("opset %s has no compressed constants; they need that of iOS 16", w.opset.Text())
	case w.opset < mil.CoreML8 && (o.Group > 0 && o.Group != channels || o.Vector > 1 || o.ChannelScale):
		return nil, fmt.Errorf("opset %s has one table for all; more need that of iOS 18", w.opset.Text())
	case o.Group > 0 && channels%o.Group != 0:
		return nil, fmt.Errorf("its %d channels are not divisible into groups of %d", channels, o.Group)
	case o.ChannelScale && v.axis == 1:
		return nil, fmt.Errorf("a scale per channel needs its channels in rows")
	}
	p, err := quant.Palettize(ctx, v.Matrix, o, e.progress)
	if err != nil {
		return nil, err
	}
	out := &encoded{m: p, after: fmt.Sprintf("%s%d", census.Palette, p.Encoding().Bits)}
	if w.opset < mil.CoreML8 {
		return out, e.oldPalette(out, p, w)
	}
	index, lut := append([]int64{}, v.shape...), make([]int64, len(v.shape), len(v.shape)+2)
	for i := range lut {
		lut[i] = 1
		if o.ChannelScale {
			lut[i] = v.shape[i]
		}
	}
	vector := max(1, o.Vector)
	index[v.channel] /= int64(vector)
	lut[v.channel] = int64(p.Groups())
	lut = append(lut, 1<<p.Encoding().Bits, int64(vector))
	out.op.Type = "constexpr_lut_to_dense"
	if err := e.bind(out, "indices", mil.TensorOf(indexTypes[p.Encoding().Bits], index...), p.Indices()); err != nil {
		return nil, err
	}
	if vector > 1 {
		out.op.Inputs = append(out.op.Inputs, mil.Arg("vector_axis", mil.Literal(mil.Scalar(int32(v.channel)))))
	}
	return out, e.bind(out, "lut", mil.TensorOf(w.Type.DType, lut...), floats(w.Type.DType, p.ScaledTables()))
}

// indexTypes are the element types of indices by their bits.
var indexTypes = map[int]mil.DType{1: mil.UInt1, 2: mil.UInt2, 3: mil.UInt3, 4: mil.UInt4, 6: mil.UInt6, 8: mil.UInt8}

// oldPalette is the form before iOS 18: operands are attributes, indices are bytes in a row.
func (e *encoder) oldPalette(out *encoded, p *quant.Palette, w *Weight) error {
	out.op.Type = "constexpr_lut_to_dense"
	dims := make([]uint32, len(w.Type.Shape))
	for i, n := range w.Type.Shape {
		dims[i] = uint32(n)
	}
	for _, part := range []struct {
		name   string
		t      mil.Type
		packed []byte
	}{
		{"indices", mil.TensorOf(mil.UInt8, int64(len(p.Indices()))), p.Indices()},
		{"lut", mil.TensorOf(w.Type.DType, 1<<p.Encoding().Bits), floats(w.Type.DType, p.Table(0))},
	} {
		v, err := e.put(out, part.t, part.packed)
		if err != nil {
			return err
		}
		out.op.Attributes = append(out.op.Attributes, mil.Attribute{Name: part.name, Value: v})
	}
	out.op.Attributes = append(out.op.Attributes, mil.Attribute{Name: "shape", Value: mil.Vector(dims...)})
	return nil
}

// linear makes constexpr_blockwise_shift_scale.
func (e *encoder) linear(w *Weight, v *table) (*encoded, error) {
	s := e.Linear.Spec
	switch {
	case w.opset < mil.CoreML8:
		return nil, fmt.Errorf("opset %s is too old for integers; they need that of iOS 18", w.opset.Text())
	case v.axis == 1 && s.Granularity != quant.PerTensor:
		return nil, fmt.Errorf("a scale per channel needs its channels in rows")
	case s.Granularity == quant.PerBlock && (v.channel+1 >= len(v.shape) || v.shape[v.channel+1] != int64(v.Cols())):
		return nil, fmt.Errorf("its columns are more than one dimension of %s", mil.ShapeString(v.shape))
	case s.Granularity == quant.PerBlock && v.Cols()%s.Block != 0:
		return nil, fmt.Errorf("its %d columns are not divisible into blocks of %d", v.Cols(), s.Block)
	}
	m, err := quant.Quantize(v.Matrix, s, e.Linear.Symmetry)
	if err != nil {
		return nil, err
	}
	scale := make([]int64, len(v.shape))
	for i := range scale {
		scale[i] = 1
	}
	if s.Granularity != quant.PerTensor {
		scale[v.channel] = int64(v.Rows())
	}
	if s.Granularity == quant.PerBlock {
		scale[v.channel+1] = int64(v.Cols() / s.Block)
	}
	out, parts := &encoded{m: m, after: fmt.Sprintf("%s%d", census.Scaled, s.Bits), op: mil.Op{Type: "constexpr_blockwise_shift_scale"}}, m.Parts()
	integer := integers[s.Integer][s.Bits]
	if err := e.bind(out, "data", mil.TensorOf(integer, v.shape...), parts.Data); err != nil {
		return nil, err
	}
	if parts.Offset != nil {
		if err := e.bind(out, "offset", mil.TensorOf(integer, scale...), offsets(parts.Offset, s.Bits)); err != nil {
			return nil, err
		}
	}
	return out, e.bind(out, "scale", mil.TensorOf(w.Type.DType, scale...), floats(w.Type.DType, parts.Scale))
}

// integers are the element types of integers by signedness and bits.
var integers = map[quant.DType]map[int]mil.DType{quant.I8: {4: mil.Int4, 8: mil.Int8}, quant.U8: {4: mil.UInt4, 8: mil.UInt8}}

// storeError is a fault of the store, which ends the work; other errors of a weight leave that weight alone.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// bind adds an operand.
func (e *encoder) bind(out *encoded, param string, t mil.Type, packed []byte) error {
	v, err := e.put(out, t, packed)
	out.op.Inputs = append(out.op.Inputs, mil.Arg(param, mil.Literal(v)))
	return err
}

func (e *encoder) put(out *encoded, t mil.Type, packed []byte) (*mil.Value, error) {
	data, err := e.Store.Put(packed)
	if err != nil {
		return nil, storeError{err}
	}
	out.bytes += int64(len(packed))
	return &mil.Value{Type: t, Content: data}, nil
}
