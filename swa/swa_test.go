package swa

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var shape = Shape{KVHeads: 2, HeadDim: 3}

// rows of t tokens from position first on: value = 100·position + 10·head + column, so every row names its position.
func rows(first, t int) []float32 {
	x := make([]float32, 0, t*shape.Width())
	for p := first; p < first+t; p++ {
		for g := range shape.KVHeads {
			for c := range shape.HeadDim {
				x = append(x, float32(100*p+10*g+c))
			}
		}
	}
	return x
}

// feed stages and commits calls of the given lengths.
func feed(s Store, lengths ...int) {
	for _, t := range lengths {
		s.Stage(s.Next(), rows(s.Next(), t), rows(s.Next(), t))
		s.Commit()
	}
}

// requireRows checks that positions [lo, hi) read back as themselves in both heads.
func requireRows(t *testing.T, s Store, lo, hi int) {
	t.Helper()
	for _, view := range []View{s.Keys(), s.Values()} {
		for p := lo; p < hi; p++ {
			for g := range shape.KVHeads {
				row := make([]float32, shape.HeadDim)
				view.Head(g).Load(row, p, 1)
				require.Equal(t, float32(100*p+10*g), row[0], "position %d head %d", p, g)
			}
		}
	}
}

func TestSWA02FillOrderDoesNotMatter(t *testing.T) { // invariant: one by one = in bulk, exactly W rows held
	for _, lengths := range [][]int{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {11}, {4, 7}, {7, 4}, {10, 1}, {1, 10}} {
		r := NewRing(shape, 5)
		feed(r, lengths...)
		require.Equal(t, Span{6, 11}, r.Held(), "%v", lengths)
		requireRows(t, r, 6, 11)
	}
}

func TestSWA03SWA19BatchesSeeTheirWholeWindow(t *testing.T) {
	for _, w := range []int{1, 4, 8} {
		for _, batch := range []int{1, 2, w, w + 1, 2 * w, 2*w + 1} {
			t.Run(fmt.Sprintf("W=%d T=%d", w, batch), func(t *testing.T) {
				r := NewRing(shape, w)
				feed(r, 6)
				for range 3 {
					first := r.Next()
					r.Stage(first, rows(first, batch), rows(first, batch))
					requireRows(t, r, max(first-(w-1), 0), first+batch)
					r.Commit()
					require.LessOrEqual(t, r.Held().Len(), w)
				}
			})
		}
	}
}

func TestSWA22SlotsCarryTheirPosition(t *testing.T) { // hand: W = 4 at position 6: slots hold 4, 5, 6, 3
	r := NewRing(shape, 4)
	feed(r, 7)
	require.Equal(t, Span{3, 7}, r.Held())
	for slot, p := range []float32{4, 5, 6, 3} {
		require.Equal(t, 100*p, r.k.f[slot*shape.Width()])
	}
	r = NewRing(shape, 4)
	feed(r, 3)
	require.Equal(t, Span{0, 3}, r.Held(), "slot 3 is empty and not held")
}

func TestSWA04GrowthNeverNegative(t *testing.T) { // a sequence restored at a high position with few rows goes on
	r := NewRing(shape, 8)
	feed(r, 20)
	require.NoError(t, r.Truncate(20))
	feed(r, 1)
	require.Equal(t, Span{13, 21}, r.Held())
	requireRows(t, r, 13, 21)
}

func TestSWA15ResumeOnlyWhileTheWindowIsHeld(t *testing.T) { // hand: W = 8, 30 tokens: rows 22..29 held
	for _, c := range []struct {
		at int
		ok bool
	}{{30, true}, {29, true}, {28, false}, {25, false}, {20, false}, {31, false}, {-1, false}} {
		r := NewRing(shape, 8)
		feed(r, 30)
		err := r.Truncate(c.at)
		require.Equal(t, c.ok, err == nil, "resume at %d", c.at)
		if !c.ok {
			require.ErrorContains(t, err, "only rows 22 to 29")
			continue
		}
		requireRows(t, r, c.at-7, c.at)
		feed(r, 3)
		requireRows(t, r, c.at-4, c.at+3)
	}
	r := NewRing(shape, 8)
	feed(r, 30)
	require.NoError(t, r.Truncate(29))
	require.Equal(t, Span{22, 29}, r.Held(), "row 21 was overwritten by row 29")
	require.Error(t, r.Truncate(28))
	l := NewLinear(shape, 30)
	feed(l, 30)
	require.NoError(t, l.Truncate(7))
	feed(l, 2)
	requireRows(t, l, 0, 9)
	require.Error(t, l.Truncate(10))
}

func TestStagedRowsVanishWithoutCommit(t *testing.T) { // KVS-09: readers see the call's rows, the past sees nothing before Commit
	for _, s := range []Store{NewRing(shape, 4), NewLinear(shape, 16)} {
		feed(s, 5)
		held := s.Held()
		s.Stage(5, rows(5, 3), rows(5, 3))
		requireRows(t, s, 5, 8)
		require.Equal(t, held, s.Held())
		require.Equal(t, 5, s.Next())
		require.NoError(t, s.Truncate(5))
		s.Stage(5, rows(5, 1), rows(5, 1))
		s.Commit()
		require.Equal(t, 6, s.Next())
		requireRows(t, s, 3, 6)
	}
}

func TestShiftPort(t *testing.T) { // hand: right-aligned, W = 4; positions before 0 are never held
	w, width := 4, 5
	k := Slot{Data: make([]float32, shape.KVHeads*w*width), Rows: w, Width: width}
	v := Slot{Data: make([]float32, shape.KVHeads*w*width), Rows: w, Width: width}
	for p := range 9 {
		s := NewShift(k, v, shape.HeadDim, p)
		s.Stage(p, rows(p, 1), rows(p, 1))
		require.Equal(t, Span{max(p-3, 0), p + 1}, s.Held())
		requireRows(t, s, max(p-3, 0), p+1)
	}
	for slot := range w { // row i of head 1 holds position 5+i, columns 3 and 4 stay zero
		row := k.Data[(w+slot)*width:][:width]
		require.Equal(t, []float32{float32(100*(5+slot) + 10), float32(100*(5+slot) + 11), float32(100*(5+slot) + 12), 0, 0}, row)
	}
}

func TestMaskedPort(t *testing.T) { // hand: left-aligned, one-hot write, other rows untouched
	c, width := 5, 4
	k := Slot{Data: make([]float32, shape.KVHeads*c*width), Rows: c, Width: width}
	v := Slot{Data: make([]float32, shape.KVHeads*c*width), Rows: c, Width: width}
	for p := range c {
		mask := make([]float32, c)
		mask[p] = 1
		s := NewMasked(k, v, shape.HeadDim, p, mask)
		s.Stage(p, rows(p, 1), rows(p, 1))
		requireRows(t, s, 0, p+1)
	}
	handoff := NewHandoff(k, v, shape.HeadDim, 4, 0)
	requireRows(t, handoff, 0, 5)
	require.Panics(t, func() { handoff.Stage(4, rows(4, 1), rows(4, 1)) })
}

func TestRetention(t *testing.T) {
	require.Equal(t, All, All.Union(Last(4)))
	require.Equal(t, Last(7), Last(7).Union(Last(4)))
	require.IsType(t, &Ring{}, New(Last(7), shape, 30))
	require.IsType(t, &Linear{}, New(Last(7), shape, 7))
	require.IsType(t, &Linear{}, New(All, shape, 7))
	require.Equal(t, "last 7", Last(7).String())
	require.Equal(t, 5, All.Rows(5))
	require.Equal(t, 4, Last(4).Rows(5))
}

func TestMisusePanics(t *testing.T) {
	r, l := NewRing(shape, 4), NewLinear(shape, 4)
	require.Panics(t, func() { r.Stage(1, rows(1, 1), rows(1, 1)) })
	require.Panics(t, func() { r.Stage(0, rows(0, 1)[:5], rows(0, 1)[:5]) })
	require.Panics(t, func() { l.Stage(0, rows(0, 5), rows(0, 5)) })
	require.Panics(t, func() { NewRing(shape, 0) })
}

func TestLoadSpansTheWrap(t *testing.T) { // invariant: rows loaded together are the rows, across the wrap and the staged border
	for _, elem := range []Elem{Float32, Float16, BFloat16} {
		shape := Shape{KVHeads: 2, HeadDim: 3, Elem: elem}
		r := NewRing(shape, 5)
		small := func(first, t int) []float32 { // exact in 16 bits
			x := rows(first, t)
			for i := range x {
				x[i] = float32(int(x[i]) % 100 / 10 * 4)
			}
			for i := range t {
				x[i*6] = float32(first + i)
			}
			return x
		}
		for p := range 8 {
			r.Stage(p, small(p, 1), small(p, 1))
			r.Commit()
		}
		r.Stage(8, small(8, 3), small(8, 3))
		got := make([]float32, 7*3)
		r.Keys().Load(got, 4, 7)
		for i := range 7 {
			require.Equal(t, float32(4+i), got[3*i])
		}
		column := make([]float32, 7)
		r.Keys().Columns(0, 1).Load(column, 4, 7)
		require.Equal(t, []float32{4, 5, 6, 7, 8, 9, 10}, column)
		require.Equal(t, 1, r.Keys().Columns(1, 3).Columns(1, 2).Dim())
	}
}

func TestSinksPort(t *testing.T) { // hand: two sinks, a window of three behind them; a position is read from its sink once it has one
	sinks, window, width, context := 2, 3, 4, 9
	make1 := func() Slot {
		return Slot{Data: make([]float32, shape.KVHeads*(sinks+window)*width), Rows: sinks + window, Width: width, Sinks: sinks}
	}
	k, v := make1(), make1()
	for p := range context {
		mask := make([]float32, context)
		mask[p] = 1
		s := NewSinks(k, v, shape.HeadDim, p, mask)
		s.Stage(p, rows(p, 1), rows(p, 1))
		requireRows(t, s, 0, min(sinks, p+1))
		requireRows(t, s, max(p-window+1, 0), p+1)
		want := Span{max(p-2, 0), p + 1}
		if want.Lo <= sinks {
			want.Lo = 0
		}
		require.Equal(t, want, s.Held())
	}
	var first []float32 // of head 0, slot by slot
	for i := range sinks + window {
		first = append(first, k.Data[i*width])
	}
	require.Equal(t, []float32{0, 100, 600, 700, 800}, first)
}
