package place_test

import (
	"fmt"

	"anelab/coreml/mil"
	"anelab/coreml/place"
)

// An argmax behind a large product leaves the engine: its result is int32.
func ExamplePredict() {
	x := mil.Variable{Name: "x", Type: mil.TensorOf(mil.Float16, 1, 8192)}
	weight := mil.Literal(&mil.Value{Type: mil.TensorOf(mil.Float16, 8192, 16384)})
	f := &mil.Function{Name: mil.MainFunction, Opset: mil.CoreML8, Inputs: []mil.Input{{Variable: x}}, Body: &mil.Block{Outputs: []string{"best"}, Ops: []*mil.Op{
		{Type: "matmul", Inputs: []mil.Argument{mil.Arg("x", mil.Ref("x")), mil.Arg("y", weight)}, Outputs: []mil.Variable{{Name: "logits", Type: mil.TensorOf(mil.Float16, 1, 16384)}}},
		{Type: "reduce_argmax", Inputs: []mil.Argument{mil.Arg("x", mil.Ref("logits"))}, Outputs: []mil.Variable{{Name: "best", Type: mil.TensorOf(mil.Int32, 1)}}},
	}}}
	for _, op := range place.Predict(f, place.Options{}).Ops {
		fmt.Printf("%s: %s %q\n", op.Type, op.Backend.Unit(), op.Why())
	}
	// Output:
	// matmul: ANE ""
	// reduce_argmax: CPU "index-type: indices of type int32"
}
