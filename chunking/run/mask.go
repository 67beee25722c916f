package run

import (
	"fmt"
	"math"

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

// position reads the position of the call back from its masks, which is all that a chunk is told, and refuses masks that do
// not belong together.
func position(in Ports) (int, error) {
	full, sliding, update := in["causal_mask_full"], in["causal_mask_sliding"], in["update_mask"]
	pos := -1
	if update != nil {
		for i, v := range update.Data {
			if v == 1 && pos < 0 {
				pos = i
			} else if v != 0 {
				return 0, &format.Error{Field: "update_mask", Got: fmt.Sprintf("%v at row %d", v, i), Want: "one 1 among zeros"}
			}
		}
	}
	if pos < 0 {
		return 0, &format.Error{Field: "update_mask", Got: "no row set", Want: "one 1 among zeros"}
	}
	if full != nil {
		if err := requireMask("causal_mask_full", full.Data, pos, fillCausal); err != nil {
			return 0, err
		}
	}
	if sliding != nil {
		if err := requireMask("causal_mask_sliding", sliding.Data, pos, fillSliding); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

// requireMask compares a mask with the one that position pos asks for.
func requireMask(name string, mask []float32, pos int, fill func([]float32, int)) error {
	want := make([]float32, len(mask))
	fill(want, pos)
	for i, v := range mask {
		if v != want[i] {
			return &format.Error{Field: name, Got: fmt.Sprintf("%v at column %d", v, i), Want: fmt.Sprintf("%v for position %d", want[i], pos)}
		}
	}
	return nil
}
