package parity_test

import (
	"context"
	"fmt"

	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/parity"
	"anelab/quant"
)

func ExampleCompare() {
	got := []float32{1, 2, 3.5, 4}
	want := []float32{1, 2, 3, 4}
	d := parity.Compare(got, want, parity.Options{Storage: quant.F16})
	fmt.Println(d)
	fmt.Println(parity.Tolerance{PeakRel: 0.2}.Check(d))
	// Output:
	// max abs 0.5 (0.125 of peak 4) at [2], 256 ulp f16, cosine 0.997364949, rel rms 0.0913, 3/4 equal, argmax 1/1
	// <nil>
}

func ExampleRun() {
	src, err := checkpoint.Open("../testdata/golden/tiny-e2b/bf16")
	if err != nil {
		panic(err)
	}
	defer src.Close()
	load := func(mode string) parity.Reference {
		a, err := arith.New(mode, 1)
		if err != nil {
			panic(err)
		}
		m, err := gemma4.Load(src.Config, src, a, gemma4.Options{})
		if err != nil {
			panic(err)
		}
		return parity.Reference{Label: mode, Model: m}
	}
	c := parity.Case{Name: "three tokens", Prompt: []int{5, 6, 7}}
	r, err := parity.Run(context.Background(), load("hf-bf16"), load("f32"), c, parity.Settings{
		Tolerances: parity.Tolerances{Default: parity.Tolerance{PeakRel: 0.006}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.First.Label, r.First.Layer)
	// Output:
	// ffn_out.0 [0,3) 0
}
