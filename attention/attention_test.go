package attention

import (
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/arith"
	"anelab/swa"
)

// seen lists the positions a query at pos sees.
func seen(p Policy, pos int) []int {
	var all []int
	for _, s := range p.Visible(nil, 0, pos) {
		for i := s.Lo; i < s.Hi; i++ {
			all = append(all, i)
		}
	}
	return all
}

func TestSWA01WindowIsExactlyW(t *testing.T) { // hand: key allowed iff q−W < k ≤ q
	require.Equal(t, []int{7, 8, 9, 10}, seen(Sliding{4}, 10))
	require.Equal(t, []int{0, 1}, seen(Sliding{4}, 1))
	for pos, lo := range map[int]int{511: 0, 512: 1, 513: 2} {
		got := seen(Sliding{512}, pos)
		require.Len(t, got, 512)
		require.Equal(t, []int{lo, pos}, []int{got[0], got[511]})
	}
	require.Len(t, seen(Full{}, 700), 701)
}

func TestWindowAtLeastTheSequenceIsFull(t *testing.T) { // invariant
	for pos := range 9 {
		require.Equal(t, seen(Full{}, pos), seen(Sliding{9}, pos))
	}
}

func TestParseRoundTrip(t *testing.T) {
	for _, text := range []string{"full", "sliding:1", "sliding:512"} {
		p, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, text, p.String())
	}
	for text, want := range map[string]string{
		"slidding:4": `did you mean "sliding"?`, "sliding": "the form of sliding:512", "sliding:0": "the form of sliding:512",
		"sliding:07": "the form of sliding:512", "full:3": "the form of full", "": "one of",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestKeep(t *testing.T) {
	require.Equal(t, swa.All, Full{}.Keep())
	require.Equal(t, swa.Last(512), Sliding{512}.Keep())
}

// attend runs one query over a store filled with n rows whose key and value are given.
func attend(t *testing.T, p Policy, q []float32, k, v []float32, kvHeads, d int) (out []float32, probs map[int][]float32) {
	t.Helper()
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	n := len(k) / (kvHeads * d)
	store := swa.NewLinear(swa.Shape{KVHeads: kvHeads, HeadDim: d}, n)
	store.Stage(0, k, v)
	out, probs = make([]float32, len(q)), map[int][]float32{}
	query := Query{Pos: n - 1, Q: q, Out: out, HeadDim: d, Keys: store.Keys(), Values: store.Values(), Policy: p, Runs: Runs(p, len(q)/d, kvHeads)}
	Attend(a, query, &Scratch{}, func(h int, p []float32, _ []swa.Span) { probs[h] = append([]float32(nil), p...) })
	return out, probs
}

func TestFWD01ScaleIsOne(t *testing.T) { // hand: q·k = ±20 is peaked; 1/16 of it would be nearly flat
	_, probs := attend(t, Full{}, []float32{20}, []float32{1, -1}, []float32{0, 0}, 1, 1)
	require.InDelta(t, 1, probs[0][0], 1e-12)
}

func TestHeadsReadTheirOwnKVHead(t *testing.T) { // hand: 4 query heads over 2 kv heads, one position: the output is V
	out, _ := attend(t, Full{}, []float32{1, 1, 1, 1}, []float32{3, 5}, []float32{10, 20}, 2, 1)
	require.Equal(t, []float32{10, 10, 20, 20}, out)
}

func TestSWA11WindowHoldsOnAStoreThatKeepsEverything(t *testing.T) { // hand: 20 positions, W = 4: only 16…19 matter
	k, v := make([]float32, 20), make([]float32, 20)
	for i := range v {
		v[i] = float32(i)
		if i < 16 {
			k[i] = 100 // would win every softmax if it were seen
		}
	}
	out, probs := attend(t, Sliding{4}, []float32{1}, k, v, 1, 1)
	require.Len(t, probs[0], 4)
	require.Equal(t, []float32{17.5}, out)
}

func TestSliceOfSpans(t *testing.T) { // hand: spans 2…4 and 10…14 hold positions number 0…2 and 3…7
	spans := []swa.Span{{Lo: 2, Hi: 5}, {Lo: 10, Hi: 15}}
	var s Scratch
	for want, r := range map[[4]int][2]int{{2, 5, 10, 15}: {0, 8}, {3, 5, 10, 11}: {1, 4}, {12, 15, 0, 0}: {5, 8}, {2, 3, 0, 0}: {0, 1}} {
		got := s.Slice(spans, r[0], r[1])
		require.Equal(t, swa.Span{Lo: want[0], Hi: want[1]}, got[0])
		require.Equal(t, want[3] > 0, len(got) == 2)
		if len(got) == 2 {
			require.Equal(t, swa.Span{Lo: want[2], Hi: want[3]}, got[1])
		}
	}
}

// halves is a policy of two groups whose border is not one of KV heads.
type halves struct{ Full }

func (halves) Groups(int) []HeadGroup { return []HeadGroup{{0, 3}, {3, 8}} }

func TestRunsStopAtKVHeads(t *testing.T) { // hand: 8 query heads over 2 and over 1 KV heads
	require.Equal(t, []Run{{0, 0, 0, 4}, {0, 1, 4, 8}}, Runs(Full{}, 8, 2))
	require.Equal(t, []Run{{0, 0, 0, 3}, {1, 0, 3, 4}, {1, 1, 4, 8}}, Runs(halves{}, 8, 2))
	require.Equal(t, []Run{{0, 0, 0, 3}, {1, 0, 3, 8}}, Runs(halves{}, 8, 1))
}
