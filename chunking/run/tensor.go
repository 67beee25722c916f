package run

import (
	"fmt"
	"slices"

	"anelab/chunking"
	"anelab/internal/format"
)

// Tensor is the value of a port.
type Tensor struct {
	Shape []int
	Data  []float32 // fp16 ports
	IDs   []int32   // int32 ports
}

// Ports are the inputs or outputs of one call, by name.
type Ports map[string]*Tensor

// newTensor allocates the value of a port.
func newTensor(p chunking.Port) *Tensor {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	if p.Type == chunking.Int32 {
		return &Tensor{Shape: p.Shape, IDs: make([]int32, n)}
	}
	return &Tensor{Shape: p.Shape, Data: make([]float32, n)}
}

// clone copies a tensor: a chunk never writes into its inputs.
func (t *Tensor) clone() *Tensor {
	return &Tensor{Shape: t.Shape, Data: slices.Clone(t.Data), IDs: slices.Clone(t.IDs)}
}

// copyTo fills another tensor of the same shape, and returns it.
func (t *Tensor) copyTo(o *Tensor) *Tensor {
	copy(o.Data, t.Data)
	return o
}

// checkInputs makes sure that every declared port is there in its declared shape, and nothing else is.
func checkInputs(c *chunking.Chunk, declared []chunking.Port, in Ports) error {
	for _, p := range declared {
		t, ok := in[p.Name]
		if !ok {
			return &format.Error{Path: "chunk " + c.String(), Field: p.Name, Got: "nothing", Want: fmt.Sprintf("shape %v", p.Shape)}
		}
		if !slices.Equal(t.Shape, p.Shape) {
			fix := ""
			if p.Role == chunking.RoleMask || p.Role == chunking.RoleUpdate {
				fix = "the mask was built for another context than the chunk"
			}
			return &format.Error{Path: "chunk " + c.String(), Field: p.Name, Got: fmt.Sprintf("shape %v", t.Shape), Want: fmt.Sprintf("%v", p.Shape), Fix: fix}
		}
	}
	if len(in) != len(declared) {
		for name := range in {
			if !slices.ContainsFunc(declared, func(p chunking.Port) bool { return p.Name == name }) {
				return &format.Error{Path: "chunk " + c.String(), Field: name, Got: "an input the chunk does not declare"}
			}
		}
	}
	return nil
}
