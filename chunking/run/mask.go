package run

import (
	"fmt"
	"math"
	"strings"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
)

var negInf = float32(math.Inf(-1))

// base is the position of row 0 of so many rows that the layers of a kind read, in a call whose first token is at pos. The last row
// of a window is that of the call's last token.
func (f *Function) base(kind gemma4.Kind, pos, rows int) int {
	if f.Kind == Prefill || !f.Memory.Windowed[kind] {
		return 0
	}
	return pos + f.Tokens - rows
}

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
		f.fillCausal(mask, gemma4.Full, pos)
	default:
		for kind, name := range MaskNames {
			if p.Name == name {
				f.fillCausal(mask, gemma4.Kind(kind), pos)
			}
		}
	}
}

// fillCausal writes an additive mask [T, rows]: row t sees the positions up to its own, in a window the newest of them.
func (f *Function) fillCausal(mask []float32, kind gemma4.Kind, pos int) {
	rows := len(mask) / f.Tokens
	base, window := f.base(kind, pos, rows), rows
	if f.Kind == Verify && f.Window == WholeWindow && f.Memory.Windowed[kind] {
		window -= f.Tokens
	}
	for t := range f.Tokens {
		for i := range rows {
			mask[t*rows+i] = negInf
			if q, seen := base+i, pos+t; q >= 0 && q <= seen && seen-q < window {
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
