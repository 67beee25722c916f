package gemma4_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/gemmatest"
	"anelab/swa"
)

// with loads the small model with one policy on all full layers; of two owners where tall.
func with(t testing.TB, mode, text string, c gemma4.Config) (*gemma4.Model, error) {
	t.Helper()
	layers, err := c.Layers()
	require.NoError(t, err)
	policies := map[int]attention.Policy{}
	for _, y := range layers {
		if y.Kind == gemma4.Full && text != "" {
			policies[y.Index], err = attention.Parse(text)
			require.NoError(t, err)
		}
	}
	a, err := arith.New(mode, 1)
	require.NoError(t, err)
	return gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{Policies: policies})
}

// tall has two full layers with rows of their own: 4 and 9; 14 reads those of 9.
func tall() gemma4.Config {
	c := gemmatest.Config()
	c.NumHiddenLayers = 15
	c.LayerTypes = append(c.LayerTypes, c.LayerTypes[:5]...)
	return c
}

// scored is the logits after every token, fed in calls of the given length.
func scored(t testing.TB, m *gemma4.Model, tokens []int, length int) [][]float32 {
	t.Helper()
	s := newState(t, m, len(tokens))
	s.SetBatch(length)
	var all [][]float32
	require.NoError(t, s.Score(background, tokens, func(row int, logits []float32) error {
		require.Equal(t, len(all), row)
		all = append(all, slices.Clone(logits))
		return nil
	}))
	return all
}

// cosine of two lists of logits.
func cosine(a, b [][]float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		for k, x := range a[i] {
			ab += float64(x) * float64(b[i][k])
			aa += float64(x) * float64(x)
			bb += float64(b[i][k]) * float64(b[i][k])
		}
	}
	return ab / math.Sqrt(aa*bb)
}

func sameArgmax(a, b [][]float32) int {
	n := 0
	for i := range a {
		if gemma4.Argmax(a[i]) == gemma4.Argmax(b[i]) {
			n++
		}
	}
	return n
}

const length = 41

// seesAll are policies that show a sequence of 41 tokens whole.
var seesAll = []string{"sliding:41", "wfa:41", "wfa:2048", "stream:4+41", "stream:40+1", "stream:0+41", "duo:4+41:1010", "duo:7+41:0000", "duokv:4+41:0", "blocks:6x8", "blocks:1x41", "blocks:41x1"}

func TestWindowsAtLeastTheSequenceAreFull(t *testing.T) { // invariant: bit for bit, in every mode, whatever the store
	for _, mode := range arith.Modes {
		m, err := with(t, mode, "", tall())
		require.NoError(t, err)
		want := scored(t, m, prompt(length), length)
		for _, text := range seesAll {
			m, err := with(t, mode, text, tall())
			require.NoError(t, err, text)
			require.Equal(t, want, scored(t, m, prompt(length), 13), "%s in %s", text, mode)
		}
	}
}

// narrow are policies that hide something of 41 tokens or store rows in a form.
var narrow = []string{"wfa:9", "stream:3+5", "stream:0+6", "duo:3+5:0110", "duokv:2+7:0", "blocks:3x5", "flash:7", "full/int8", "stream:3+9/int8", "full/kivi:2g4+6", "full/kivi:4g8+0", "full/palu:11"}

func TestPoliciesPrefillEqualsSteps(t *testing.T) { // invariant: one call, calls of 13 and single steps agree bit for bit
	for _, mode := range []string{"f32", "ane"} {
		for _, text := range narrow {
			m, err := with(t, mode, text, tall())
			require.NoError(t, err, text)
			want := scored(t, m, prompt(length), length)
			require.Equal(t, want, scored(t, m, prompt(length), 13), "%s in %s", text, mode)
			if mode != "f32" {
				continue
			}
			s := newState(t, m, length)
			for i, token := range prompt(length) {
				logits, err := s.Step(background, token)
				require.NoError(t, err)
				require.Equal(t, want[i], logits, "%s in %s, token %d", text, mode, i)
			}
		}
	}
}

func TestPoliciesChangeSomething(t *testing.T) { // a policy that did nothing would pass the two tests above
	m, err := with(t, "f32", "", tall())
	require.NoError(t, err)
	full := scored(t, m, prompt(length), length)
	for _, text := range narrow {
		m, err := with(t, "f32", text, tall())
		require.NoError(t, err)
		got := scored(t, m, prompt(length), length)
		require.NotEqual(t, full[length-1], got[length-1], text)
		require.Greater(t, cosine(full, got), 0.7, text)
	}
}

func TestFlashIsFull(t *testing.T) { // invariant: past several blocks, sizes that divide nothing
	tokens := prompt(60)
	for mode, least := range map[string]float64{"f32": 0.99999999, "ane": 0.99995} { // in 16 bits every block rounds again
		m, err := with(t, mode, "", gemmatest.Config())
		require.NoError(t, err)
		full := scored(t, m, tokens, 60)
		for _, text := range []string{"flash:1", "flash:7", "flash:16", "flash:59", "flash:1024"} {
			m, err := with(t, mode, text, gemmatest.Config())
			require.NoError(t, err)
			got := scored(t, m, tokens, 60)
			require.Greater(t, cosine(full, got), least, "%s in %s", text, mode)
			if mode == "f32" {
				require.Equal(t, len(tokens), sameArgmax(full, got), text)
			}
		}
	}
}

func TestSWA16CompressedRowsAreReadBySharersAndEvicted(t *testing.T) { // invariant: W = 7, int8, the last 5 layers shared, 30 tokens
	c := gemmatest.Config()
	exact, err := with(t, "f32", "wfa:7", c)
	require.NoError(t, err)
	policies := map[int]attention.Policy{}
	for _, y := range exact.Layers {
		window := attention.Stored{Policy: attention.WFA{Window: 7}, Form: swa.Form{Bytes: true}}
		policies[y.Index] = window
	}
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	m, err := gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{Policies: policies})
	require.NoError(t, err)
	want, got := scored(t, exact, prompt(30), 30), scored(t, m, prompt(30), 30)
	require.NotEqual(t, want, got)
	require.Greater(t, cosine(want, got), 0.99, "within the error of 8 bits, also past the window")
	require.Equal(t, got, scored(t, m, prompt(30), 4))
	require.Less(t, m.KVBytes(30), exact.KVBytes(30)/2, "bytes are stored, not float32")
}

func TestKVS05SharersReadWithTheDonorsParameters(t *testing.T) { // invariant: layer 9 shares the rows of 4, 5 to 8 those of 3; each sees exactly its donor's numbers
	for _, text := range []string{"full/int8", "full/kivi:2g4+6"} {
		m, err := with(t, "f32", text, gemmatest.Config())
		require.NoError(t, err)
		s, last := newState(t, m, 30), map[int][]float32{}
		_, err = s.Prefill(background, prompt(29))
		require.NoError(t, err)
		s.Listen(func(tap gemma4.Tap) {
			if tap.Point == gemma4.PointK {
				last[tap.Layer] = slices.Clone(tap.Data)
			}
		})
		_, err = s.Step(background, 7)
		require.NoError(t, err)
		for _, y := range m.Layers {
			require.Equal(t, last[y.KVSource], last[y.Index], "layer %d", y.Index)
		}
	}
}

func TestSWA15TruncationChangesNothingWhereOneStoreCannot(t *testing.T) { // layer 4 keeps 20 rows and could go back further than the sliding layers
	m, err := with(t, "f32", "wfa:20", gemmatest.Config())
	require.NoError(t, err)
	s := newState(t, m, 60)
	_, err = s.Prefill(background, prompt(30))
	require.NoError(t, err)
	var moved *swa.ErrWindowMoved
	require.ErrorAs(t, s.Truncate(20), &moved)
	for l := range m.Layers {
		if st := s.Store(l); st != nil {
			require.Equal(t, 30, st.Next(), "layer %d", l)
		}
	}
}

func TestDonorKeepsWhatItsReadersNeed(t *testing.T) { // hand: 4 streams, 9 reads the same rows with a window of 12: 3 sinks and 12 rows
	policies := map[int]attention.Policy{4: attention.Streaming{Sink: 3, Recent: 5}, 9: attention.WFA{Window: 12}}
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	c := gemmatest.Config()
	m, err := gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{Policies: policies})
	require.NoError(t, err)
	require.Equal(t, swa.Sinks(3, 12), m.Retention(4))
	require.Equal(t, scored(t, m, prompt(30), 30), scored(t, m, prompt(30), 1))
	delete(policies, 9)
	m, err = gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{Policies: policies})
	require.NoError(t, err)
	require.Equal(t, swa.All, m.Retention(4), "a reader that sees everything keeps everything")
}

func TestLowRankOfFullRankIsTheModel(t *testing.T) { // invariant: rank 20 of 20 changes nothing but the last bits; fewer directions, more error
	m, err := with(t, "f32", "", gemmatest.Config())
	require.NoError(t, err)
	full := scored(t, m, prompt(20), 20)
	last := 0.0
	for _, text := range []string{"full/palu:3", "full/palu:12", "full/palu:20"} {
		m, err := with(t, "f32", text, gemmatest.Config())
		require.NoError(t, err)
		c := cosine(full, scored(t, m, prompt(20), 20))
		require.Greater(t, c, last, text)
		last = c
	}
	require.Greater(t, last, 0.9999999)
}

func TestBorrowedDirections(t *testing.T) { // invariant: rows keep their length and take the direction of layer 4's
	c := tall()
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	p, err := attention.Parse("full/like:4")
	require.NoError(t, err)
	m, err := gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{Policies: map[int]attention.Policy{9: p}})
	require.NoError(t, err)
	own, err := with(t, "f32", "", c)
	require.NoError(t, err)
	got, want := trace(t, m, prompt(12)), trace(t, own, prompt(12))
	for i := 0; i < len(got["k.9"]); i += 20 {
		row, dir := [][]float32{got["k.9"][i : i+20]}, [][]float32{got["k.4"][i : i+20]}
		require.InDelta(t, 1, cosine(row, dir), 1e-6)
		require.InEpsilon(t, norm(want["k.9"][i:i+20]), norm(row[0]), 1e-5)
	}
	require.Equal(t, int64(12*4), m.KVBytes(12)-(own.KVBytes(12)-12*2*20*4), "a length for a key and one for a value, two bytes each")
}

func norm(x []float32) float64 {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return math.Sqrt(s)
}

func TestPoliciesThatTheModelCannotHave(t *testing.T) {
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	for _, c := range []struct {
		policies map[int]string
		want     string
	}{
		{map[int]string{4: "duo:4+8:10110101"}, "one for each of 4 query heads; for example duo:4+8:1111"},
		{map[int]string{4: "duokv:4+8:1011"}, "a KV head is stored whole or not at all, want one for each of 1 KV heads; duokv:4+8:1, or classes per query head"}, // ATT-09
		{map[int]string{14: "full/int8"}, "give the form to layer 9"},
		{map[int]string{9: "full/int8", 14: "full/kivi:2"}, "give the form to layer 9"},
		{map[int]string{4: "full/like:9"}, "an earlier full layer"},
		{map[int]string{9: "full/like:3"}, "like:4 would do"},
		{map[int]string{9: "blocks:3x5", 14: "blocks:3x6"}, "one size of blocks"},
		{map[int]string{9: "full/int8", 14: "blocks:3x6"}, "one size of blocks over exact rows"},
		{map[int]string{9: "full/palu:21"}, "at most the head's 20 numbers"},
		{map[int]string{15: "full"}, "0 to 14"},
	} {
		policies := map[int]attention.Policy{}
		for l, text := range c.policies {
			policies[l], err = attention.Parse(text)
			require.NoError(t, err)
		}
		_, err := gemma4.Load(tall(), gemmatest.New(tall(), 1), a, gemma4.Options{Policies: policies})
		require.ErrorContains(t, err, c.want)
	}
}

func TestScoreStopsWhereItIsTold(t *testing.T) {
	m := small(t, "f32")
	stop := errors.New("enough")
	rows := 0
	err := newState(t, m, 10).Score(background, prompt(10), func(row int, _ []float32) error {
		if rows++; row == 3 {
			return stop
		}
		return nil
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, 4, rows)
	err = newState(t, m, 5).Score(background, prompt(6), nil)
	require.True(t, err != nil && strings.Contains(err.Error(), "at most 5"))
}
