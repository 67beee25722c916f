package speculate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookup(t *testing.T) { // hand
	for _, c := range []struct {
		name string
		n    int
		seen []int
		most int
		want []int
	}{
		{"nothing seen", 3, nil, 3, nil},
		{"one token", 3, []int{5}, 3, nil},
		{"never before", 3, []int{1, 2, 3}, 3, nil},
		{"two tokens match", 3, []int{7, 8, 9, 4, 7, 8}, 2, []int{9, 4}},
		{"the last of two places", 3, []int{7, 8, 1, 7, 8, 2, 7, 8}, 1, []int{2}},
		{"a longer match wins over a later one", 3, []int{1, 2, 3, 5, 3, 6, 1, 2, 3}, 1, []int{5}},
		{"no more than was said", 3, []int{4, 4}, 3, []int{4}},
		{"a loop", 2, []int{1, 2, 1, 2, 1}, 4, []int{2, 1}},
		{"one token only", 1, []int{9, 1, 2, 9}, 5, []int{1, 2, 9}},
	} {
		l := NewLookup(c.n)
		l.See(c.seen...)
		require.Equal(t, c.want, l.Draft(c.most), c.name)
	}
	require.PanicsWithValue(t, "speculate: a lookup compares at least one token", func() { NewLookup(0) })
}

func TestSuffix(t *testing.T) { // hand
	for _, c := range []struct {
		name  string
		depth int
		seen  []int
		most  int
		want  []int
	}{
		{"nothing seen", 4, nil, 3, nil},
		{"one token", 4, []int{5}, 3, nil},
		{"never before", 4, []int{1, 2, 3}, 3, nil},
		{"two to one", 4, []int{7, 1, 9, 7, 2, 8, 7, 1, 6, 7}, 1, []int{1}},
		{"the newer of equals", 4, []int{7, 1, 7, 2, 7}, 1, []int{2}},
		{"context decides against counts", 4, []int{5, 7, 2, 0, 7, 1, 3, 7, 1, 4, 5, 7}, 1, []int{2}},
		{"past its depth", 3, []int{1, 2, 3, 4, 5, 6, 1, 2}, 4, []int{3, 4, 5, 6}},
		{"stops where nothing followed", 4, []int{1, 2, 3, 1}, 5, []int{2, 3, 1, 2, 3}},
	} {
		s := NewSuffix(c.depth)
		s.See(c.seen...)
		require.Equal(t, c.want, s.Draft(c.most), c.name)
	}
	require.PanicsWithValue(t, "speculate: a suffix tree needs paths of two tokens and more", func() { NewSuffix(1) })
}

// hand: eleven continuations seen once each: none is likelier than a tenth, and none is drafted.
func TestSuffixIsSilentWhereNothingIsLikely(t *testing.T) {
	s := NewSuffix(4)
	for i := range 11 {
		s.See(50, i)
	}
	s.See(50)
	require.Empty(t, s.Draft(3))
	s.See(0, 77, 50)
	require.Equal(t, []int{0}, s.Draft(1), "2 of 12")
}

// invariant: seeing a text at once or token by token is the same, and the tree counts every path as often as it occurs.
func TestSuffixCountsOccurrences(t *testing.T) {
	text := []int{1, 2, 1, 2, 3, 1, 2, 1, 1, 2, 3, 3, 2, 1}
	s, steps := NewSuffix(4), NewSuffix(4)
	s.See(text...)
	for _, x := range text {
		steps.See(x)
	}
	for n := 1; n <= 4; n++ {
		for i := 0; i+n <= len(text); i++ {
			want := 0
			for j := 0; j+n <= len(text); j++ {
				if equal(text[i:i+n], text[j:j+n]) {
					want++
				}
			}
			require.Equal(t, want, s.find(text[i:i+n]).count)
			require.Equal(t, want, steps.find(text[i:i+n]).count)
		}
	}
	require.Nil(t, s.find([]int{1, 2, 1, 2, 3}), "deeper than the tree")
}

func equal(a, b []int) bool { return Parted(a, b) == len(a) }

// fuzz: no sequence makes a drafter say more than was asked for or something that was never seen.
func FuzzDrafters(f *testing.F) {
	f.Add([]byte{1, 2, 3, 1, 2}, 3)
	f.Add([]byte{0, 0, 0, 0}, 9)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		most = max(0, most%20)
		for _, d := range []Drafter{NewLookup(3), NewSuffix(5)} {
			known := map[int]bool{}
			for _, b := range text {
				d.See(int(b))
				known[int(b)] = true
				draft := d.Draft(most)
				require.LessOrEqual(t, len(draft), most)
				for _, x := range draft {
					require.True(t, known[x])
				}
			}
		}
	})
}
