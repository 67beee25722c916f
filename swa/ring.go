package swa

// Ring keeps the last W rows. Staged rows live beside the ring until they are committed, so a batch longer than the window
// never overwrites what its own first queries need.
type Ring struct {
	shape  Shape
	window int
	k, v   cells // [W, K, d]
	sk, sv cells // [T, K, d], rows of the call in progress
	next   int
	lost   int // positions below were overwritten before the sequence was truncated
}

// NewRing allocates a ring of w rows.
func NewRing(s Shape, w int) *Ring {
	if w < 1 {
		panic("swa: a ring needs at least one row")
	}
	n := w * s.Width()
	return &Ring{shape: s, window: w, k: newCells(s, n), v: newCells(s, n), sk: newCells(s, 0), sv: newCells(s, 0)}
}

// Stage keeps copies of the rows; they stay apart from the ring.
func (r *Ring) Stage(first int, k, v []float32) {
	if first != r.next || len(k) != len(v) || len(k)%r.shape.Width() != 0 {
		panic("swa: Ring.Stage: rows must follow the committed ones and have the store's width")
	}
	r.sk.resize(len(k))
	r.sv.resize(len(v))
	r.sk.put(0, k)
	r.sv.put(0, v)
}

// Keys views the held and the staged keys.
func (r *Ring) Keys() View { return r.view(r.k, r.sk) }

// Values views the held and the staged values.
func (r *Ring) Values() View { return r.view(r.v, r.sv) }

func (r *Ring) view(past, staged cells) View {
	w, d := r.shape.Width(), r.shape.HeadDim
	return View{
		past:   segment{data: past, rows: r.window, rowStride: w, headStride: d},
		staged: segment{data: staged, base: r.next, rows: max(staged.len()/w, 1), rowStride: w, headStride: d},
		first:  r.next, d: d,
	}
}

// Commit moves the staged rows into the ring; of a batch longer than the window only the last W rows.
func (r *Ring) Commit() {
	w := r.shape.Width()
	t := r.sk.len() / w
	for i := max(t-r.window, 0); i < t; i++ {
		at := (r.next + i) % r.window * w
		r.k.move(at, &r.sk, i*w, w)
		r.v.move(at, &r.sv, i*w, w)
	}
	r.next += t
	r.dropStaged()
}

// Next is the position after the committed rows.
func (r *Ring) Next() int { return r.next }

// Held is the last W committed positions, fewer at the start or after a truncation.
func (r *Ring) Held() Span { return Span{max(r.next-r.window, r.lost), r.next} }

func (r *Ring) dropStaged() {
	r.sk.resize(0)
	r.sv.resize(0)
}
