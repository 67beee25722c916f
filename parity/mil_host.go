package parity

import (
	"anelab/gemma4"
	"anelab/internal/half"
)

// modelHost gives chunks the rows of a Go model, as fp16 numbers. It is a [bundle.Host].
type modelHost struct {
	model *gemma4.Model
	ws    gemma4.Workspace
}

// Vocabulary implements [bundle.Host].
func (h *modelHost) Vocabulary() int { return h.model.Config.VocabSize }

// Embed implements [bundle.Host].
func (h *modelHost) Embed(x []float32, token int) {
	h.model.Embed(x, []int{token})
	roundF16(x)
}

// PLERaw implements [bundle.Host].
func (h *modelHost) PLERaw(raw []float32, token int) {
	h.model.PLERaw(raw, []int{token})
	roundF16(raw)
}

// RopeSliding implements [bundle.Host].
func (h *modelHost) RopeSliding(cos, sin []float32, pos int) { h.rope(gemma4.Sliding, cos, sin, pos) }

// RopeFull implements [bundle.Host].
func (h *modelHost) RopeFull(cos, sin []float32, pos int) { h.rope(gemma4.Full, cos, sin, pos) }

func (h *modelHost) rope(kind gemma4.Kind, cos, sin []float32, pos int) {
	pass := gemma4.Pass{First: pos, T: 1}
	h.model.Begin(&pass, &h.ws)
	copy(cos, pass.Rope[kind].Cos)
	copy(sin, pass.Rope[kind].Sin)
	roundF16(cos)
	roundF16(sin)
}

func roundF16(x []float32) {
	for i, v := range x {
		x[i] = half.RoundF16(v)
	}
}
