package swa

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBankKeepsSinksAndWindow(t *testing.T) { // invariant: S = 3, R = 5, whatever the calls; no position is lost or mixed up
	for _, lengths := range [][]int{{17}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 15}, {4, 13}, {9, 8}, {16, 1}} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			b := NewBank(shape, Sinks(3, 5))
			feed(b, lengths...)
			requireRows(t, b, 0, 3)
			requireRows(t, b, 12, 17)
			require.Equal(t, Span{12, 17}, b.Held())
			b.Stage(17, rows(17, 4), rows(17, 4))
			requireRows(t, b, 0, 3)
			requireRows(t, b, 13, 21)
		})
	}
}

func TestBankBeforeItsWindowMoves(t *testing.T) { // hand: 7 of 3+5 positions: all held, sinks are not counted twice
	b := NewBank(shape, Sinks(3, 5))
	feed(b, 7)
	require.Equal(t, Span{0, 7}, b.Held())
	requireRows(t, b, 0, 7)
	b.Stage(7, rows(7, 1), rows(7, 1))
	requireRows(t, b, 0, 8)
}

func TestBankResumes(t *testing.T) { // hand: 20 fed of S = 3, R = 5: the ring holds 15 … 19; going on at p needs p−4 … p−1 outside the sinks
	for at, ok := range map[int]bool{20: true, 19: true, 18: false, 10: false, 4: false, 3: true, 1: true, 0: true, 21: false, -1: false} {
		b := NewBank(shape, Sinks(3, 5))
		feed(b, 20)
		err := b.Truncate(at)
		require.Equal(t, ok, err == nil, "at %d", at)
		if ok {
			feed(b, 6)
			requireRows(t, b, max(at+1, 3), at+6)
			requireRows(t, b, 0, min(3, at+6))
		}
	}
}

func TestUnionOfRetentions(t *testing.T) { // hand
	require.Equal(t, Sinks(4, 258), Sinks(4, 256).Union(Last(258)))
	require.Equal(t, All, Sinks(4, 256).Union(All))
	require.Equal(t, 260, Sinks(4, 256).Rows(2048))
	require.Equal(t, 100, Sinks(4, 256).Rows(100))
	require.Equal(t, "first 4 and last 256", Sinks(4, 256).String())
	require.IsType(t, &Bank{}, New(Sinks(4, 8), shape, 30))
	require.IsType(t, &Linear{}, New(Sinks(4, 8), shape, 12))
	require.IsType(t, &Grouped{}, New(All, Shape{KVHeads: 1, HeadDim: 4, Form: Form{Bits: 2, Group: 4}}, 30))
	require.Panics(t, func() { NewBank(shape, Last(4)) })
}
