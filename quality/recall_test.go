package quality

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/attention"
	"anelab/gemma4"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/shareddata"
)

// oracle: everything in this file is held against figures and logits that a committed Python script measured with HF weights and
// float32 arithmetic (measure_recall.py of the conformance data).

// miniature is the recall model with its evaluation set and what is expected of it.
type miniature struct {
	dir    string
	runner *Runner
	base   Unit
	want   expected
}

// scores are the figures of one setting in expected.json.
type scores struct {
	Sequences int                `json:"n_sequences"`
	Recall    float64            `json:"recall"`
	Distance  map[string]float64 `json:"recall_by_distance"`
	AnswerNLL float64            `json:"answer_nll"`
	Topic     float64            `json:"topic"`
	PPL       float64            `json:"filler_ppl"`
	Top1      float64            `json:"filler_top1"`
}

type expected struct {
	Buckets     []string                     `json:"buckets"`
	Full        scores                       `json:"full_attention"`
	WFAAll      map[string]scores            `json:"wfa_all"`
	StreamAll   map[string]scores            `json:"stream_all"`
	WFALayer    map[string]map[string]scores `json:"wfa_layer"`
	StreamLayer map[string]map[string]scores `json:"stream_layer"`
	KeepFull    map[string]scores            `json:"stream_4_32_keep_full_only"`
	Palettes    map[string]scores            `json:"palettized"`
	Mistakes    map[string]scores            `json:"known_mistakes"`
	Heads       struct {
		Sequences int     `json:"n_sequences"`
		AllFull   float64 `json:"recall_far_all_full"`
		NoneFull  float64 `json:"recall_far_all_stream"`
		Heads     []struct {
			Layer int     `json:"layer"`
			Head  int     `json:"head"`
			Alone float64 `json:"recall_far_if_only_it_streams"`
			Only  float64 `json:"recall_far_if_only_it_is_full"`
			Mass  float64 `json:"mass_on_value"`
		} `json:"per_head"`
		Kept []struct {
			Heads int     `json:"heads_full"`
			Added []int   `json:"added"`
			Far   float64 `json:"recall_far"`
			PPL   float64 `json:"filler_ppl"`
		} `json:"keep_by_mass_order"`
	} `json:"heads"`
}

func openMiniature(t *testing.T) *miniature {
	t.Helper()
	m := &miniature{dir: shareddata.Dir(t, "recall")}
	c, err := checkpoint.Open(m.dir)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	set, err := OpenSet(filepath.Join(m.dir, "eval.safetensors"))
	require.NoError(t, err)
	sum, err := Fingerprint(c.Config, c)
	require.NoError(t, err)
	m.runner = NewRunner(Inputs{Config: c.Config, Source: c, Checkpoint: sum, Set: set})
	m.base = Unit{Checkpoint: sum, Set: set.Sum, Count: len(set.Sequences), Tasks: []Task{Recall, PPL}, Mode: "f32"}
	text, err := os.ReadFile(filepath.Join(m.dir, "expected.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &m.want))
	return m
}

// policies gives layers one policy.
func policies(t *testing.T, text string, layers ...int) map[int]attention.Policy {
	t.Helper()
	all := map[int]attention.Policy{}
	for _, l := range layers {
		p, err := attention.Parse(text)
		require.NoError(t, err)
		all[l] = p
	}
	return all
}

// full are the full layers of the miniature.
var full = []int{4, 9, 14, 19}

// require compares a run with expected figures: recall and topic within a percentage point, perplexity within 0.1 %.
func (m *miniature) require(t *testing.T, name string, u Unit, want scores) {
	t.Helper()
	u.Count = want.Sequences
	s, err := m.runner.Run(context.Background(), u)
	require.NoError(t, err, name)
	m.compare(t, name, &s, want)
}

const point = 0.01

func (m *miniature) compare(t *testing.T, name string, s *Sums, want scores) {
	t.Helper()
	got := s.Figures()
	require.InDelta(t, want.Recall, got.Recall, point, "%s: recall", name)
	require.InDelta(t, want.Topic, got.Topic, point, "%s: topic", name)
	require.InEpsilon(t, want.PPL, got.PPL, 0.001, "%s: perplexity", name)
	require.InDelta(t, want.AnswerNLL, got.AnswerNLL, 1e-3+0.002*want.AnswerNLL, "%s: answer NLL", name)
	require.InDelta(t, want.Top1, got.Top1, 0.002, "%s: top 1", name)
	for i, b := range m.want.Buckets {
		require.InDelta(t, want.Distance[b], s.Recall[i].Share(), point, "%s: recall at %s", name, b)
	}
}

// TestRecallLogits holds the first two sequences of every recorded setting against HF's logits.
func TestRecallLogits(t *testing.T) {
	m := openMiniature(t)
	file, err := safetensors.Open(filepath.Join(m.dir, "logits.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	for _, c := range []struct {
		name, suffix, weights string
		attn                  map[int]attention.Policy
		within                float64
	}{
		{"full", "", Stored, nil, 1e-4},
		{"wfa_32", ".at_query_pos", Stored, policies(t, "wfa:32", full...), 1e-4},
		{"stream_4_32", ".at_query_pos", Stored, policies(t, "stream:4+32", full...), 1e-4},
		{"wfa_64_layer14", ".at_query_pos", Stored, policies(t, "wfa:64", 14), 1e-4},
		{"pal4_group32", ".at_query_pos", "int4g32", nil, 2e-3}, // entries of tables differ in the last bit of fp16 here and there
	} {
		u := m.base
		u.SetAttn(c.attn)
		require.NoError(t, u.SetWeights(c.weights, 20))
		require.NoError(t, m.runner.load(context.Background(), u))
		for i := range 2 {
			tensor, err := file.Tensor(fmt.Sprintf("%s.seq%d%s", c.name, i, c.suffix))
			require.NoError(t, err)
			want, err := tensor.Floats()
			require.NoError(t, err)
			worst := logitError(t, m.runner.model, &m.runner.in.Set.Sequences[i], want)
			require.LessOrEqual(t, worst, c.within, "%s, sequence %d", c.name, i)
			t.Logf("%s, sequence %d: largest difference %.1e", c.name, i, worst)
		}
	}
}

// logitError is the largest difference from the rows of want: all positions, or those of the questions.
func logitError(t *testing.T, m *gemma4.Model, q *Sequence, want []float32) float64 {
	t.Helper()
	rows := map[int]int{}
	for i, x := range q.Questions {
		rows[x.At] = i
	}
	all := len(want) == len(q.Tokens)*m.Config.VocabSize
	s, err := m.NewState(len(q.Tokens))
	require.NoError(t, err)
	worst := 0.0
	require.NoError(t, s.Score(context.Background(), q.Tokens, func(p int, logits []float32) error {
		row, asked := rows[p]
		if all {
			row, asked = p, true
		}
		if asked {
			for i, v := range logits {
				worst = max(worst, math.Abs(float64(v-want[row*len(logits)+i])))
			}
		}
		return nil
	}))
	return worst
}

// setting is one line of expected.json.
type setting struct {
	name    string
	attn    map[int]attention.Policy
	weights string
	want    scores
}

// settings are all lines of expected.json that a layout can ask for, in groups.
func (m *miniature) settings(t *testing.T) []setting {
	t.Helper()
	all := []setting{{"full attention", nil, Stored, m.want.Full}}
	add := func(name string, attn map[int]attention.Policy, want scores) {
		all = append(all, setting{name, attn, Stored, want})
	}
	for w, want := range m.want.WFAAll {
		add("wfa:"+w, policies(t, "wfa:"+w, full...), want)
	}
	for w, want := range m.want.StreamAll {
		add("stream:"+w, policies(t, "stream:"+w, full...), want)
	}
	for layers, windows := range m.want.WFALayer {
		for w, want := range windows {
			add("wfa:"+w+" on "+layers, policies(t, "wfa:"+w, layerList(t, layers)...), want)
		}
	}
	for layers, windows := range m.want.StreamLayer {
		for w, want := range windows {
			add("stream:"+w+" on "+layers, policies(t, "stream:"+w, layerList(t, layers)...), want)
		}
	}
	for layers, want := range m.want.KeepFull {
		attn := policies(t, "stream:4+32", full...)
		for _, l := range layerList(t, layers) {
			delete(attn, l)
		}
		add("stream:4+32 except "+layers, attn, want)
	}
	for name, want := range m.want.Palettes {
		all = append(all, m.palette(t, name, want))
	}
	return all
}

// palette reads names such as 4bit_group32+wfa_all_128, 3bit_per_tensor and 8bit_group32_with_embedding_tables.
func (m *miniature) palette(t *testing.T, name string, want scores) setting {
	t.Helper()
	s := setting{name: name, want: want}
	text, window, windowed := strings.Cut(name, "+wfa_all_")
	if windowed {
		s.attn = policies(t, "wfa:"+window, full...)
	}
	text, tables := strings.CutSuffix(text, "_with_embedding_tables")
	bits, rest, _ := strings.Cut(text, "bit_")
	s.weights = "int" + bits
	if rest == "group32" {
		s.weights += "g32"
	}
	if tables {
		s.weights += tablesToo
	}
	return s
}

func layerList(t *testing.T, text string) []int {
	t.Helper()
	var all []int
	for _, part := range strings.Split(text, "+") {
		var l int
		if _, err := fmt.Sscan(part, &l); err == nil {
			all = append(all, l)
		}
	}
	return all
}

// TestRecallFigures reproduces a few lines on a few sequences: enough to tell a broken policy from a sound one. The rest is
// TestRecallFiguresLong.
func TestRecallFigures(t *testing.T) {
	m := openMiniature(t)
	for _, c := range []struct {
		name, attn    string
		recall, topic float64 // of 2 sequences: 56 and 8 questions; hand: recall is exactly the share of distances the window shows, up to guesses
		within        float64
	}{
		{"full", "", 1, 1, 0},
		{"WFA 64 shows three buckets of seven", "wfa:64", 3.0 / 7, 0.357, 0.06},
		{"sinks repair the topic", "stream:4+64", 3.0 / 7, 1, 0.06},
	} {
		u := m.base
		u.Count = 2
		if c.attn != "" {
			u.SetAttn(policies(t, c.attn, full...))
		}
		s, err := m.runner.Run(context.Background(), u)
		require.NoError(t, err)
		f := s.Figures()
		require.InDelta(t, c.recall, f.Recall, c.within, c.name)
		if c.attn != "wfa:64" {
			require.Equal(t, c.topic, f.Topic, c.name)
		}
		t.Logf("%s: recall %.3f topic %.3f ppl %.4f", c.name, f.Recall, f.Topic, f.PPL)
	}
}

// sampled are lines of every family of expected.json.
var sampled = []string{"full attention", "wfa:128", "stream:4+64", "wfa:32 on 14", "stream:4+32 on 14+19", "stream:4+32 except 9+14", "4bit_group32", "2bit_group32"}

// long skips a test that takes minutes, or, where all of it takes a quarter of an hour, says whether a sample will do.
func long(t *testing.T) (sample bool) {
	t.Helper()
	switch os.Getenv("ANELAB_LONG") {
	case "":
		t.Skip("takes minutes: set ANELAB_LONG=1, or ANELAB_LONG=all for every line of expected.json")
	case "all":
		return false
	}
	return true
}

// TestRecallFiguresLong reproduces every line of expected.json, or one of each family.
func TestRecallFiguresLong(t *testing.T) {
	sample := long(t)
	m := openMiniature(t)
	all := m.settings(t)
	if sample {
		all = slices.DeleteFunc(all, func(c setting) bool { return !slices.Contains(sampled, c.name) })
		require.Len(t, all, len(sampled))
	}
	t.Logf("%d settings", len(all))
	for _, c := range all {
		u := m.base
		u.SetAttn(c.attn)
		require.NoError(t, u.SetWeights(c.weights, 20))
		t.Run(c.name, func(t *testing.T) { m.require(t, c.name, u, c.want) })
	}
}

func TestRecallHeadsLong(t *testing.T) {
	if long(t) {
		t.Skip("takes ten minutes: set ANELAB_LONG=all")
	}
	m := openMiniature(t)
	want := m.want.Heads
	u := m.base
	u.Count = want.Sequences
	h := &HeadSearch{Runner: m.runner, Base: u, Streaming: attention.Streaming{Sink: 4, Recent: 32}, Keep: len(want.Heads)}
	got, err := h.Run(context.Background())
	require.NoError(t, err)
	require.InDelta(t, want.AllFull, got.AllFull, point)
	require.InDelta(t, want.NoneFull, got.NoneFull, point)
	require.Len(t, got.Heads, len(want.Heads))
	for i, w := range want.Heads {
		g := got.Heads[i]
		require.Equal(t, [2]int{w.Layer, w.Head}, [2]int{g.Layer, g.Head})
		require.InDelta(t, w.Alone, g.Alone, point, "%d.%d alone", w.Layer, w.Head)
		require.InDelta(t, w.Only, g.Only, point, "%d.%d only", w.Layer, w.Head)
		require.InDelta(t, w.Mass, g.Mass, 0.001, "%d.%d mass", w.Layer, w.Head)
	}
	for _, w := range want.Kept {
		g := got.Kept[w.Heads]
		require.InDelta(t, w.Far, g.Far, point, "%d heads", w.Heads)
		require.InEpsilon(t, w.PPL, g.PPL, 0.001, "%d heads", w.Heads)
		if len(w.Added) == 2 {
			require.Equal(t, w.Added, []int{g.Layer, g.Head})
		}
	}
}
