package timing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"anelab/gemma4"
)

// Spec is what to time.
type Spec struct {
	Prompts  []int // lengths of prompts
	Generate int   // tokens to decode one by one; 0 = none
	Depths   []int // positions before the first of them
	Repeat   int   // runs of each test
}

// Context is the number of positions the tests need.
func (s *Spec) Context() int {
	n := 0
	for _, p := range s.Prompts {
		n = max(n, p)
	}
	for _, d := range s.Depths {
		n = max(n, d+s.Generate*s.Repeat)
	}
	return max(n, 1)
}

// Test is one test and the time of its runs.
type Test struct {
	Name    string
	Prompt  int // tokens of a prompt test
	Tokens  int // tokens of a decoding test
	Depth   int
	Seconds []float64 // ascending
}

// Rate is tokens per second of the median run; Slowest and Fastest bound it.
func (t *Test) Rate() float64 { return t.rate(t.Seconds[len(t.Seconds)/2]) }

// Slowest is tokens per second of the slowest run.
func (t *Test) Slowest() float64 { return t.rate(t.Seconds[len(t.Seconds)-1]) }

// Fastest is tokens per second of the fastest run.
func (t *Test) Fastest() float64 { return t.rate(t.Seconds[0]) }

func (t *Test) rate(seconds float64) float64 { return float64(t.Prompt+t.Tokens) / seconds }

// Run times every test on a fresh state and hands it over as soon as it is done.
func Run(ctx context.Context, m *gemma4.Model, s Spec, done func(Test)) error {
	r := runner{ctx: ctx, m: m, spec: s}
	if err := r.warm(); err != nil {
		return err
	}
	for _, n := range s.Prompts {
		t := Test{Name: fmt.Sprintf("pp%d", n), Prompt: n}
		if err := r.repeat(&t, func() (float64, error) { return r.prompt(n) }); err != nil {
			return err
		}
		done(t)
	}
	if s.Generate == 0 {
		return nil
	}
	for _, d := range s.Depths {
		t := Test{Name: fmt.Sprintf("tg%d", s.Generate), Tokens: s.Generate, Depth: d}
		if d > 0 {
			t.Name += fmt.Sprintf(" @ d%d", d)
		}
		if err := r.decode(&t); err != nil {
			return err
		}
		done(t)
	}
	return nil
}

type runner struct {
	ctx  context.Context
	m    *gemma4.Model
	spec Spec
}

// token is the i-th of a fixed sequence.
func (r *runner) token(i int) int { return (i*7919 + 13) % r.m.Config.VocabSize }

func (r *runner) tokens(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = r.token(i)
	}
	return all
}

// warm touches every weight once.
func (r *runner) warm() error {
	s, err := r.m.NewState(4)
	if err != nil {
		return err
	}
	for i := range 2 {
		if _, err := s.Step(r.ctx, r.token(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) repeat(t *Test, f func() (float64, error)) error {
	for range r.spec.Repeat {
		seconds, err := f()
		if err != nil {
			return err
		}
		t.Seconds = append(t.Seconds, seconds)
	}
	slices.Sort(t.Seconds)
	return nil
}

func (r *runner) prompt(n int) (float64, error) {
	s, err := r.m.NewState(n)
	if err != nil {
		return 0, err
	}
	tokens := r.tokens(n)
	start := time.Now()
	_, err = s.Prefill(r.ctx, tokens)
	return time.Since(start).Seconds(), err
}

// decode fills the context once and runs one after the other from there: a few hundred positions more change little, and refilling
// would take longer than the test.
func (r *runner) decode(t *Test) error {
	s, err := r.m.NewState(t.Depth + t.Tokens*r.spec.Repeat)
	if err != nil {
		return err
	}
	if t.Depth > 0 {
		if _, err := s.Prefill(r.ctx, r.tokens(t.Depth)); err != nil {
			return err
		}
	}
	return r.repeat(t, func() (float64, error) {
		start := time.Now()
		for i := range t.Tokens {
			if _, err := s.Step(r.ctx, r.token(i)); err != nil {
				return 0, err
			}
		}
		return time.Since(start).Seconds(), nil
	})
}
