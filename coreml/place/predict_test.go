package place

import (
	"math"
	"testing"

	"anelab/coreml/mil"

	"github.com/stretchr/testify/require"
)

// SIM-01: a 4×4 product between casts could run on the engine and does not; a large GEMV does. (hand)
func TestSIM01SupportedIsNotPlaced(t *testing.T) {
	f := &mil.Function{Name: mil.MainFunction, Opset: mil.CoreML8, Body: &mil.Block{Outputs: []string{"y"}}}
	f.Inputs = []mil.Input{{Variable: mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float32, 4, 4)}}}
	f.Body.Ops = []*mil.Op{
		{Type: "cast", Inputs: []mil.Argument{mil.Arg("x", mil.Ref("x"))}, Outputs: []mil.Variable{fp16("x16", 4, 4)}},
		{Type: "matmul", Inputs: []mil.Argument{mil.Arg("x", mil.Ref("x16")), mil.Arg("y", mil.Ref("x16"))}, Outputs: []mil.Variable{fp16("y16", 4, 4)}},
		{Type: "cast", Inputs: []mil.Argument{mil.Arg("x", mil.Ref("y16"))}, Outputs: []mil.Variable{{Name: "y", Type: mil.TensorOf(mil.Float32, 4, 4)}}},
	}
	p := Predict(f, Options{})
	require.Equal(t, 3, p.Count("CPU"))
	require.False(t, p.Passes())
	for _, op := range p.Ops {
		require.Nil(t, op.Refusal, "the engine takes it")
		require.InDelta(t, 0.25e-3, op.PenaltySeconds, 0.126e-3)
		require.Contains(t, op.Why(), "cheaper: going to the engine would cost")
	}

	gemv := one{"matmul", []mil.Variable{fp16("x", 1, 5120)}, []mil.Argument{weight("y", 5120, 17408)}, mil.TensorOf(mil.Float16, 1, 17408)}
	p = Predict(gemv.function(), Options{})
	require.Equal(t, 1, p.Count("ANE"))
	require.True(t, p.Passes())
	require.Empty(t, p.Ops[0].Why())
}

// SIM-02: what is admitted is a rule of the chip; what is preferred follows from what depth saves. (hand)
func TestSIM02DepthDecides(t *testing.T) {
	place := func(k int64, limits Limits) OpPlacement {
		gemv := one{"matmul", []mil.Variable{fp16("x", 1, k)}, []mil.Argument{weight("y", k, 4096)}, mil.TensorOf(mil.Float16, 1, 4096)}
		return Predict(gemv.function(), Options{Limits: limits}).Ops[0]
	}
	require.Equal(t, "CPU", place(1024, Before16).Backend.Unit())
	require.Nil(t, place(1024, Before16).Refusal)
	require.Equal(t, "ANE", place(16384, Before16).Backend.Unit())
	require.Equal(t, RuleDimension, place(16385, Before16).Refusal.Rule)
	require.Equal(t, "ANE", place(16385, Since16).Backend.Unit())
	// Over which depth it pays: 2·k·4096 bytes at 68 against 56.7 GiB/s are 0.25 ms.
	edge := int64(math.Round(0.25e-3 * 68 * gibi / 0.2 / (2 * 4096)))
	require.Equal(t, "CPU", place(edge-64, Since16).Backend.Unit())
	require.Equal(t, "ANE", place(edge+64, Since16).Backend.Unit())
}

// SIM-05: beyond the budget the GPU runs all of it, without a word; the limit is a parameter. (hand)
func TestSIM05ProgramsBeyondTheBudget(t *testing.T) {
	program := func(rows int64) *mil.Function {
		f := one{"linear", []mil.Variable{fp16("x", 1, 1000)}, nil, mil.TensorOf(mil.Float16, 1, rows)}.function()
		w := &mil.Op{Type: "const", Outputs: []mil.Variable{fp16("w", rows, 1000)},
			Attributes: []mil.Attribute{{Name: "val", Value: &mil.Value{Type: mil.TensorOf(mil.Float16, rows, 1000), Content: &mil.Blob{File: "w"}}}}}
		f.Body.Ops = append([]*mil.Op{w}, f.Body.Ops...)
		f.Body.Ops[1].Inputs = append(f.Body.Ops[1].Inputs, mil.Arg("weight", mil.Ref("w")))
		return f
	}
	limits := Since16
	limits.Dimension, limits.ProgramBytes = math.MaxInt64, 1.4e9
	p := Predict(program(700_000), Options{Limits: limits})
	require.Nil(t, p.Size)
	require.Equal(t, 1, p.Count("ANE"))
	p = Predict(program(700_001), Options{Limits: limits})
	require.Equal(t, 1, p.Count("GPU"))
	require.Equal(t, RuleSize, p.Size.Rule)
	require.Contains(t, p.Ops[0].Why(), "1.40 GB of weights in one program")
	require.False(t, p.Passes())
	limits.ProgramBytes = 0.9e9
	require.NotNil(t, Predict(program(450_001), Options{Limits: limits}).Size)
}

// SIM-07: what a mask is filled with is no part of a placement: −Inf, −1e4 and two masks added are placed alike. (hand)
func TestSIM07MasksHaveNoPlacement(t *testing.T) {
	softmax := func(fill float32) *Placement {
		add := one{"add", []mil.Variable{fp16("x", 1, 8, 1, 512)}, []mil.Argument{mil.Arg("y", mil.Literal(mil.Scalar(mil.F16(fill))))}, mil.TensorOf(mil.Float16, 1, 8, 1, 512)}
		return Predict(add.function(), Options{})
	}
	require.Equal(t, softmax(0xfc00), softmax(0xf0e2)) // −Inf, −1e4
}

// hand: five per cent of the ops may be off the engine.
func TestFivePercentPass(t *testing.T) {
	p := &Placement{Ops: make([]OpPlacement, 40)}
	p.Ops[0].Backend, p.Ops[1].Backend = BNNS, ClassicCPU
	require.True(t, p.Passes())
	p.Ops[2].Backend = GPU
	require.False(t, p.Passes())
	require.Equal(t, 37, p.Count("ANE"))
}
