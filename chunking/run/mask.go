package run

import (
	"fmt"
	"math"
	"strings"

	"anelab/chunking"
	"anelab/internal/format"
)

var negInf = float32(math.Inf(-1))

// FillMask writes what a mask port holds in a call whose first token is at pos: 0 or −∞ for the causal masks, ones where rows
// are written. last_position_mask is not among them: it depends on the prompt.
func (f *Function) FillMask(p chunking.Port, mask []float32, pos int) {
	switch {
	case p.Name == "update_mask":
		clear(mask)
		mask[pos] = 1
	case p.Name == "update_indicator": // [C, T]
		clear(mask)
		for t := range f.Tokens {
			mask[(pos+t)*f.Tokens+t] = 1
		}
	case p.Name == "causal_mask":
		f.fillCausal(mask, chunking.Bank{}, pos)
	default:
		if b, ok := f.Memory.bankOf(p.Name); ok {
			f.fillCausal(mask, b, pos)
		}
	}
}

// fillCausal writes an additive mask [T, rows] over a bank: row t sees the positions up to its own, in a window the newest of them,
// each position once: those of sinks are hidden in the window behind them.
func (f *Function) fillCausal(mask []float32, b chunking.Bank, pos int) {
	rows := len(mask) / f.Tokens
	base, sinks, window := 0, 0, rows
	if b.Windowed() {
		base, sinks = pos+f.Tokens-rows, b.Keep.Sink
		window = rows - sinks
		if f.Kind == Verify && f.Window == WholeWindow {
			window -= f.Tokens
		}
	}
	for t := range f.Tokens {
		for i := range rows {
			q, seen := base+i, pos+t
			mask[t*rows+i] = negInf
			if i < sinks && i <= seen || i >= sinks && q >= sinks && q <= seen && seen-q < window {
				mask[t*rows+i] = 0
			}
		}
	}
}

// checkMasks refuses masks that say another position than the call's.
func (f *Function) checkMasks(sig Signature, in Ports, pos int) error {
	for _, p := range sig.Inputs {
		if p.Role != chunking.RoleMask && p.Role != chunking.RoleUpdate || strings.HasPrefix(p.Name, "last_") {
			continue
		}
		want := newTensor(p)
		f.FillMask(p, want.Data, pos)
		columns := p.Shape[len(p.Shape)-1]
		if p.Name == "update_mask" {
			columns = len(want.Data)
		}
		for i, v := range in[p.Name].Data {
			if v != want.Data[i] {
				where := fmt.Sprintf("%v at column %d", v, i%columns)
				if f.Tokens > 1 {
					where += fmt.Sprintf(" of row %d", i/columns)
				}
				return &format.Error{Field: p.Name, Got: where, Want: fmt.Sprintf("%v for position %d", want.Data[i], pos)}
			}
		}
	}
	return nil
}
