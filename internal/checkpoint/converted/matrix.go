package converted

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/half"
	"anelab/quant"
)

var errForm = errors.New("not a weight of known form")

// weight is a stored constant.
type weight struct {
	op *mil.Op // const or constexpr
	p  *coreml.Model
	fn *mil.Function
}

// shape is that of the constant in the program, [out, in, 1, 1] of a convolution.
func (w weight) shape() []int64 { return w.op.Outputs[0].Type.Shape }

// dims is the shape as a checkpoint has it: a weight is a matrix, a gain a vector.
func (w weight) dims() []int {
	s := w.shape()
	if len(s) == 0 {
		return []int{1}
	}
	rows, cols := int(s[0]), 1
	for _, d := range s[1:] {
		cols *= int(d)
	}
	if len(s) == 1 {
		return []int{rows}
	}
	return []int{rows, cols}
}

// matrix is the constant ready to multiply with: palettes and dense numbers in their stored form, other encodings decoded.
func (w weight) matrix() (quant.Matrix, error) {
	if w.op.Type == "constexpr_lut_to_dense" {
		if m, err := w.palette(); m != nil || err != nil {
			return m, err
		}
	}
	t, err := w.tensor()
	if err != nil {
		return nil, err
	}
	return quant.Dense(t)
}

var denseTypes = map[mil.DType]quant.DType{mil.Float16: quant.F16, mil.Float32: quant.F32, mil.BFloat16: quant.BF16}

// tensor is the constant as dense numbers.
func (w weight) tensor() (quant.Tensor, error) {
	t := quant.Tensor{DType: denseTypes[w.op.Outputs[0].Type.DType], Shape: w.dims()}
	if t.DType == 0 {
		return t, errForm
	}
	if v := w.op.Attribute("val"); v != nil && w.op.Type == "const" {
		var err error
		t.Data, err = v.Bytes()
		return t, err
	}
	return w.decoded()
}

// decoded has the interpreter decode a compressed constant.
func (w weight) decoded() (quant.Tensor, error) {
	out := w.op.Outputs[0]
	ops := append(w.operands(w.op, nil), &mil.Op{Type: "identity", Inputs: []mil.Argument{mil.Arg("x", mil.Ref(out.Name))},
		Outputs: []mil.Variable{{Name: "decoded", Type: out.Type}}})
	f := &mil.Function{Name: mil.MainFunction, Opset: w.fn.Opset, Body: &mil.Block{Ops: ops, Outputs: []string{"decoded"}}}
	p := &mil.Program{SpecVersion: w.p.SpecVersion, Functions: []*mil.Function{f}}
	got, err := interp.Run(context.Background(), p, f.Name, nil, interp.Options{Precision: interp.FP16, Path: w.p.Path})
	if err != nil {
		return quant.Tensor{}, err
	}
	return stored(got["decoded"], w.dims()), nil
}

// stored is a result of a program in the type that it has there.
func stored(t *interp.Tensor, dims []int) quant.Tensor {
	if t.DType == mil.Float32 {
		s := quant.Tensor{DType: quant.F32, Shape: dims}
		for _, x := range t.Floats {
			s.Data = binary.LittleEndian.AppendUint32(s.Data, math.Float32bits(x))
		}
		return s
	}
	s := quant.Tensor{DType: quant.F16, Shape: dims}
	for _, x := range t.Floats {
		s.Data = binary.LittleEndian.AppendUint16(s.Data, half.F32ToF16(x))
	}
	return s
}

// operands are the ops that op needs, in order, and op itself.
func (w weight) operands(op *mil.Op, done []*mil.Op) []*mil.Op {
	for name := range mil.Uses(op) {
		for _, from := range w.fn.Body.Ops {
			if from.Outputs != nil && from.Outputs[0].Name == name {
				done = w.operands(from, done)
			}
		}
	}
	return append(done, op)
}

// palette views a palette along the rows or the columns; nil for other forms.
func (w weight) palette() (quant.Matrix, error) {
	indices, lut := operand(w.op, "indices"), operand(w.op, "lut")
	if indices == nil || lut == nil || lut.Type.DType != mil.Float16 {
		return nil, nil
	}
	e, ok := w.paletteForm(indices, lut)
	if !ok {
		return nil, nil
	}
	packed, err := indices.Bytes()
	if err != nil {
		return nil, err
	}
	raw, err := lut.Bytes()
	if err != nil {
		return nil, err
	}
	tables, err := quant.Tensor{DType: quant.F16, Shape: []int{len(raw) / 2}, Data: raw}.Floats()
	if err != nil {
		return nil, err
	}
	dims := w.dims()
	p, err := quant.NewPalette(dims[0], dims[1], e, quant.Tables{LUT: tables, Indices: packed})
	if err != nil {
		return nil, err
	}
	if fast, ok := quant.Pack4(p); ok {
		return fast, nil
	}
	return p, nil
}

// paletteForm is the encoding of indices [shape] with tables [groups…, entries, vector] (spec coreml.md §4): groups along one of
// the first two axes, one element per index. Until specification version 8 there is one table and a shape beside it.
func (w weight) paletteForm(indices, lut *mil.Value) (quant.Encoding, bool) {
	e, dims, tables := quant.Encoding{DType: quant.F16}, w.dims(), lut.Type.Shape
	if len(dims) != 2 {
		return e, false
	}
	if operand(w.op, "shape") != nil {
		for 1<<e.Bits < lut.Type.Shape[0] {
			e.Bits++
		}
		return e, true
	}
	rank := len(indices.Type.Shape)
	if len(tables) != rank+2 || tables[rank+1] != 1 {
		return e, false
	}
	e.Bits = indices.Type.DType.Bits()
	for axis, groups := range tables[:rank] {
		switch {
		case groups == 1:
		case e.Group != 0 || axis > 1 || axis == 1 && int(indices.Type.Shape[1]) != dims[1]:
			return e, false
		default:
			e.Axis, e.Group = axis, dims[axis]/int(groups)
		}
	}
	return e, true
}

// operand is a value given to a constexpr op, as operand or, until specification version 8, as attribute; nil for a name.
func operand(op *mil.Op, param string) *mil.Value {
	if b := op.Input(param); len(b) == 1 {
		return b[0].Value
	}
	return op.Attribute(param)
}
