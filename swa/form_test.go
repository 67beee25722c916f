package swa

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeadBytes(t *testing.T) { // hand: d = 512, fp16: 2,048 bytes for an exact row and its value (spec forward.md §8.3)
	for want, f := range map[float64]Form{
		2048:                      {},
		2*512 + 4:                 {Bytes: true},
		256 + 4*512.0/32 + 4*16.0: {Bits: 2, Group: 32, Recent: 128}, // codes; two scales per channel and 32 positions; two per 32 channels of a value
		2 * 64 * 2:                {Rank: 64},
		4:                         {Like: 5},
	} {
		require.Equal(t, want, f.HeadBytes(512, 2), "%+v", f)
	}
}

func TestBytesRoundToTheNearestStep(t *testing.T) { // hand: largest magnitude 4: steps of fp16(4/127); every number within half of one
	s := Shape{KVHeads: 2, HeadDim: 3, Form: Form{Bytes: true}}
	for _, store := range []Store{NewLinear(s, 9), NewRing(s, 9), NewBank(s, Sinks(2, 7))} {
		k := []float32{4, -1.5, 0.01, 0, 0, 0}
		store.Stage(0, k, k)
		store.Commit()
		row := make([]float32, 3)
		store.Keys().Head(0).Load(row, 0, 1)
		for i, v := range row {
			require.InDelta(t, k[i], v, 4.0/127/2*1.001)
		}
		require.InDelta(t, 4, row[0], 0.002)
		store.Values().Head(1).Load(row, 0, 1)
		require.Equal(t, []float32{0, 0, 0}, row, "a row of zeros stays one")
		one := make([]float32, 1)
		store.Keys().Head(0).Columns(1, 2).Load(one, 0, 1)
		require.InDelta(t, -1.5, one[0], 0.016)
	}
}

func TestBytesAreRoundedToTheMode(t *testing.T) { // invariant: a number read is one of the mode's
	for _, elem := range []Elem{Float16, BFloat16} {
		s := Shape{KVHeads: 1, HeadDim: 4, Elem: elem, Form: Form{Bytes: true}}
		l := NewLinear(s, 3)
		l.Stage(0, []float32{0.7, 0.3, -0.9, 0.1}, make([]float32, 4))
		row, again := make([]float32, 4), make([]float32, 4)
		l.Keys().Load(row, 0, 1)
		copy(again, row)
		elem.round(again)
		require.Equal(t, row, again)
	}
}

// wave fills rows that differ by position and channel, channel 1 being large everywhere.
func wave(first, t int, s Shape) []float32 {
	x := make([]float32, 0, t*s.Width())
	for p := first; p < first+t; p++ {
		for c := range s.Width() {
			v := float32(math.Sin(float64(7*p + 3*c)))
			if c%s.HeadDim == 1 {
				v = 40 + v
			}
			x = append(x, v)
		}
	}
	return x
}

func TestGroupsCloseBehindTheRecentPositions(t *testing.T) { // hand: G = 4, R = 6: a query at 13 has 14 positions, 8 of them older than the last 6
	s := Shape{KVHeads: 2, HeadDim: 6, Form: Form{Bits: 4, Group: 4, Recent: 6}}
	g := NewGrouped(s, 40)
	require.Equal(t, []int{0, 0, 4, 4, 8, 8}, []int{g.keys.closed(5), g.keys.closed(8), g.keys.closed(9), g.keys.closed(12), g.keys.closed(13), g.keys.closed(16)})
	g.Stage(0, wave(0, 14, s), wave(0, 14, s))
	g.Commit()
	want := wave(0, 14, s)
	for p := range 14 {
		row := make([]float32, 6)
		g.Keys().At(13).Head(1).Load(row, p, 1)
		exact := want[p*12+6 : p*12+12]
		if p >= 8 {
			require.Equal(t, exact, row, "position %d", p)
			continue
		}
		require.NotEqual(t, exact, row, "position %d", p)
		for c, v := range row { // a channel spans at most 2: 15 steps, half of one, and fp16 of an offset near 40
			require.InDelta(t, exact[c], v, 2.0/15/2+0.02, "position %d channel %d", p, c)
		}
	}
}

func TestGroupsDoNotDependOnCalls(t *testing.T) { // invariant: what a query at p sees of j is the same however the rows came
	s := Shape{KVHeads: 1, HeadDim: 5, Form: Form{Bits: 2, Group: 3, Recent: 4}}
	read := func(lengths ...int) (all [][]float32) {
		g := NewGrouped(s, 40)
		for _, n := range lengths {
			first := g.Next()
			g.Stage(first, wave(first, n, s), wave(first, n, s))
			for p := first; p < first+n; p++ {
				row := make([]float32, (p+1)*5)
				g.Values().At(p).Load(row, 0, p+1)
				all = append(all, row)
			}
			g.Commit()
		}
		return all
	}
	want := read(23)
	for _, lengths := range [][]int{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 18}, {10, 1, 12}, {8, 8, 7}} {
		require.Equal(t, want, read(lengths...), "%v", lengths)
	}
}

func TestGroupsResume(t *testing.T) { // invariant: going on from an earlier position gives the same rows, or is refused
	s := Shape{KVHeads: 1, HeadDim: 5, Form: Form{Bits: 2, Group: 3, Recent: 4}}
	for at := range 24 {
		g, fresh := NewGrouped(s, 40), NewGrouped(s, 40)
		g.Stage(0, wave(0, 23, s), wave(0, 23, s))
		g.Commit()
		if g.Truncate(at) != nil {
			require.Less(t, at, 23)
			continue
		}
		g.Stage(at, wave(at, 5, s), wave(at, 5, s))
		fresh.Stage(0, wave(0, at+5, s), wave(0, at+5, s))
		got, want := make([]float32, (at+5)*5), make([]float32, (at+5)*5)
		g.Keys().At(at+4).Load(got, 0, at+5)
		fresh.Keys().At(at+4).Load(want, 0, at+5)
		require.Equal(t, want, got, "at %d", at)
	}
	require.ErrorContains(t, NewGrouped(s, 40).Truncate(1), "cannot go on at position 1")
}

func TestGroupsOfAShortContextStayExact(t *testing.T) { // hand: a group of 2^24 positions costs no more than the context, and never closes
	s := Shape{KVHeads: 1, HeadDim: 5, Form: Form{Bits: 2, Group: 1 << 24, Recent: 1 << 24}}
	g := NewGrouped(s, 9)
	g.Stage(0, wave(0, 9, s), wave(0, 9, s))
	g.Commit()
	rows := make([]float32, 9*5)
	g.Keys().At(8).Load(rows, 0, 9)
	require.Equal(t, wave(0, 9, s), rows)
}

func TestIndexBoundsCompleteBlocks(t *testing.T) { // hand: least and greatest of every channel over positions 4 … 7
	s := Shape{KVHeads: 2, HeadDim: 3}
	for _, lengths := range [][]int{{11}, {3, 8}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {7, 4}} {
		x := NewIndexed(NewLinear(s, 40), s, 4, 40)
		for _, n := range lengths {
			first := x.Next()
			x.Stage(first, wave(first, n, s), wave(first, n, s))
			x.Commit()
		}
		index := x.Keys().Index()
		require.Equal(t, 4, index.Block())
		require.Nil(t, x.Values().Index())
		all := wave(0, 11, s)
		for head := range 2 {
			lo, hi := index.Bounds(1, head)
			for c := range 3 {
				least, most := float32(math.Inf(1)), float32(math.Inf(-1))
				for p := 4; p < 8; p++ {
					v := all[p*6+head*3+c]
					least, most = min(least, v), max(most, v)
				}
				require.Equal(t, []float32{least, most}, []float32{lo[c], hi[c]}, "%v", lengths)
			}
		}
	}
}
