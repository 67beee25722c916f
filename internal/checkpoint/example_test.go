package checkpoint_test

import (
	"fmt"

	"anelab"
	"anelab/internal/checkpoint"
)

func ExampleOpenFS() {
	c, err := checkpoint.OpenFS(anelab.Files, "testdata/golden/tiny-e2b/bf16")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	q, err := c.Tensor("layers.4.self_attn.q_proj.weight")
	fmt.Println(q.DType, q.Shape, err)
	fmt.Println(c.Has("layers.5.self_attn.k_proj.weight"), "layer 5 reads the keys of another")
	// Output:
	// bf16 [128 48] <nil>
	// false layer 5 reads the keys of another
}
