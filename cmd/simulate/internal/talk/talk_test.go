package talk

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/chat"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/internal/tokenizer"
)

// engine is the tiny model with its vocabulary, whole for an empty layout.
func engine(t testing.TB, layout string) *Engine {
	t.Helper()
	root := filepath.Join(shareddata.ModuleRoot(t), "testdata")
	src, err := checkpoint.Open(filepath.Join(root, "golden", "tiny-e2b", "bf16"))
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	a, err := arith.New("f32", 1)
	require.NoError(t, err)
	e := &Engine{Name: "tiny", Context: 96}
	model, err := gemma4.Load(src.Config, src, a, gemma4.Options{})
	require.NoError(t, err)
	e.Speaker = Whole{model}
	e.Tokenizer, err = tokenizer.Open(filepath.Join(root, "tokenizer", "tiny-e2b.json"))
	require.NoError(t, err)
	e.Chat, err = chat.Detect(e.Tokenizer)
	require.NoError(t, err)
	if layout != "" {
		m, err := chunking.NewModel(src.Config)
		require.NoError(t, err)
		l, err := chunking.Parse(layout, m)
		require.NoError(t, err)
		l.Context = e.Context
		plan, err := l.Plan(m)
		require.NoError(t, err)
		e.Speaker = Cut{Whole{model}, plan}
	}
	return e
}

// said is everything that a request brings.
func said(t testing.TB, e *Engine, r Request) (ids []int, text string, result Result) {
	t.Helper()
	result, err := e.Run(context.Background(), r, func(k Token) error {
		if k.ID >= 0 {
			ids = append(ids, k.ID)
		}
		text += k.Part.Content
		return nil
	})
	require.NoError(t, err)
	return ids, text, result
}

func encoded(t testing.TB, e *Engine, text string) []int {
	t.Helper()
	ids, err := e.Tokenizer.Encode(text)
	require.NoError(t, err)
	return e.Tokenizer.Prompt(ids)
}

func TestChunksSayWhatTheWholeSays(t *testing.T) { // invariant, past the window, greedy and sampled
	whole, cut := engine(t, ""), engine(t, "L0-4 | L5-7 | L8-9+head")
	for name, s := range map[string]gemma4.Sampling{"greedy": gemma4.Greedy(), "sampled": {Temperature: 1.5, TopK: 40, TopP: 0.95, Seed: 5}} {
		for _, prompt := range []string{"", "The window of a layer is short."} {
			r := Request{Prompt: encoded(t, whole, prompt), Most: 29, Sampling: s}
			want, wantText, _ := said(t, whole, r)
			got, gotText, _ := said(t, cut, r)
			require.Equal(t, want, got, "%s %q", name, prompt)
			require.Equal(t, wantText, gotText)
			require.GreaterOrEqual(t, len(want), 9, "longer than a window of 7")
		}
	}
}

func TestGreedyIsTheModelsOwnGenerate(t *testing.T) { // invariant
	e := engine(t, "")
	prompt := encoded(t, e, "Hello")
	s, err := e.Speaker.(Whole).NewState(e.Context)
	require.NoError(t, err)
	var want []int
	for id, err := range s.Generate(context.Background(), prompt, 13) {
		require.NoError(t, err)
		want = append(want, id)
	}
	got, _, result := said(t, e, Request{Prompt: prompt, Most: 13, Sampling: gemma4.Greedy()})
	require.Equal(t, want, got)
	require.Equal(t, Length, result.Finish)
	require.Equal(t, []int{len(prompt), 13, 12}, []int{result.PromptTokens, result.Tokens, result.Steps})
	require.Positive(t, result.PromptRate())
	require.Positive(t, result.GenerateRate())
}

func TestStopsEndTheAnswer(t *testing.T) { // hand, from the model's own answer
	e := engine(t, "")
	r := Request{Prompt: encoded(t, e, "Hello"), Most: 30, Sampling: gemma4.Sampling{Temperature: 2, TopP: 1, Seed: 11}}
	ids, text, _ := said(t, e, r)
	require.Greater(t, len(text), 12)

	r.Stops = []string{"not there at all", text[4:8]}
	_, short, result := said(t, e, r)
	before, _, _ := strings.Cut(text, text[4:8])
	require.Equal(t, before, short)
	require.Equal(t, Stopped, result.Finish)

	r.Stops = []string{text + "more"}
	_, all, result := said(t, e, r)
	require.Equal(t, text, all, "what was held back comes in the end")
	require.Equal(t, Length, result.Finish)

	r.Stops = nil
	e.Speaker.(Whole).Config.EOSTokenID = gemma4.IntList{ids[5]}
	got, _, result := said(t, e, r)
	require.Equal(t, Stopped, result.Finish)
	require.NotContains(t, got, ids[5])
	require.Equal(t, len(got), result.Tokens)
}

func TestRunRefuses(t *testing.T) { // hand
	e := engine(t, "")
	for name, c := range map[string]struct {
		r    Request
		want string
	}{
		"no prompt":       {Request{Most: 1}, "prompt: no tokens"},
		"nothing asked":   {Request{Prompt: []int{2}}, "max_tokens: 0, want at least 1"},
		"overflow":        {Request{Prompt: make([]int, 90), Most: 7}, "context: 90 tokens of prompt and 7 to generate, want at most 96 together"},
		"sampling":        {Request{Prompt: []int{2}, Most: 1, Sampling: gemma4.Sampling{Temperature: math.NaN()}}, "temperature"},
		"id of no row":    {Request{Prompt: []int{2, 320}, Most: 1}, "token 1: id 320"},
		"id is negative":  {Request{Prompt: []int{-1}, Most: 1}, "id -1"},
		"id, cut in half": {Request{Prompt: []int{320}, Most: 1}, "id 320"},
	} {
		_, err := e.Run(context.Background(), c.r, func(Token) error { return nil })
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := engine(t, "L0-9+head").Run(context.Background(), Request{Prompt: []int{320}, Most: 1}, func(Token) error { return nil })
	require.ErrorContains(t, err, "id 320")
	require.NoError(t, e.Fits(90, 6))
	require.Zero(t, e.Room(97))
}

func TestCancellationAndErrorsEndIt(t *testing.T) { // hand
	for _, layout := range []string{"", "@2way"} {
		e := engine(t, layout)
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		_, err := e.Run(ctx, Request{Prompt: []int{2}, Most: 90, Sampling: gemma4.Greedy()}, func(Token) error {
			if n++; n == 3 {
				cancel()
			}
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 3, n, "not one token more")
	}
	gone := errors.New("the reader is gone")
	_, err := engine(t, "").Run(context.Background(), Request{Prompt: []int{2}, Most: 90}, func(Token) error { return gone })
	require.ErrorIs(t, err, gone)
}

func TestWithoutVocabulary(t *testing.T) { // hand
	e := engine(t, "")
	want, _, _ := said(t, e, Request{Prompt: []int{2, 7}, Most: 5})
	e.Tokenizer, e.Chat = nil, nil
	got, text, _ := said(t, e, Request{Prompt: []int{2, 7}, Most: 5})
	require.Equal(t, want, got)
	require.Empty(t, text)
}

func TestStopper(t *testing.T) { // hand
	for name, c := range map[string]struct {
		stops, pushes, want []string
		stopped             bool
	}{
		"none":                   {nil, []string{"ab", "c"}, []string{"ab", "c", ""}, false},
		"in one piece":           {[]string{"b"}, []string{"abc"}, []string{"a"}, true},
		"across pieces":          {[]string{"bcd"}, []string{"ab", "c", "de"}, []string{"a", "", ""}, true},
		"not after all":          {[]string{"bcd"}, []string{"ab", "c", "x"}, []string{"a", "", "bcx", ""}, false},
		"held at the end":        {[]string{"bcd"}, []string{"abc"}, []string{"a", "bc"}, false},
		"the earliest of two":    {[]string{"d", "bc"}, []string{"abcd"}, []string{"a"}, true},
		"a beginning in another": {[]string{"aab"}, []string{"aa", "ab"}, []string{"", "a"}, true},
		"whole characters":       {[]string{"é!"}, []string{"xé", "?"}, []string{"x", "é?", ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStopper(c.stops)
			var got []string
			stopped := false
			for _, p := range c.pushes {
				var shown string
				shown, stopped = s.push(p)
				got = append(got, shown)
			}
			if !stopped {
				got = append(got, s.flush())
			}
			require.Equal(t, c.stopped, stopped)
			require.Equal(t, c.want, got)
		})
	}
}

func TestLogProbs(t *testing.T) { // hand: probabilities 1/2, 1/4, 1/4
	ln2 := float32(math.Ln2)
	p, top := logProbs([]float32{5 - ln2, 5, 5 - ln2}, 2, 2)
	require.InDelta(t, -2*math.Ln2, p, 1e-6)
	require.Len(t, top, 2)
	require.Equal(t, []int{1, 0}, []int{top[0].ID, top[1].ID})
	require.InDelta(t, -math.Ln2, top[0].LogProb, 1e-6)
	_, none := logProbs([]float32{1, 2}, 0, 0)
	require.Empty(t, none)
	_, all := logProbs([]float32{1, 2}, 0, 9)
	require.Len(t, all, 2)
}
