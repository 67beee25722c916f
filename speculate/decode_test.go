package speculate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/gemmatest"
	"anelab/internal/shareddata"
	"anelab/parity/golden"
	"anelab/quality"
)

var background = context.Background()

// subject is a model with prompts.
type subject struct {
	model   *gemma4.Model
	load    func(mode Mode) *gemma4.Model
	plan    *chunking.Plan
	prompts [][]int
	context int
}

func load(t testing.TB, c gemma4.Config, src gemma4.Source, mode, layout string, context int) subject {
	t.Helper()
	a, err := arith.New(mode, 2)
	require.NoError(t, err)
	cm, err := chunking.NewModel(c)
	require.NoError(t, err)
	l, ok := cm.Preset(layout)
	require.True(t, ok)
	l.Context = context
	p, err := l.Plan(cm)
	require.NoError(t, err)
	loaded := map[Mode]*gemma4.Model{}
	s := subject{plan: p, context: context}
	s.load = func(mode Mode) *gemma4.Model {
		if loaded[mode] == nil {
			policies, err := Policies(p, mode)
			require.NoError(t, err)
			loaded[mode], err = gemma4.Load(c, src, a, gemma4.Options{Policies: policies})
			require.NoError(t, err)
		}
		return loaded[mode]
	}
	s.model = s.load(Clean)
	return s
}

// repetitive prompts are what drafters live on; the others are what they fail on.
func prompts(vocab int) [][]int {
	rng := rand.New(rand.NewPCG(7, 11))
	var loop, noise []int
	for i := range 31 {
		loop = append(loop, (i%5)*13%vocab)
		noise = append(noise, rng.IntN(vocab))
	}
	return [][]int{loop, noise, append(slices.Clone(noise[:12]), noise[:12]...), {3}}
}

func small(t testing.TB, mode string) subject {
	s := load(t, gemmatest.Config(), gemmatest.New(gemmatest.Config(), 1), mode, "@4way", 96)
	s.prompts = prompts(101)
	return s
}

// greedy is plain decoding.
func (s subject) greedy(t testing.TB, prompt []int, n int) []int {
	t.Helper()
	st, err := s.model.NewState(s.context)
	require.NoError(t, err)
	var tokens []int
	for token, err := range st.Generate(background, prompt, n) {
		require.NoError(t, err)
		tokens = append(tokens, token)
	}
	return tokens
}

func (s subject) whole(t testing.TB) Target {
	w, err := NewWhole(s.model, s.context)
	require.NoError(t, err)
	return w
}

func (s subject) chunked(t testing.TB, mode Mode) Target {
	c, err := NewChunked(s.model, s.load(mode), s.plan, mode)
	require.NoError(t, err)
	return c
}

// known drafts the true continuation, right every time but where wrong says.
type known struct {
	tokens []int
	at     int
	wrong  func(i int) bool
}

func (k *known) See(tokens ...int) { k.at += len(tokens) }

func (k *known) Draft(most int) []int {
	draft := slices.Clone(k.tokens[k.at:min(k.at+most, len(k.tokens))])
	for i := range draft {
		if k.wrong != nil && k.wrong(k.at+i) {
			draft[i] = (draft[i] + 1) % 50
		}
	}
	return draft
}

// drafters that a text is decoded with: two of ours, one that knows the future, one that is wrong in three of four places.
func drafters(prompt, tokens []int) map[string]Drafter {
	all := append(slices.Clone(prompt), tokens...)
	return map[string]Drafter{
		"lookup": NewLookup(3), "suffix": NewSuffix(6), "known": &known{tokens: all},
		"mostly wrong": &known{tokens: all, wrong: func(i int) bool { return i%4 != 0 }},
	}
}

// invariant: with clean verify calls the tokens are those of plain decoding, whatever is drafted, far past the window of 7, whole
// and in chunks, in every mode.
func TestCleanIsGreedy(t *testing.T) {
	for _, mode := range arith.Modes {
		s := small(t, mode)
		for i, prompt := range s.prompts {
			const n = 20
			want := s.greedy(t, prompt, n)
			for name := range drafters(nil, nil) {
				for _, drafts := range []int{3, 1, 8} {
					if drafts != 3 && mode != "f32" {
						continue
					}
					r, err := Decode(background, s.whole(t), drafters(prompt, want)[name], prompt, Length{n, drafts})
					require.NoError(t, err)
					require.Equal(t, want, r.Tokens, "%s, prompt %d, %s, %d drafts", mode, i, name, drafts)
				}
			}
			r, err := Decode(background, s.chunked(t, Clean), drafters(prompt, want)["mostly wrong"], prompt, Length{n, 3})
			require.NoError(t, err)
			require.Equal(t, want, r.Tokens, "%s, prompt %d in chunks", mode, i)
		}
	}
}

// hand: a drafter that knows the future is accepted everywhere: 41 tokens behind the first in calls of 4, and one call that has
// room for none.
func TestKnownFutureIsAccepted(t *testing.T) {
	s := small(t, "f32")
	want := s.greedy(t, s.prompts[0], 42)
	r, err := Decode(background, s.whole(t), drafters(s.prompts[0], want)["known"], s.prompts[0], Length{42, 3})
	require.NoError(t, err)
	require.Equal(t, Profile{Calls: 11, Verifies: 10, Reached: []int{10, 10, 10}, Proposed: []int{10, 10, 10}, Accepted: []int{10, 10, 10}}, r.Profile)
	require.Equal(t, []float64{1, 1, 1}, r.Profile.Acceptance())
}

// invariant: acceptance by position is all that the yield depends on: the cost model's formula gives the tokens per call that
// were counted, as long as every call had room.
func TestProfileFeedsTheCostModel(t *testing.T) {
	s := small(t, "f32")
	for i, prompt := range s.prompts {
		want := s.greedy(t, prompt, 60)
		for name, d := range drafters(prompt, want) {
			p, err := Decode(background, s.whole(t), d, prompt, Length{60, 3})
			require.NoError(t, err)
			if p.Profile.Calls-p.Profile.Reached[0] > 0 {
				continue // a call at the end had no room
			}
			expected := anesim.Acceptance{PerPosition: p.Profile.Acceptance()}.Tokens(3)
			require.InDelta(t, p.Profile.TokensPerCall(), expected, 0.15, "prompt %d, %s", i, name)
		}
	}
	p := Profile{Calls: 4, Reached: []int{4, 3}, Accepted: []int{3, 1}}
	require.InDelta(t, 2.0, p.TokensPerCall(), 1e-12) // hand: 4 of its own, 3 + 1 drafts
	require.InDelta(t, 2.0, anesim.Acceptance{PerPosition: p.Acceptance()}.Tokens(2), 1e-12)
}

// invariant: while everything fits the window, shifting loses nothing; past it rows differ, and the last row, which keeps its own
// window, least often. With every draft accepted, a call that writes its rows itself is a shifted one.
func TestOtherModesPartPastTheWindow(t *testing.T) {
	s := small(t, "f32")
	short := []int{5, 9}
	want := s.greedy(t, short, 5) // seven positions at most
	for _, mode := range []Mode{Shifted, Contaminated} {
		r, err := Decode(background, s.chunked(t, mode), drafters(short, want)["known"], short, Length{5, 2})
		require.NoError(t, err)
		require.Equal(t, want, r.Tokens, mode)
	}

	count := func(mode Mode, drafter string) (c Counts) {
		for _, prompt := range s.prompts {
			const n = 48
			want := s.greedy(t, prompt, n)
			w := Watch(s.chunked(t, mode), s.whole(t))
			r, err := Decode(background, w, drafters(prompt, want)[drafter], prompt, Length{n, 3})
			require.NoError(t, err)
			c.Add(w.Counts)
			if slices.Equal(r.Tokens, want) {
				require.Equal(t, n, Parted(r.Tokens, want))
			} else {
				require.Less(t, Parted(r.Tokens, want), n)
			}
		}
		t.Logf("%s, %s: %v of %v rows differ", mode, drafter, c.Differ, c.Rows)
		return c
	}
	clean := count(Clean, "mostly wrong")
	require.Zero(t, total(clean.Differ))
	shifted, contaminated := count(Shifted, "mostly wrong"), count(Contaminated, "mostly wrong")
	require.Positive(t, total(shifted.Differ))
	require.Greater(t, total(contaminated.Differ)*total(shifted.Rows), total(shifted.Differ)*total(contaminated.Rows), "rejected rows in the windows do more harm")

	// A prompt is taken in the same way, whatever verify call came before it.
	again := s.chunked(t, Shifted)
	for _, prompt := range s.prompts[:2] {
		first, err := again.Start(background, prompt)
		require.NoError(t, err)
		require.Equal(t, s.greedy(t, prompt, 1)[0], first)
	}

	for _, prompt := range s.prompts {
		var runs [][]int
		for _, mode := range []Mode{Shifted, Contaminated} {
			r, err := Decode(background, s.chunked(t, mode), silent{}, prompt, Length{20, 3})
			require.NoError(t, err)
			runs = append(runs, r.Tokens)
		}
		require.Equal(t, runs[0], runs[1], "nothing drafted, nothing written")
		require.Equal(t, s.greedy(t, prompt, 20), runs[0])
	}
}

func total(counts []int) (n int) {
	for _, v := range counts {
		n += v
	}
	return n
}

// silent never drafts.
type silent struct{}

func (silent) See(...int)      {}
func (silent) Draft(int) []int { return nil }

// hand: a mode that does not exist, and nothing to decode.
func TestDecodeRefuses(t *testing.T) {
	s := small(t, "f32")
	_, err := NewChunked(s.model, s.model, s.plan, "cleen")
	require.ErrorContains(t, err, `verify: cleen; did you mean "clean"?`)
	_, err = Policies(s.plan, "dirty")
	require.ErrorContains(t, err, "verify: dirty")
	_, err = NewChunked(s.model, s.model, s.plan, Shifted)
	require.NoError(t, err)
	_, err = Decode(background, s.whole(t), silent{}, []int{1}, Length{0, 3})
	require.ErrorContains(t, err, "0 tokens with 3 drafts, want at least 1 token")
	_, err = Decode(background, s.whole(t), silent{}, nil, Length{4, 3})
	require.ErrorContains(t, err, "no tokens")
	_, err = Decode(background, s.whole(t), silent{}, []int{1}, Length{120, 3})
	require.ErrorContains(t, err, "positions, want at most 96")
}

// invariant: the last exit is the model; earlier ones need not be.
func TestExits(t *testing.T) {
	s := small(t, "f32")
	exits, err := Exits(background, s.model, s.prompts[1], 17)
	require.NoError(t, err)
	require.Len(t, exits, 10)
	require.Equal(t, Exit{Layers: 10, Match: 17, Of: 17}, exits[9])
	require.Less(t, exits[0].Match, 17)
	t.Log(exits)
}

// oracle: prompts of the goldens, continued by the tokens that Hugging Face chose.
func TestGoldenPrompts(t *testing.T) {
	dir := filepath.Join(shareddata.ModuleRoot(t), "testdata", "golden", "tiny-e2b")
	c, err := checkpoint.Open(filepath.Join(dir, "bf16"))
	require.NoError(t, err)
	defer c.Close()
	s := load(t, c.Config, c, "hf-bf16", "@3way", 64)
	f, err := golden.Open(filepath.Join(dir, "golden_bf16.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	for _, k := range f.Cases() {
		prompt := k.Prompt
		want := s.greedy(t, prompt, 30)
		for name, d := range drafters(prompt, want) {
			for _, target := range []Target{s.whole(t), s.chunked(t, Clean)} {
				if k, isKnown := d.(*known); isKnown {
					k.at = 0
				}
				r, err := Decode(background, target, d, prompt, Length{30, 3})
				require.NoError(t, err)
				require.Equal(t, want, r.Tokens, "%s with %s", k.Name, name)
				if !slices.Contains([]string{"known", "mostly wrong"}, name) {
					break // a drafter that has seen the text drafts from it
				}
			}
		}
	}
}

// oracle: the small trained model, whose text has pairs to copy: clean verify keeps every token, past its window of 32.
func TestRecallModel(t *testing.T) {
	dir := shareddata.Dir(t, "recall")
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	set, err := quality.OpenSet(filepath.Join(dir, "eval.safetensors"))
	require.NoError(t, err)
	s := load(t, c.Config, c, "f32", "@4way", 224)
	profiles := map[string]*Profile{"lookup": {}, "suffix": {}}
	counts := map[Mode]*Counts{Clean: {}, Shifted: {}, Contaminated: {}}
	const n, length = 48, 128
	for _, q := range set.Sequences[:2] {
		prompt := q.Tokens[:length]
		want := s.greedy(t, prompt, n)
		for name, d := range map[string]Drafter{"lookup": NewLookup(3), "suffix": NewSuffix(8)} {
			r, err := Decode(background, s.whole(t), d, prompt, Length{n, 3})
			require.NoError(t, err)
			require.Equal(t, want, r.Tokens, name)
			profiles[name].Add(r.Profile)
		}
		for mode, all := range counts {
			w := Watch(s.chunked(t, mode), s.whole(t))
			r, err := Decode(background, w, NewLookup(3), prompt, Length{n, 3})
			require.NoError(t, err)
			all.Add(w.Counts)
			if mode == Clean {
				require.Equal(t, want, r.Tokens, "in chunks")
			}
		}
	}
	for name, p := range profiles {
		t.Logf("%s: acceptance %.2f, %.2f tokens per call", name, p.Acceptance(), p.TokensPerCall())
		require.Greater(t, p.TokensPerCall(), 1.0)
	}
	for mode, c := range counts {
		t.Logf("%s: %v of %v rows differ", mode, c.Differ, c.Rows)
	}
	require.Zero(t, total(counts[Clean].Differ))
	require.Greater(t, total(counts[Contaminated].Differ), total(counts[Shifted].Differ))
}

func ExampleDecode() {
	c := gemmatest.Config()
	a, _ := arith.New("f32", 1)
	m, _ := gemma4.Load(c, gemmatest.New(c, 1), a, gemma4.Options{})
	target, _ := NewWhole(m, 64)
	r, err := Decode(context.Background(), target, NewLookup(3), []int{1, 2, 3, 1, 2}, Length{8, 3})
	fmt.Println(len(r.Tokens), r.Profile.Calls <= 8, err)
	// Output: 8 true <nil>
}
