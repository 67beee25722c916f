package anesim_test

import (
	"fmt"
	"os"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/gemma4"
)

// The shipped three-chunk layout on the phone: what each chunk takes, and what bounds it.
func ExamplePredict() {
	data, _ := os.ReadFile("../testdata/configs/e2b.json")
	cfg, _ := gemma4.ParseConfig("e2b.json", data)
	model, _ := chunking.NewModel(cfg)
	layout, _ := chunking.Parse("@3way", model)
	plan, _ := layout.Plan(model)
	phone, _ := devices.Load("iphone17pro")

	p := anesim.Predict(plan, phone, anesim.Workload{})
	for _, c := range p.Chunks {
		fmt.Printf("%-12s %5.1f ms  %s %.0f %%\n", c.Chunk, 1e3*c.TimeS, c.BoundBy, 100*c.BoundShare)
	}
	fmt.Printf("%.1f tok/s (%.1f–%.1f: %s)\n", p.TokPerSec, p.Range.Lo, p.Range.Hi, p.Basis)
	// Output:
	// L0-7           5.6 ms  attention 39 %
	// L8-24         12.6 ms  weights 49 %
	// L25-34+head   10.9 ms  weights 65 %
	// 33.6 tok/s (31.3–36.2: 6 calibration sessions, worst miss 5.8 %)
}
