package chunking_test

import (
	"errors"
	"fmt"

	"anelab"
	"anelab/chunking"
	"anelab/gemma4"
)

func model() *chunking.Model {
	const path = "testdata/configs/e2b.json"
	data, err := anelab.Files.ReadFile(path)
	if err != nil {
		panic(err)
	}
	cfg, err := gemma4.ParseConfig(path, data)
	if err != nil {
		panic(err)
	}
	m, err := chunking.NewModel(cfg)
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleParse() {
	l, err := chunking.Parse("@3way w=f16 context=512", model())
	fmt.Println(l, err)

	_, err = chunking.Parse("L0-9 | L9-34+head", model())
	fmt.Println(err)
	var fault *chunking.ParseError
	if errors.As(err, &fault) {
		fmt.Println(fault.Excerpt())
	}
	// Output:
	// L0-7 w=f16 | L8-24 w=f16 | L25-34+head w=f16 context=512 <nil>
	// layout "L0-9 | L9-34+head": layer 9 is in two chunks; take it out of chunk 1 or 2
	//    L0-9 | L9-34+head
	//           ^
}

func ExampleLayout_Plan() {
	m := model()
	l, err := chunking.Parse("@3way", m)
	if err != nil {
		panic(err)
	}
	p, err := l.Plan(m)
	if err != nil {
		panic(err)
	}
	for _, c := range p.Chunks {
		fmt.Printf("%-11s %9d weight bytes, %8d KV bytes read\n", c, c.Totals.WeightBytes, c.Totals.KVReadBytes)
	}
	for _, h := range p.Handoffs() {
		fmt.Println(h)
	}
	// Output:
	// L0-7        155425552 weight bytes,  7864320 KV bytes read
	// L8-24       459228450 weight bytes, 23592960 KV bytes read
	// L25-34+head 526866964 weight bytes, 12582912 KV bytes read
	// layer 13 (sliding) from chunk 2 to 3
	// layer 14 (full) from chunk 2 to 3
}

func ExampleEnumerate() {
	m := model()
	planner := chunking.NewPlanner(m)
	var p chunking.Plan
	best, least := "", int64(1<<62)
	for l := range chunking.Enumerate(m, 3) {
		if err := planner.PlanInto(&p, l); err != nil {
			panic(err)
		}
		largest := int64(0)
		for _, c := range p.Chunks {
			largest = max(largest, c.Totals.WeightBytes)
		}
		if largest < least {
			best, least = l.String(), largest
		}
	}
	fmt.Println(chunking.Count(m, 3), "layouts; most even weights:", best)
	// Output:
	// 561 layouts; most even weights: L0-17 | L18-29 | L30-34+head
}
