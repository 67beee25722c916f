package swa

// Span is a range of absolute positions [Lo, Hi).
type Span struct{ Lo, Hi int }

// Len is the number of positions.
func (s Span) Len() int { return max(s.Hi-s.Lo, 0) }

// Count is the number of positions in spans.
func Count(spans []Span) int {
	n := 0
	for _, s := range spans {
		n += s.Len()
	}
	return n
}

// segment maps positions to rows of one buffer: position p of head g is at
// data[(p−base) mod rows · rowStride + g·headStride :][:d].
type segment struct {
	data                  cells
	base, rows            int
	rowStride, headStride int
}

// View is the key rows, or the value rows, that a call may read: committed ones and the staged ones of the call itself.
type View struct {
	past, staged segment
	sink         *sink    // rows that a window has left and that stay
	groups       *grouped // rows below closed are read from here
	closed       int      //
	index        *Index   // extremes of the key rows, where the store keeps them
	first        int      // first staged position
	head         int
	column, d    int // columns [column, column+d) of a row
}

// Dim is the number of columns.
func (v View) Dim() int { return v.d }

// Head narrows the view to one KV head.
func (v View) Head(g int) View {
	v.head = g
	return v
}

// At is the view of the query at position pos: a store that quantises groups of positions keeps the newest ones as they are, and
// which ones are new depends on who asks.
func (v View) At(pos int) View {
	if v.groups != nil {
		v.closed = v.groups.closed(pos)
	}
	return v
}

// Index is what the store knows about blocks of key rows; nil where it keeps no index.
func (v View) Index() *Index { return v.index }

// Columns narrows the view to columns [lo, hi) of its rows.
func (v View) Columns(lo, hi int) View {
	v.column, v.d = v.column+lo, hi-lo
	return v
}

// Load copies the rows of positions p … p+n−1 of the selected head into dst [n, d]. They must be held or staged.
func (v View) Load(dst []float32, p, n int) {
	for ; n > 0 && p < v.closed; n-- {
		v.groups.get(dst[:v.d], p, v.head, v.column)
		dst, p = dst[v.d:], p+1
	}
	for ; n > 0; n-- {
		s := &v.past
		switch {
		case p >= v.first:
			s = &v.staged
		case v.sink != nil && p < v.sink.rows:
			s = &v.sink.segment
		}
		at := p - s.base
		if at >= s.rows {
			at %= s.rows
		}
		s.data.get(dst[:v.d], at*s.rowStride+v.head*s.headStride+v.column)
		dst, p = dst[v.d:], p+1
	}
}
