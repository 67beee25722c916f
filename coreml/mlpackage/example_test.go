package mlpackage_test

import (
	"fmt"
	"log"

	"anelab/coreml/mlpackage"
)

func ExampleOpen() {
	p, err := mlpackage.Open("../../testdata/coreml/ops/lut_w4_odd_count.mlpackage")
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	for _, f := range p.Program.Functions {
		for op := range f.Body.All() {
			for operand, v := range op.Values() {
				if b := v.Blob(); b != nil {
					fmt.Println(f.Name, op.Name(), operand, v.Type, b.Offset)
				}
			}
		}
	}
	// Output:
	// main w indices tensor<uint4, [7, 9]> 64
	// main w lut tensor<fp16, [1, 1, 16, 1]> 192
}
