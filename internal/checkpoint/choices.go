package checkpoint

import (
	"anelab/internal/arith"
	"anelab/internal/checkpoint/packed"
)

// Choices are those of the packages that a packed model was made from; zero for any other checkpoint.
func (c *Checkpoint) Choices() packed.Choices {
	if f, ok := c.store.(*packed.File); ok {
		return f.Choices()
	}
	return packed.Choices{}
}

// ProjectionScaled implements gemma4.ScaledSource.
func (c *Checkpoint) ProjectionScaled() bool {
	return c.Choices().Projection == packed.ProjectionScaled
}

// Arithmetic is a mode by name; ane rounds where the packages do that the model was packed from.
func (c *Checkpoint) Arithmetic(mode string, threads int) (arith.Arithmetic, error) {
	if mode == "ane" {
		return arith.NewANE(c.Choices().Rules, threads), nil
	}
	return arith.New(mode, threads)
}
