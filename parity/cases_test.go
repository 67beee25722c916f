package parity_test

import (
	"context"
	"math"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/half"
	"anelab/parity"

	"github.com/stretchr/testify/require"
)

// oneOp is a program of ops in order; the last result is the output y.
func oneOp(inputs []mil.Input, ops ...*mil.Op) *mil.Program {
	last := ops[len(ops)-1].Outputs[0].Name
	return &mil.Program{SpecVersion: 9, Functions: []*mil.Function{{Name: "main", Opset: mil.Opset(9), Inputs: inputs, Body: &mil.Block{Ops: ops, Outputs: []string{last}}}}}
}

func constant(name string, v *mil.Value) *mil.Op {
	return &mil.Op{Type: "const", Outputs: []mil.Variable{{Name: name, Type: v.Type}}, Attributes: []mil.Attribute{{Name: "val", Value: v}}}
}

// op makes an op of one result; operands are pairs of parameter and name.
func op(kind, out string, t mil.Type, operands ...string) *mil.Op {
	o := &mil.Op{Type: kind, Outputs: []mil.Variable{{Name: out, Type: t}}}
	for i := 0; i < len(operands); i += 2 {
		o.Inputs = append(o.Inputs, mil.Arg(operands[i], mil.Ref(operands[i+1])))
	}
	return o
}

func f16One(x float32) *mil.Value { return mil.Scalar(mil.F16(half.F32ToF16(x))) }

func input(name string, shape ...int64) mil.Input {
	return mil.Input{Variable: mil.Variable{Name: name, Type: mil.TensorOf(mil.Float16, shape...)}}
}

func runOne(t *testing.T, p *mil.Program, precision interp.Precision, inputs map[string]*interp.Tensor) *interp.Tensor {
	out, err := interp.Run(context.Background(), p, "main", inputs, interp.Options{Precision: precision})
	require.NoError(t, err)
	require.Len(t, out, 1)
	for _, y := range out {
		return y
	}
	return nil
}

func TestNUM18ConstantBaseOfPow(t *testing.T) { // hand: 2^y, not y², whichever side the constant is on
	v := mil.TensorOf(mil.Float16, 5)
	exponents := map[string]*interp.Tensor{"e": interp.F16([]float32{0, 1, 3, -1, 0.5}, 5)}
	for _, precision := range []interp.Precision{interp.Exact, interp.FP16, interp.ANE} {
		base := oneOp([]mil.Input{input("e", 5)}, constant("two", f16One(2)), op("pow", "y", v, "x", "two", "y", "e"))
		y := runOne(t, base, precision, exponents)
		require.InDeltaSlice(t, []float32{1, 2, 8, 0.5, math.Sqrt2}, y.Floats, 1e-3)
		square := oneOp([]mil.Input{input("e", 5)}, constant("two", f16One(2)), op("pow", "y", v, "x", "e", "y", "two"))
		require.Equal(t, []float32{0, 1, 9, 1, 0.25}, runOne(t, square, precision, exponents).Floats)
	}
}

// hand: a mask of the least fp32 numbers, cast to fp16 and added to scores. Where casts saturate, a row that is masked throughout stays
// a distribution; infinities that are meant stay infinite.
func TestNUM15CastMasksStayFinite(t *testing.T) {
	wide, narrow := mil.TensorOf(mil.Float32, 6), mil.TensorOf(mil.Float16, 6)
	inf := float32(math.Inf(1))
	x := &interp.Tensor{DType: mil.Float32, Shape: []int{6}, Floats: []float32{-3.4028e38, 0, 1e5, -1e5, inf, -inf}}
	in := []mil.Input{{Variable: mil.Variable{Name: "m", Type: wide}}}
	p := oneOp(in, constant("to", mil.Scalar("fp16")), op("cast", "y", narrow, "dtype", "to", "x", "m"))
	require.Equal(t, []float32{-65504, 0, 65504, -65504, inf, -inf}, runOne(t, p, interp.ANE, map[string]*interp.Tensor{"m": x}).Floats)

	row := &interp.Tensor{DType: mil.Float32, Shape: []int{6}, Floats: []float32{-3.4e38, -3.4e38, -3.4e38, -3.4e38, -3.4e38, -3.4e38}}
	p = oneOp(in, constant("to", mil.Scalar("fp16")), op("cast", "mask", narrow, "dtype", "to", "x", "m"),
		constant("axis", mil.Scalar(int32(-1))), op("softmax", "y", narrow, "axis", "axis", "x", "mask"))
	for _, v := range runOne(t, p, interp.ANE, map[string]*interp.Tensor{"m": row}).Floats {
		require.InDelta(t, 1.0/6, v, 1e-3)
	}
}

// attention is one head in two forms over n positions of width d: the fused op on pre-scaled queries, and product, mask, softmax, product.
func attentionForms(n, d int64) (fused, manual *mil.Program) {
	q, k, row := mil.TensorOf(mil.Float16, 1, 1, n, d), mil.TensorOf(mil.Float16, 1, 1, n, d), mil.TensorOf(mil.Float16, 1, 1, n, n)
	in := []mil.Input{input("q", 1, 1, n, d), input("k", 1, 1, n, d), input("v", 1, 1, n, d), input("mask", 1, 1, n, n)}
	fused = oneOp(in, constant("root", f16One(float32(math.Sqrt(float64(d))))), op("mul", "scaled", q, "x", "q", "y", "root"),
		op("scaled_dot_product_attention", "y", k, "query", "scaled", "key", "k", "value", "v", "attn_mask", "mask"))
	manual = oneOp(in, constant("yes", mil.Scalar(true)), constant("no", mil.Scalar(false)), constant("axis", mil.Scalar(int32(-1))),
		op("matmul", "scores", row, "transpose_x", "no", "transpose_y", "yes", "x", "q", "y", "k"), op("add", "masked", row, "x", "scores", "y", "mask"),
		op("softmax", "p", row, "axis", "axis", "x", "masked"), op("matmul", "y", k, "transpose_x", "no", "transpose_y", "no", "x", "p", "y", "v"))
	return fused, manual
}

// invariant: at one position and at 64, with a causal mask, the fused op is the manual form to within fp16, element by element, and its
// rows have their greatest element in the same place.
func TestATT11FusedAttentionIsTheManualOne(t *testing.T) {
	for _, n := range []int64{1, 64} {
		const d = 16
		fused, manual := attentionForms(n, d)
		inputs := map[string]*interp.Tensor{"mask": interp.NewTensor(mil.Float16, 1, 1, int(n), int(n))}
		for i := range n * n {
			if i%n > i/n {
				inputs["mask"].Floats[i] = float32(math.Inf(-1))
			}
		}
		for k, name := range []string{"q", "k", "v"} {
			x := make([]float32, n*d)
			for i := range x {
				x[i] = float32((37*i+11*k)%101-50) / 32
			}
			inputs[name] = interp.F16(x, 1, 1, int(n), d)
		}
		for _, precision := range []interp.Precision{interp.FP16, interp.ANE} {
			got, want := runOne(t, fused, precision, inputs), runOne(t, manual, precision, inputs)
			diff := parity.Compare(got.Floats, want.Floats, parity.Options{RowLen: d})
			require.NoError(t, parity.Tolerance{PeakRel: 4e-3, MinArgmax: 1}.Check(diff), "%d positions, %s", n, precision)
		}
	}
}

// hand: equal numbers of another shape are no agreement: a row for a column, a prefix for the whole.
func TestPAR03ResultsOfAnotherShape(t *testing.T) {
	y := interp.F16([]float32{1, 2, 3}, 1, 3)
	for name, want := range map[string]*interp.Tensor{"a column": interp.F16([]float32{1, 2, 3}, 3, 1), "longer": interp.F16([]float32{1, 2, 3, 0}, 1, 4),
		"integers": interp.I32([]int32{1, 2, 3}, 1, 3)} {
		r := parity.Judge("got", map[string]*interp.Tensor{"y": y}, map[string]*interp.Tensor{"y": want}, parity.ProgramSettings{Tolerance: parity.Tolerance{Abs: 1e9}}, nil)
		require.NotNil(t, r.First, name)
		require.False(t, r.Outputs[0].OK, name)
	}
	r := parity.Judge("got", map[string]*interp.Tensor{"y": y}, map[string]*interp.Tensor{"z": y}, parity.ProgramSettings{}, nil)
	require.ErrorContains(t, r.Err(), "no tensor in common")
}

// hand: integers are right or wrong, whatever is allowed for numbers.
func TestIntegersHaveNoTolerance(t *testing.T) {
	got, want := map[string]*interp.Tensor{"token_id": interp.I32([]int32{195}, 1)}, map[string]*interp.Tensor{"token_id": interp.I32([]int32{196}, 1)}
	s := parity.ProgramSettings{Tolerance: parity.Tolerance{Abs: 5, PeakRel: 1}}
	r := parity.Judge("got", got, want, s, nil)
	require.NotNil(t, r.First)
	s.Free = map[string]bool{"token_id": true}
	r = parity.Judge("got", got, want, s, nil)
	require.NoError(t, r.Err())
	require.True(t, r.Outputs[0].Free)
}
