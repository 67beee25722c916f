package bundle

import (
	"math"

	"anelab/gemma4"
)

// maskKinds are the masks of one kind of layer. The mask of a prefill is for both, and knows no window.
var maskKinds = map[string]gemma4.Kind{"causal_mask_sliding": gemma4.Sliding, "causal_mask_full": gemma4.Full}

// mask fills a mask [T, columns]: 0 for what a token sees, −∞ for the rest (spec forward.md §4.0, §4.9 to §4.11).
func (c *call) mask(name string, m []float32) {
	columns := len(m) / c.rows
	for row := range c.rows {
		for i := range columns {
			if !c.sees(name, columns, row, i) {
				m[row*columns+i] = float32(math.Inf(-1))
			}
		}
	}
}

// sees reports whether token row of the call sees column i.
func (c *call) sees(mask string, columns, row, i int) bool {
	at := c.pos + row
	kind, own := maskKinds[mask]
	if !own || c.Windows[kind] == 0 {
		return i <= at
	}
	window := c.Windows[kind]
	behind := c.rows > 1 && columns == window+c.rows // the call's own rows have room behind those of the window
	p := c.pos + c.rows - columns + i                // rows of a window end with those of the call
	switch {
	case bool(c.ring) && kind == gemma4.Sliding && !behind:
		return i <= at || at >= columns // they lie anywhere once the ring is full
	case bool(c.ring) && kind == gemma4.Sliding && i < window:
		p = newestIn(i, window, c.pos)
	case !behind:
		window = columns
	}
	return p >= 0 && p <= at && at-p < window
}

// newestIn is the greatest position below end that lies in slot i of a ring of w rows, negative if there is none.
func newestIn(i, w, end int) int { return end - 1 - ((end-1-i)%w+w)%w }
