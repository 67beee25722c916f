package run

import (
	"fmt"
	"math"

	"anelab/gemma4"
	"anelab/internal/format"
)

var negInf = float32(math.Inf(-1))

// fillCausal writes the left-aligned additive mask of position pos: 0 for i ≤ pos, −∞ above.
func fillCausal(mask []float32, pos int) {
	for i := range mask {
		mask[i] = negInf
		if i <= pos {
			mask[i] = 0
		}
	}
}

// fillSliding writes the right-aligned mask of a cache of len(mask) rows: the newest min(pos+1, W) rows are visible.
func fillSliding(mask []float32, pos int) {
	for i := range mask {
		mask[i] = negInf
		if i >= len(mask)-(pos+1) {
			mask[i] = 0
		}
	}
}

// fillOneHot writes the update mask: 1 at row pos.
func fillOneHot(mask []float32, pos int) {
	clear(mask)
	mask[pos] = 1
}

// fillMask writes the additive mask of one kind of attention: right-aligned where the kind's caches are windows, else
// left-aligned.
func (e *Executor) fillMask(kind gemma4.Kind, mask []float32, pos int) {
	if e.windowed[kind] {
		fillSliding(mask, pos)
	} else {
		fillCausal(mask, pos)
	}
}

// checkMasks refuses masks that say another position than the call's.
func (e *Executor) checkMasks(in Ports, pos int) error {
	for name, fill := range map[string]func([]float32){
		"causal_mask_full":    func(m []float32) { e.fillMask(gemma4.Full, m, pos) },
		"causal_mask_sliding": func(m []float32) { e.fillMask(gemma4.Sliding, m, pos) },
		"update_mask":         func(m []float32) { fillOneHot(m, pos) },
	} {
		t, ok := in[name]
		if !ok {
			continue
		}
		want := make([]float32, len(t.Data))
		fill(want)
		for i, v := range t.Data {
			if v != want[i] {
				return &format.Error{Field: name, Got: fmt.Sprintf("%v at column %d", v, i), Want: fmt.Sprintf("%v for position %d", want[i], pos)}
			}
		}
	}
	return nil
}
