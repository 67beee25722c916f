package tokenizer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What waits is a run only after a turn, without what became stale meanwhile; what belongs into the run comes out in its place.
func TestQueueTurns(t *testing.T) { // hand
	var q queue
	q.reset()
	for _, x := range []uint64{11, 3, 7} {
		q.add(x)
	}
	_, ok := q.pop()
	require.False(t, ok, "nothing before the first turn")
	require.True(t, q.turn(func(x uint64) bool { return x == 7 }))
	x, ok := q.pop()
	require.True(t, ok)
	require.Equal(t, uint64(3), x)
	for _, x := range []uint64{23, 5, 13, 4, 17} {
		q.add(x)
	}
	var got []uint64
	for x, ok := q.pop(); ok; x, ok = q.pop() {
		got = append(got, x)
	}
	require.Equal(t, []uint64{4, 5, 11}, got)
	require.True(t, q.turn(func(x uint64) bool { return x == 13 }))
	require.Equal(t, []uint64{17, 23}, q.run)
	for range 2 {
		q.pop()
	}
	q.add(29)
	require.False(t, q.turn(func(uint64) bool { return true }), "all that waited is stale")
}
