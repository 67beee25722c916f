package gemma4

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// draws are n choices from the same logits with fresh memory each, under one stream of random numbers.
func draws(t testing.TB, s Sampling, logits []float32, n int) map[int]int {
	t.Helper()
	sampler, err := NewSampler(s)
	require.NoError(t, err)
	count := map[int]int{}
	for range n {
		count[sampler.Next(logits)]++
	}
	return count
}

// keys are the ids that were drawn.
func keys(count map[int]int) []int {
	var ids []int
	for id := range count {
		ids = append(ids, id)
	}
	return ids
}

// ladder gives token i the probability 2^−(i+1), but for the last two, which share the rest.
var ladder = []float32{0, -ln2, -2 * ln2, -3 * ln2, -4 * ln2, -4 * ln2}

const ln2 = float32(math.Ln2)

func TestFilters(t *testing.T) { // hand: probabilities 1/2, 1/4, 1/8, 1/16, 1/32, 1/32
	base := Sampling{Temperature: 1, TopP: 1, Repetition: 1, Seed: 3}
	with := func(change func(*Sampling)) Sampling { s := base; change(&s); return s }
	for name, c := range map[string]struct {
		s    Sampling
		want []int
	}{
		"all":                           {base, []int{0, 1, 2, 3, 4, 5}},
		"top_k 1":                       {with(func(s *Sampling) { s.TopK = 1 }), []int{0}},
		"top_k 3":                       {with(func(s *Sampling) { s.TopK = 3 }), []int{0, 1, 2}},
		"top_k 5, the lower id of ties": {with(func(s *Sampling) { s.TopK = 5 }), []int{0, 1, 2, 3, 4}},
		"top_k of the vocabulary":       {with(func(s *Sampling) { s.TopK = 6 }), []int{0, 1, 2, 3, 4, 5}},
		"top_k above the vocabulary":    {with(func(s *Sampling) { s.TopK = 7 }), []int{0, 1, 2, 3, 4, 5}},
		"top_p 0":                       {with(func(s *Sampling) { s.TopP = 0 }), []int{0}},
		"top_p below the best":          {with(func(s *Sampling) { s.TopP = 0.4 }), []int{0}},
		"top_p across two":              {with(func(s *Sampling) { s.TopP = 0.6 }), []int{0, 1}},
		"top_p across four":             {with(func(s *Sampling) { s.TopP = 0.9 }), []int{0, 1, 2, 3}},
		"min_p a fifth":                 {with(func(s *Sampling) { s.MinP = 0.2 }), []int{0, 1, 2}},
		"min_p 1":                       {with(func(s *Sampling) { s.MinP = 1 }), []int{0}},
		"top_k, then top_p of what is left: 4/7 and 2/7": {with(func(s *Sampling) { s.TopK, s.TopP = 3, 0.8 }), []int{0, 1}},
		"cold": {with(func(s *Sampling) { s.Temperature = 0.01 }), []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ElementsMatch(t, c.want, keys(draws(t, c.s, ladder, 3000)))
		})
	}
}

func TestFrequenciesFollowProbabilities(t *testing.T) { // hand: expected counts, within five standard deviations
	const n = 40_000
	for temperature, base := range map[float64]float64{1: 2, 2: math.Sqrt2} {
		count := draws(t, Sampling{Temperature: temperature, TopP: 1, Seed: 7}, ladder, n)
		sum := 0.0
		for _, l := range ladder {
			sum += math.Pow(base, float64(l/ln2))
		}
		for id, l := range ladder {
			p := math.Pow(base, float64(l/ln2)) / sum
			require.InDelta(t, n*p, count[id], 5*math.Sqrt(n*p*(1-p)), "temperature %g token %d", temperature, id)
		}
	}
}

func TestCLI01EdgesOfSampling(t *testing.T) { // hand
	const vocab = 262144
	capped := make([]float32, vocab) // as the soft-cap leaves them: between −30 and 30
	for i := range capped {
		capped[i] = -30 + float32(i%1000)*0.03
	}
	capped[777], capped[999] = 30, 29.97
	for name, s := range map[string]Sampling{
		"temperature 0":            {Temperature: 0, TopP: 1},
		"temperature 1e-7":         {Temperature: 1e-7, TopP: 1},
		"temperature 1e-4":         {Temperature: 1e-4, TopP: 1},
		"temperature smallest":     {Temperature: math.SmallestNonzeroFloat64, TopP: 1},
		"top_k 1":                  {Temperature: 1, TopK: 1, TopP: 1},
		"top_p 0":                  {Temperature: 1, TopP: 0},
		"cold, top_k 262144":       {Temperature: 1e-4, TopK: vocab, TopP: 1},
		"cold, top_k 262145":       {Temperature: 1e-4, TopK: vocab + 1, TopP: 1},
		"cold, everything at once": {Temperature: 1e-4, TopK: 64, TopP: 0.95, MinP: 0.05},
	} {
		require.Equal(t, []int{777}, keys(draws(t, s, capped, 3)), name)
	}
	hot := draws(t, Sampling{Temperature: math.MaxFloat64, TopP: 1, Seed: 1}, ladder, 6000)
	for id := range ladder {
		require.InDelta(t, 1000, hot[id], 200, "without bound every token is as likely")
	}
	inf, nan := math.Inf(1), math.NaN()
	for name, s := range map[string]Sampling{
		"temperature":        {Temperature: -1},
		"temperature ":       {Temperature: nan},
		"temperature  ":      {Temperature: inf},
		"top_k":              {TopK: -1},
		"top_p":              {TopP: 1.01},
		"top_p ":             {TopP: nan},
		"min_p":              {MinP: -0.1},
		"repetition_penalty": {Repetition: -2},
		"frequency_penalty":  {Frequency: inf},
		"presence_penalty":   {Presence: nan},
	} {
		_, err := NewSampler(s)
		require.ErrorContains(t, err, trimmed(name)+": ", name)
		require.ErrorContains(t, err, "want ")
	}
}

// trimmed lets several cases have one field's name.
func trimmed(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

func TestPenalties(t *testing.T) { // hand
	next := func(s Sampling, prompt []int, logits []float32, n int) []int {
		sampler, err := NewSampler(s)
		require.NoError(t, err)
		sampler.Prompt(prompt)
		var ids []int
		for range n {
			ids = append(ids, sampler.Next(logits))
		}
		return ids
	}
	up := []float32{4, 3, 2.5}
	require.Equal(t, []int{0, 0}, next(Sampling{}, []int{0}, up, 2))
	require.Equal(t, []int{0, 1, 2, 0}, next(Sampling{Repetition: 2}, nil, up, 4), "4, then 2 against 3, then 2 and 1.5 against 2.5; once, not once more for each time")
	require.Equal(t, []int{1}, next(Sampling{Repetition: 2}, []int{0}, up, 1), "the prompt counts")
	require.Equal(t, []int{1}, next(Sampling{Repetition: 2}, []int{0}, []float32{-1, -1.5, -9}, 1), "negative logits are multiplied")
	require.Equal(t, []int{0, 0, 1}, next(Sampling{Frequency: 0.6}, nil, up, 3), "4, 3.4, 2.8")
	require.Equal(t, []int{0}, next(Sampling{Frequency: 9, Presence: 9}, []int{0}, up, 1), "the prompt was not generated")
	require.Equal(t, []int{0, 1, 2, 0}, next(Sampling{Presence: 2}, nil, up, 4), "taken off once: 2, 1, 0.5")
	require.Equal(t, []float32{4, 3, 2.5}, up, "the logits are left as they are")
}

// TestSeedIsTheSameEverywhere pins the stream: a change of it changes every text that was ever sampled.
func TestSeedIsTheSameEverywhere(t *testing.T) {
	s := seed(0) // oracle: the published outputs of splitmix64 for seed 0
	require.Equal(t, []uint64{0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F}, []uint64{s.next(), s.next(), s.next()})
	pin := func(seed uint64) string {
		sampler, err := NewSampler(Sampling{Temperature: 1.3, TopK: 5, TopP: 0.97, MinP: 0.01, Seed: seed})
		require.NoError(t, err)
		text := ""
		for range 24 {
			text += fmt.Sprint(sampler.Next(ladder))
		}
		return text
	}
	require.Equal(t, pin(42), pin(42))
	require.NotEqual(t, pin(42), pin(43))
	require.Equal(t, "200003020101111001014011", pin(42)) // pinned when written
}

func TestExponential(t *testing.T) { // oracle: math.Exp
	require.Equal(t, 1.0, exponential(0))
	require.Zero(t, exponential(math.Inf(-1)))
	require.Zero(t, exponential(-1e300))
	for x := 0.0; x > -744; x -= 0.0371 {
		want := math.Exp(x)
		require.InDelta(t, 1, exponential(x)/want, 1e-15+math.SmallestNonzeroFloat64/want, "%g", x)
	}
}

func BenchmarkSampler(b *testing.B) {
	logits := make([]float32, 262144)
	for i := range logits {
		logits[i] = float32(i*7919%4096)/70 - 30
	}
	for name, s := range map[string]Sampling{"greedy": {}, "published": {Temperature: 1, TopK: 64, TopP: 0.95}, "top_p": {Temperature: 1, TopP: 0.95}} {
		b.Run("sampling="+name, func(b *testing.B) {
			sampler, err := NewSampler(s)
			require.NoError(b, err)
			for b.Loop() {
				sampler.Next(logits)
			}
		})
	}
}
