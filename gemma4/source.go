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
