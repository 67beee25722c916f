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
	data                  []float32
	base, rows            int
	rowStride, headStride int
}

// View is the key rows, or the value rows, that a call may read: committed ones and the staged ones of the call itself.
type View struct {
	past, staged segment
	first        int // first staged position
	head, d      int
}

// Head narrows the view to one KV head.
func (v View) Head(g int) View {
	v.head = g
	return v
}

// Row is the row of absolute position p of the selected head: [d]. The position must be held or staged.
func (v View) Row(p int) []float32 {
	rows, _, _ := v.Run(p, 1)
	return rows[:v.d:v.d]
}

// Run is the longest stretch of evenly spaced rows from position p on, at most n: row i starts at rows[i·stride] and has d
// values.
func (v View) Run(p, n int) (rows []float32, stride, count int) {
	s := &v.past
	if p >= v.first {
		s = &v.staged
	} else {
		n = min(n, v.first-p)
	}
	at := p - s.base
	if at >= s.rows {
		at %= s.rows
	}
	n = min(n, s.rows-at)
	at = at*s.rowStride + v.head*s.headStride
	return s.data[at : at+(n-1)*s.rowStride+v.d], s.rowStride, n
}
