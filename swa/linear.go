package swa

// Linear keeps every row up to its capacity; position p is row p.
type Linear struct {
	shape  Shape
	k, v   cells // [C, K, d]
	next   int
	staged int
}

// NewLinear allocates room for context rows.
func NewLinear(s Shape, context int) *Linear {
	n := context * s.Width()
	return &Linear{shape: s, k: newCells(s, n), v: newCells(s, n)}
}

// Stage writes the rows behind the committed ones. The caller has checked that they fit.
func (l *Linear) Stage(first int, k, v []float32) {
	w := l.shape.Width()
	if first != l.next || len(k) != len(v) || len(k)%w != 0 || first*w+len(k) > l.k.len() {
		panic("swa: Linear.Stage: rows must follow the committed ones, have the store's width and fit the context")
	}
	l.k.put(first*w, k)
	l.v.put(first*w, v)
	l.staged = len(k) / w
}

// Keys views all keys, committed and staged.
func (l *Linear) Keys() View { return l.view(l.k) }

// Values views all values, committed and staged.
func (l *Linear) Values() View { return l.view(l.v) }

func (l *Linear) view(data cells) View {
	w, d := l.shape.Width(), l.shape.HeadDim
	s := segment{data: data, rows: max(data.len()/w, 1), rowStride: w, headStride: d}
	return View{past: s, staged: s, first: l.next, d: d}
}

// Commit accepts the staged rows.
func (l *Linear) Commit() { l.next, l.staged = l.next+l.staged, 0 }

// Next is the position after the committed rows.
func (l *Linear) Next() int { return l.next }

// Held is every committed position.
func (l *Linear) Held() Span { return Span{0, l.next} }
