package gemma4

import "anelab/quant"

// Source gives the tensors of one checkpoint under the names of spec forward.md §3.2, without their prefix, for example
// "layers.3.self_attn.q_proj.weight". Loaders implement it; this package never imports one.
type Source interface {
	// Path names the checkpoint in errors.
	Path() string
	// Has reports whether a tensor of that name exists.
	Has(name string) bool
	// Tensor returns the named tensor; its bytes may be part of a mapped file and stay valid while the source is open.
	Tensor(name string) (quant.Tensor, error)
}

// MatrixSource is a Source that holds weights in a form of its own, for example packed palettes. Load asks it first.
type MatrixSource interface {
	Source
	// Matrix returns the named weight ready to multiply with.
	Matrix(name string) (quant.Matrix, error)
	// Head returns the LM head where it is stored apart from the embedding table, nil where the table serves.
	Head() (quant.Matrix, error)
}

// ScaledSource is a Source whose weight of the per-layer model projection may contain hidden^−½ already, as converters leave it.
type ScaledSource interface {
	Source
	// ProjectionScaled reports whether it does.
	ProjectionScaled() bool
}
