package bundle

import (
	"fmt"
	"math"
	"strings"

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
	if b, named := bankOf(mask); named {
		return b.sees(at, c.pos+c.rows-columns+i, i)
	}
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

// bank is rows that are kept in a way of their own: the first ones and the last.
type bank struct{ sinks, recent int }

// bankOf reads what a mask's name says of its rows: causal_mask_full_stream_4_256, causal_mask_full_window_256, causal_mask_sliding_all.
func bankOf(mask string) (b bank, named bool) {
	for kind := range maskKinds {
		name, ok := strings.CutPrefix(mask, kind+"_")
		if !ok {
			continue
		}
		if name == "all" {
			return bank{recent: math.MaxInt}, true
		}
		if n, _ := fmt.Sscanf(name, "stream_%d_%d", &b.sinks, &b.recent); n == 2 {
			return b, true
		}
		if n, _ := fmt.Sscanf(name, "window_%d", &b.recent); n == 1 {
			return b, true
		}
	}
	return bank{}, false
}

// sees reports whether the token at a position sees slot i, whose row is that of position p unless it is a sink.
func (b bank) sees(at, p, i int) bool {
	if i < b.sinks || b.recent == math.MaxInt {
		return i <= at
	}
	return p >= b.sinks && p <= at && at-p < b.recent
}
