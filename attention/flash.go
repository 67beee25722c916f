package attention

import (
	"fmt"
	"math"

	"anelab/internal/arith"
	"anelab/swa"
)

var _ = register("flash", "flash:1024", func(_, arg string) (Policy, error) {
	b, err := number(arg, 1)
	return Flash{Full{}, b}, err
})

// Flash is full attention computed block by block of positions with an online softmax (spec forward.md §4.8): the same value up
// to the roundings of its own, which in 16 bits are more than full attention has.
type Flash struct {
	Full
	Rows int // positions in a block, counted from position 0
}

func (f Flash) String() string { return fmt.Sprintf("flash:%d", f.Rows) }

// BlockRows is the number of positions in a block.
func (f Flash) BlockRows() int { return f.Rows }

// Blockwise is a policy whose heads go through the visible positions in blocks.
type Blockwise interface {
	Policy
	BlockRows() int
}

// guard is added to the sum before its reciprocal is taken; fp16 holds it as 1.19e-7.
const guard = 1e-7

// online is the running state of the heads of one run: greatest score m, sum ℓ of exponentials, output normalised after every
// block. Each step is one op of the graph and rounded as such.
type online struct {
	a          arith.Arithmetic
	d          int
	m, l       []float32 // [G]
	next       []float32 // [G] m with the block
	old        []float32 // [G] ℓ·α, then the share of the blocks so far
	inv        []float32 // [G] 1/(ℓ + guard)
	one, guard []float32 // [G] constants
	mixed      []float32 // [G, d] of the block
	same       []float32 // one value for a whole row
}

func newOnline(a arith.Arithmetic, heads, d int) *online {
	f := &online{a: a, d: d, mixed: make([]float32, heads*d)}
	for _, s := range []*[]float32{&f.m, &f.l, &f.next, &f.old, &f.inv, &f.one, &f.guard} {
		*s = make([]float32, heads)
	}
	for h := range heads { // −∞ and no finite stand-in: true scores may lie below any (NUM-07)
		f.m[h], f.one[h], f.guard[h] = float32(math.Inf(-1)), 1, guard
	}
	a.Store(f.guard)
	return f
}

// block adds a block that has a visible position to out [G, d]: its scores p [G, n], which it overwrites, and its values.
func (f *online) block(out, p []float32, values swa.View, spans []swa.Span) {
	a, n := f.a, len(p)/len(f.m)
	for h := range f.m {
		f.next[h] = max(f.m[h], a.Max(p[h*n:(h+1)*n]))
	}
	a.Sub(f.old, f.m, f.next)
	a.Exp(f.old, f.old)
	a.Mul(f.old, f.l, f.old)
	for h := range f.m {
		row := p[h*n : (h+1)*n]
		a.Sub(row, row, f.row(n, f.next[h]))
		a.Exp(row, row)
		f.l[h] = a.Sum(row)
	}
	a.Add(f.l, f.old, f.l)
	a.Add(f.inv, f.l, f.guard)
	a.Div(f.inv, f.one, f.inv)
	a.Mul(f.old, f.old, f.inv)
	f.m, f.next = f.next, f.m
	a.Mix(f.mixed, p, values, spans)
	for h := range f.m {
		o, mixed := out[h*f.d:(h+1)*f.d], f.mixed[h*f.d:(h+1)*f.d]
		a.Mul(o, o, f.row(f.d, f.old[h]))
		a.Mul(mixed, mixed, f.row(f.d, f.inv[h]))
		a.Add(o, o, mixed)
	}
}

// row is n times v.
func (f *online) row(n int, v float32) []float32 {
	if cap(f.same) < n {
		f.same = make([]float32, n)
	}
	f.same = f.same[:n]
	for i := range f.same {
		f.same[i] = v
	}
	return f.same
}

// blockwise runs the heads of r over the visible positions of s.spans in blocks of absolute positions. Blocks without one are
// skipped, as masked positions are everywhere.
func (q *Query) blockwise(a arith.Arithmetic, s *Scratch, r Run, rows int) {
	d := q.HeadDim
	out := q.Out[r.Lo*d : r.Hi*d]
	clear(out)
	keys, values := q.Keys.Head(r.KV).At(q.Pos), q.Values.Head(r.KV).At(q.Pos)
	f := newOnline(a, r.Hi-r.Lo, d)
	for lo := 0; lo <= q.Pos; lo += rows {
		part := clip(s.part[:0], s.spans, swa.Span{Lo: lo, Hi: lo + rows})
		s.part = part
		if n := swa.Count(part); n > 0 {
			p := s.Room((r.Hi - r.Lo) * n)
			a.Scores(p, q.Q[r.Lo*d:r.Hi*d], keys, part)
			f.block(out, p, values, part)
		}
	}
}

// clip appends to dst what of spans lies within.
func clip(dst, spans []swa.Span, within swa.Span) []swa.Span {
	for _, s := range spans {
		if c := (swa.Span{Lo: max(s.Lo, within.Lo), Hi: min(s.Hi, within.Hi)}); c.Len() > 0 {
			dst = append(dst, c)
		}
	}
	return dst
}
