package gemma4_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
	"anelab/internal/arith"
)

// try returns the logits of every row of a trial.
func try(t testing.TB, s *gemma4.State, tokens []int) [][]float32 {
	var rows [][]float32
	require.NoError(t, s.Try(context.Background(), tokens, func(row int, logits []float32) error {
		require.Equal(t, len(rows), row)
		rows = append(rows, slices.Clone(logits))
		return nil
	}))
	return rows
}

// invariant: the rows of a trial are the logits of decoding the tokens one by one, before, on and past the window of 7, and
// longer than it; whatever is accepted, the sequence goes on as if only that had been fed. All bits, all modes.
func TestTrialsAreSteps(t *testing.T) {
	ctx := context.Background()
	for _, mode := range arith.Modes {
		m := small(t, mode)
		for _, past := range []int{1, 7, 19} {
			for _, rows := range []int{1, 3, 9} {
				for accepted := 0; accepted <= rows; accepted += max(1, rows/3) {
					all := prompt(past + rows + 3)
					s, steps := newState(t, m, 64), newState(t, m, 64)
					_, err := s.Prefill(ctx, all[:past])
					require.NoError(t, err)
					_, err = steps.Prefill(ctx, all[:past])
					require.NoError(t, err)

					got := try(t, s, all[past:past+rows])
					require.Len(t, got, rows)
					require.Equal(t, past, s.Next(), "a trial leaves the sequence where it was")
					require.NoError(t, s.Accept(accepted))
					require.Equal(t, past+accepted, s.Next())
					for i := range rows {
						want, err := steps.Step(ctx, all[past+i])
						require.NoError(t, err)
						require.Equal(t, want, got[i], "%s: row %d of %d behind %d", mode, i, rows, past)
						if i+1 == accepted {
							other, err := newState(t, m, 64).Prefill(ctx, append(slices.Clone(all[:past+accepted]), 3, 1, 2))
							require.NoError(t, err)
							want := slices.Clone(other)
							more, err := s.Prefill(ctx, []int{3, 1, 2})
							require.NoError(t, err)
							require.Equal(t, want, more, "%s: after accepting %d of %d behind %d", mode, accepted, rows, past)
						}
					}
				}
			}
		}
	}
}

// invariant: any other call forgets a trial; what was not tried cannot be accepted.
func TestTrialsAreForgotten(t *testing.T) {
	ctx := context.Background()
	m := small(t, "f32")
	s := newState(t, m, 40)
	require.NoError(t, s.Accept(0))
	require.ErrorContains(t, s.Accept(1), "accept: 1 rows, want 0 to 0")
	try(t, s, prompt(3))
	require.ErrorContains(t, s.Accept(4), "4 rows, want 0 to 3")
	want := slices.Clone(logitsOf(t, m, prompt(11)[4:], 7))
	got, err := s.Prefill(ctx, prompt(11)[4:])
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Error(t, s.Accept(1))
	require.ErrorContains(t, s.Try(ctx, prompt(60), nil), "context")
}

// invariant: a sequence goes on behind a restored prefix bit for bit, past the window, however far the state has gone since, in
// any state of the model.
func TestSnapshotsAreExact(t *testing.T) {
	ctx := context.Background()
	for _, mode := range arith.Modes {
		m := small(t, mode)
		for _, n := range []int{3, 7, 16} {
			s := newState(t, m, 64)
			_, err := s.Prefill(ctx, prompt(n))
			require.NoError(t, err)
			p := s.Snapshot()
			require.Equal(t, n, p.Next())
			require.Positive(t, p.Bytes())
			want, err := s.Prefill(ctx, []int{5, 4, 3})
			require.NoError(t, err)
			want = slices.Clone(want)
			_, err = s.Prefill(ctx, prompt(21))
			require.NoError(t, err)
			for _, again := range []*gemma4.State{s, newState(t, m, 64)} {
				require.NoError(t, again.Restore(p))
				require.Equal(t, n, again.Next())
				got, err := again.Prefill(ctx, []int{5, 4, 3})
				require.NoError(t, err)
				require.Equal(t, want, got, "%s behind %d tokens", mode, n)
			}
		}
	}
	p := newState(t, small(t, "f32"), 9).Snapshot()
	require.ErrorContains(t, newState(t, small(t, "f32"), 9).Restore(p), "same model")
}

// hand: 16 positions in fp16 take less than 30, and no more than the rows.
func TestSnapshotsTakeWhatIsInUse(t *testing.T) {
	m := small(t, "ane")
	short, long := newState(t, m, 1000), newState(t, m, 1000)
	_, err := short.Prefill(context.Background(), prompt(16))
	require.NoError(t, err)
	_, err = long.Prefill(context.Background(), prompt(30))
	require.NoError(t, err)
	// Rings of 7 rows of 12 numbers in 4 layers, and one row of 20 numbers a position in layer 4; keys and values.
	require.Equal(t, int64(2*2*(4*7*12+16*20)), short.Snapshot().Bytes())
	require.Equal(t, int64(2*2*(4*7*12+30*20)), long.Snapshot().Bytes())
}

// hand: the longest strictly shorter prefix answers, and what was asked for the longest ago goes first.
func TestPrefixes(t *testing.T) {
	m := small(t, "f32")
	at := func(n int) *gemma4.Snapshot {
		s := newState(t, m, 40)
		_, err := s.Prefill(context.Background(), prompt(n))
		require.NoError(t, err)
		return s.Snapshot()
	}
	four, nine, ten := at(4), at(9), at(10)
	c := gemma4.NewPrefixes(four.Bytes() + nine.Bytes() + ten.Bytes())
	c.Keep(prompt(9), nine)
	c.Keep(prompt(4), four)
	require.True(t, nine == c.Longest(prompt(12)))
	require.True(t, four == c.Longest(prompt(9)), "an equal prompt needs a token to feed")
	require.Nil(t, c.Longest(prompt(4)))
	require.Nil(t, c.Longest([]int{99, 98, 97, 96, 95, 94}))
	c.Keep(prompt(10), ten)
	require.True(t, ten == c.Longest(prompt(11)))
	c.Keep(prompt(10), ten)
	require.True(t, ten == c.Longest(prompt(11)), "kept once")

	small := gemma4.NewPrefixes(ten.Bytes() + four.Bytes())
	small.Keep(prompt(4), four)
	small.Keep(prompt(9), nine)
	require.True(t, four == small.Longest(prompt(5))) // asked for now
	small.Keep(prompt(10), ten)                       // takes the room of nine
	require.True(t, four == small.Longest(prompt(10)))
	gemma4.NewPrefixes(1).Keep(prompt(4), four)
	require.PanicsWithValue(t, "gemma4: a snapshot kept under tokens that are not its own", func() { c.Keep(prompt(3), four) })
}
