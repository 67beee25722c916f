package swa

// Bank keeps the first S rows of the sequence and the last R (spec forward.md §7.4). A position below S is read from the sinks
// for ever, also while it is still among the last R, so no key is seen twice.
type Bank struct {
	Ring
	keys, values *sink
}

// sink is the memory of the first rows; position p is row p.
type sink struct{ segment }

// NewBank allocates the rows of a retention with sinks.
func NewBank(s Shape, r Retention) *Bank {
	if r.Sink < 1 {
		panic("swa: a bank needs at least one sink row")
	}
	first := func() *sink {
		w := s.Width()
		return &sink{segment{data: newCells(s, r.Sink*w), rows: r.Sink, rowStride: w, headStride: s.HeadDim}}
	}
	return &Bank{Ring: *NewRing(s, r.Last), keys: first(), values: first()}
}

// Keys views sinks, window and staged rows.
func (b *Bank) Keys() View {
	v := b.Ring.Keys()
	v.sink = b.keys
	return v
}

// Values views sinks, window and staged rows.
func (b *Bank) Values() View {
	v := b.Ring.Values()
	v.sink = b.values
	return v
}

// Commit moves the staged rows into the window, and those of the first S positions into the sinks as well.
func (b *Bank) Commit() {
	w := b.shape.Width()
	for p := b.next; p < min(b.next+b.sk.len()/w, b.keys.rows); p++ {
		b.keys.data.move(p*w, &b.sk, (p-b.next)*w, w)
		b.values.data.move(p*w, &b.sv, (p-b.next)*w, w)
	}
	b.Ring.Commit()
}

// Held is every committed position while window and sinks meet, then the window's.
func (b *Bank) Held() Span {
	h := b.Ring.Held()
	if h.Lo <= b.keys.rows {
		h.Lo = 0
	}
	return h
}

// resumable wants those of the R−1 rows before p that are outside the sinks.
func (b *Bank) resumable(p int) error {
	needed := max(p-(b.window-1), b.keys.rows)
	if p > b.next || p < 0 || (p < b.next && needed < min(p, b.Ring.Held().Lo)) {
		return &ErrWindowMoved{p, b.Held()}
	}
	return nil
}

// Truncate forgets the rows from position p on, where the rows needed to go on are there.
func (b *Bank) Truncate(p int) error {
	if err := b.resumable(p); err != nil {
		return err
	}
	b.cut(p)
	return nil
}
