package run

import "anelab/swa"

// The stores of verify calls hold what was there before and, on trial, the call's own K rows. Nothing of them is committed: the
// host does that with the rows it accepts.

// appended is a window [K, S, width] whose last rows are the call's own; the last of them is the newest position. Old rows stay
// until the last row of the call has seen them. Sinks in front of it are written where update_indicator says.
type appended struct {
	*swa.Port
	k, v    swa.Slot
	at      int // slot row of the first new row
	d       int
	written indicator
}

// newAppended takes slots with room for the new rows at the end.
func newAppended(k, v swa.Slot, d, first int, written indicator) *appended {
	at := k.Rows - written.tokens
	return &appended{Port: swa.NewHandoff(k, v, d, first, first-at), k: k, v: v, at: at, d: d, written: written}
}

// resized is a copy of a slot without the first rows of every head's window, and with zeros behind the last.
func resized(s swa.Slot, without, with int) swa.Slot {
	size, sinks := s.Rows*s.Width, s.Sinks*s.Width
	out := swa.Slot{Rows: s.Rows - without + with, Width: s.Width, Sinks: s.Sinks}
	for g := 0; g*size < len(s.Data); g++ {
		out.Data = append(out.Data, s.Data[g*size:g*size+sinks]...)
		out.Data = append(out.Data, s.Data[g*size+sinks+without*s.Width:(g+1)*size]...)
		out.Data = append(out.Data, make([]float32, with*s.Width)...)
	}
	return out
}

// Stage puts rows [T, K, d] behind the old ones.
func (a *appended) Stage(_ int, k, v []float32) {
	for _, to := range []struct {
		slot swa.Slot
		rows []float32
	}{{a.k, k}, {a.v, v}} {
		a.written.blend(to.slot, to.slot.Sinks, to.rows, a.d)
		heads := len(to.slot.Data) / (to.slot.Rows * to.slot.Width)
		for i := 0; i*a.d < len(to.rows); i++ {
			t, g := i/heads, i%heads
			copy(to.slot.Data[(g*to.slot.Rows+a.at+t)*to.slot.Width:], to.rows[i*a.d:(i+1)*a.d])
		}
	}
}

// indicated is a cache of every position with the new rows written where update_indicator [C, T] says:
// K·(1−Σ_t m_t) + Σ_t m_t·k_t (spec forward.md §4.10).
type indicated struct {
	*swa.Port
	k, v    swa.Slot
	d       int
	written indicator
}

func newIndicated(k, v swa.Slot, d, first int, written indicator) *indicated {
	k, v = resized(k, 0, 0), resized(v, 0, 0)
	return &indicated{Port: swa.NewHandoff(k, v, d, first, 0), k: k, v: v, d: d, written: written}
}

// Stage blends rows [T, K, d] into the cache.
func (s *indicated) Stage(_ int, k, v []float32) {
	s.written.blend(s.k, s.k.Rows, k, s.d)
	s.written.blend(s.v, s.v.Rows, v, s.d)
}

// indicator is update_indicator [C, T]: row i is written with row t of the call where marks[i·T+t] is 1.
type indicator struct {
	marks  []float32
	tokens int // T
}

// blend writes rows [T, K, d] of a call into the first n rows of every head.
func (in indicator) blend(to swa.Slot, n int, rows []float32, d int) {
	heads := len(to.Data) / (to.Rows * to.Width)
	for g := range heads {
		for i := range n {
			marks := in.marks[i*in.tokens : (i+1)*in.tokens]
			dst := to.Data[(g*to.Rows+i)*to.Width:][:to.Width]
			var written float32
			for _, m := range marks {
				written += m
			}
			for c := range dst {
				dst[c] *= 1 - written
			}
			for t, m := range marks {
				for c, x := range rows[(t*heads+g)*d:][:d] {
					dst[c] += float32(x * m)
				}
			}
		}
	}
}
