package interp_test

import (
	"context"
	"fmt"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/half"
)

// One of the package's two functions runs; the other wants four tokens at a time.
func ExampleModel_Run() {
	pkg, err := mlpackage.Open("../../testdata/coreml/ops/multifunction.mlpackage")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pkg.Close()
	m, err := interp.New(pkg.Program, interp.Options{Precision: interp.ANE, Path: pkg.Path})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := pkg.Program.Function("decode_q1").Inputs[0]
	x := interp.NewTensor(mil.Float16, 1, 64, 1, 1)
	for i := range x.Floats {
		x.Floats[i] = half.RoundF16(float32(i) / 32)
	}
	fmt.Println(in.Name, in.Type)
	tap := func(name string, t *interp.Tensor) { fmt.Println(name, t.Type()) }
	if _, err := m.Run(context.Background(), "decode_q1", map[string]*interp.Tensor{in.Name: x}, interp.Call{Tap: tap}); err != nil {
		fmt.Println(err)
	}
	_, err = m.Run(context.Background(), "prefill_b4", map[string]*interp.Tensor{in.Name: x}, interp.Call{})
	fmt.Println(err)
	// Output:
	// x tensor<fp16, [1, 64, 1, 1]>
	// y tensor<fp16, [1, 48, 1, 1]>
	// ../../testdata/coreml/ops/multifunction.mlpackage: prefill_b4/x: [1, 64, 1, 1], want [1, 64, 1, 4]: wrong shape
}
