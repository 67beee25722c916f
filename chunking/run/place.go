package run

import (
	"anelab/chunking"
	"anelab/swa"
)

// place says where positions lie in a slot: row i holds position base+i, but for the first rows where there are sinks, which hold
// the positions of their own numbers.
type place struct{ sinks, base int }

// place of the rows that layer l reads, so many, in a call whose first token is at pos. The last row of a window is that of the
// call's last token; a prefill has no rows but its own.
func (f *Function) place(l, pos, rows int) place {
	b := f.Memory.Banks[l]
	if f.Kind == Prefill || !b.Windowed() {
		return place{}
	}
	return place{b.Keep.Sink, pos + f.Tokens - rows}
}

// slotOf is part s of a cache tensor, as the layer keeps it there.
func (f *Function) slotOf(t *Tensor, s, l int) swa.Slot {
	part := slot(t, s)
	part.Sinks = f.place(l, 0, part.Rows).sinks
	return part
}

// bankOf finds the bank that a mask is for.
func (m *Memory) bankOf(mask string) (b chunking.Bank, ok bool) {
	for _, b := range m.Banks {
		if b.Mask() == mask {
			return b, true
		}
	}
	return b, false
}

// copyRows copies the rows of the held positions into a slot [K, S, width]; its other rows stay as they are.
func copyRows(dst swa.Slot, view swa.View, at place, held swa.Span) {
	for g := range len(dst.Data) / (dst.Rows * dst.Width) {
		head := view.Head(g)
		load := func(row, p int) { head.Load(dst.Data[(g*dst.Rows+row)*dst.Width:][:head.Dim()], p, 1) }
		for p := range min(at.sinks, held.Hi) {
			load(p, p)
		}
		for p := max(at.base+at.sinks, held.Lo); p < held.Hi; p++ {
			load(p-at.base, p)
		}
	}
}
