package parity

import (
	"math"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/gemma4"
)

// mask is a mask in the shape that a chunk declares, for a call whose first token is at the host's position: where rows are written,
// or which positions every token sees (spec forward.md §4.0, §4.9, §4.10).
func (h *packageHost) mask(port mil.Input) *interp.Tensor {
	t := emptyPort(port)
	switch port.Name {
	case "update_mask":
		t.Floats[h.pos] = 1
	case "update_indicator": // [C, T]
		for row := range h.rows {
			t.Floats[(h.pos+row)*h.rows+row] = 1
		}
	default:
		columns := len(t.Floats) / h.rows
		for row := range h.rows {
			for i := range columns {
				if !h.sees(port.Name, columns, row, i) {
					t.Floats[row*columns+i] = float32(math.Inf(-1))
				}
			}
		}
	}
	return t
}

// maskKinds are the masks of one kind of layer. The mask of a prefill is for both, and knows no window.
var maskKinds = map[string]gemma4.Kind{"causal_mask_sliding": gemma4.Sliding, "causal_mask_full": gemma4.Full}

// sees reports whether token row of the call sees column i. The rows of a window end with those of the call, unless they are a ring,
// where they lie anywhere once it is full; a window that has room for the rows of a call besides its own loses none of its own.
func (h *packageHost) sees(mask string, columns, row, i int) bool {
	at := h.pos + row
	kind, own := maskKinds[mask]
	switch {
	case !own || h.window(kind) == 0:
		return i <= at
	case bool(h.ring) && kind == gemma4.Sliding:
		return i <= at || at >= columns
	}
	p, window := h.pos+h.rows-columns+i, columns
	if h.rows > 1 && columns == h.window(kind)+h.rows {
		window -= h.rows
	}
	return p >= 0 && p <= at && at-p < window
}
