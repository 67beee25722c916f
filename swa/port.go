package swa

// The stores in this file work on one slot of a chunk's cache port, a tensor [K, S, width] whose rows are wider than a head
// (spec forward.md §4.0: 512 for every layer); columns d and above stay zero. They belong to one call of one token, so
// there is nothing to commit.

// Slot is one layer's part of a cache port. Rows behind sinks are a window like any other.
type Slot struct {
	Data  []float32 // [K, S, width]
	Rows  int       // S
	Width int       //
	Sinks int       // the first rows of every head, which hold the first positions (spec forward.md §7.4)
}

// portSegment maps position p to slot row p − base.
func (s Slot) portSegment(base int) segment {
	return segment{data: cells{f: s.Data}, base: base, rows: s.Rows, rowStride: s.Width, headStride: s.Rows * s.Width}
}

// Port is the Store of a layer inside a chunk: a pair of cache slots that are already updated, or a hand-off from an earlier
// chunk that is only read.
type Port struct {
	k, v  Slot
	d     int
	pos   int // position of the token of this call
	base  int // position of slot row 0
	write func(s Slot, row []float32)
}

// NewShift is a right-aligned sliding cache at position pos: Stage drops the oldest row from the front and appends the new
// one, so that slot row i holds position pos − (S−1) + i (spec forward.md §4.1).
func NewShift(k, v Slot, d, pos int) *Port {
	return &Port{k: k, v: v, d: d, pos: pos, base: pos - (k.Rows - 1), write: func(s Slot, row []float32) { shiftIn(s, row, d) }}
}

// NewMasked is a left-aligned full cache at position pos; Stage writes K·(1−m) + k·m with the one-hot update mask m
// [S] (spec forward.md §4.1).
func NewMasked(k, v Slot, d, pos int, mask []float32) *Port {
	return &Port{k: k, v: v, d: d, pos: pos, write: func(s Slot, row []float32) { maskedWrite(s, row, mask, d) }}
}

// NewSinks is a window behind sinks at position pos: the new row goes into the window in any case, and into the sinks where the
// one-hot update mask [≥ sinks] says so (spec forward.md §7.4).
func NewSinks(k, v Slot, d, pos int, mask []float32) *Port {
	return &Port{k: k, v: v, d: d, pos: pos, base: pos - (k.Rows - 1), write: func(s Slot, row []float32) {
		maskedWrite(s, row, mask[:s.Sinks], d)
		shiftIn(s, row, d)
	}}
}

// NewHandoff is a donor's updated cache, read-only; base is the position of slot row 0.
func NewHandoff(k, v Slot, d, pos, base int) *Port {
	return &Port{k: k, v: v, d: d, pos: pos, base: base, write: func(Slot, []float32) {
		panic("swa: a hand-off is read-only")
	}}
}

// Stage writes the row of the call's one token.
func (p *Port) Stage(first int, k, v []float32) {
	if first != p.pos {
		panic("swa: Port.Stage: a port takes the row of its own position")
	}
	p.write(p.k, k)
	p.write(p.v, v)
}

// Keys views the updated cache.
func (p *Port) Keys() View { return p.view(p.k) }

// Values views the updated cache.
func (p *Port) Values() View { return p.view(p.v) }

func (p *Port) view(s Slot) View {
	seg := s.portSegment(p.base)
	v := View{past: seg, staged: seg, first: p.pos, d: p.d}
	if s.Sinks > 0 {
		v.sink = &sink{s.portSegment(0)}
		v.sink.rows = s.Sinks
	}
	return v
}

// Commit does nothing: the caller owns the port's buffers.
func (p *Port) Commit() {}

// Next is the position of the call's token.
func (p *Port) Next() int { return p.pos }

// Truncate cannot be asked of a port: a call of one token is all it knows.
func (p *Port) Truncate(int) error { panic("swa: Port.Truncate: a port holds one call") }

// Held is every position with a row, the call's own included; while window and sinks are apart, the window's.
func (p *Port) Held() Span {
	lo := max(p.base+p.k.Sinks, 0)
	if lo <= p.k.Sinks {
		lo = 0
	}
	return Span{lo, p.pos + 1}
}

// shiftIn moves every head's rows behind the sinks up by one and writes the new row last: row is [K, d].
func shiftIn(s Slot, row []float32, d int) {
	n := s.Rows * s.Width
	for g := 0; g*d < len(row); g++ {
		window := s.Data[g*n+s.Sinks*s.Width : (g+1)*n]
		copy(window, window[s.Width:])
		last := window[len(window)-s.Width:]
		clear(last[copy(last, row[g*d:(g+1)*d]):])
	}
}

// maskedWrite blends the new row into every slot row by its mask value, exactly as the graph does: with m one-hot the old
// row times zero is zero (or NaN where it held Inf), and −0 may become +0.
func maskedWrite(s Slot, row, mask []float32, d int) {
	n := s.Rows * s.Width
	for g := 0; g*d < len(row); g++ {
		for i, m := range mask {
			blend(s.Data[g*n+i*s.Width:][:s.Width], row[g*d:(g+1)*d], m)
		}
	}
}

// blend is dst·(1−m) + k·m, with k zero beyond its end.
func blend(dst, k []float32, m float32) {
	for c := range dst {
		var x float32
		if c < len(k) {
			x = k[c]
		}
		dst[c] = float32(dst[c]*(1-m)) + float32(x*m)
	}
}
