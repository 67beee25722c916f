package speculate

import (
	"context"
	"slices"
)

// Watched is a target whose every choice is compared with that of clean rows on the very same tokens.
type Watched struct {
	Target
	clean  Target
	Counts Counts
}

// Counts is how often rows chose otherwise than clean ones. Rows of a verify call are counted by their place in it, decode
// steps as row 0.
type Counts struct {
	Rows   []int `json:"rows"`
	Differ []int `json:"differ"`
}

// Watch compares a target with a clean one that is fed the same.
func Watch(t Target, clean Target) *Watched { return &Watched{Target: t, clean: clean} }

// Start starts both.
func (w *Watched) Start(ctx context.Context, prompt []int) (int, error) {
	if _, err := w.clean.Start(ctx, prompt); err != nil {
		return 0, err
	}
	return w.Target.Start(ctx, prompt)
}

// Step compares one choice.
func (w *Watched) Step(ctx context.Context, token int) (int, error) {
	want, err := w.clean.Step(ctx, token)
	if err != nil {
		return 0, err
	}
	got, err := w.Target.Step(ctx, token)
	w.Counts.row(0, got == want)
	return got, err
}

// Verify compares every row.
func (w *Watched) Verify(ctx context.Context, tokens []int) ([]int, error) {
	want, err := w.clean.Verify(ctx, tokens)
	if err != nil {
		return nil, err
	}
	want = slices.Clone(want)
	got, err := w.Target.Verify(ctx, tokens)
	for i := range got {
		w.Counts.row(i, got[i] == want[i])
	}
	return got, err
}

// Accept accepts in both.
func (w *Watched) Accept(n int) error {
	if err := w.clean.Accept(n); err != nil {
		return err
	}
	return w.Target.Accept(n)
}

func (c *Counts) row(i int, equal bool) {
	for len(c.Rows) <= i {
		c.Rows, c.Differ = append(c.Rows, 0), append(c.Differ, 0)
	}
	c.Rows[i]++
	if !equal {
		c.Differ[i]++
	}
}

// Add sums counts.
func (c *Counts) Add(o Counts) {
	for i := range o.Rows {
		for len(c.Rows) <= i {
			c.Rows, c.Differ = append(c.Rows, 0), append(c.Differ, 0)
		}
		c.Rows[i] += o.Rows[i]
		c.Differ[i] += o.Differ[i]
	}
}

// Parted is where two sequences first differ; the length of the shorter one if they do not.
func Parted(a, b []int) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
