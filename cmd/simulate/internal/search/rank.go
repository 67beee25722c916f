package search

import (
	"context"
	"slices"

	"anelab/anesim"
	"anelab/chunking"
)

// Ranking is the order of a space at one context.
type Ranking struct {
	Context int
	Priced  int // candidates
	Refused int // of them, those the device would not run
	Untried int // of the rest, those that a limit warns of
	Best    []Ranked
	Presets []Ranked // every preset of the space, in the order of the list
}

// Ranked is one layout with its place among those that are ranked; Rank is 0 for one that is not.
type Ranked struct {
	Rank    int
	Preset  string
	Layout  chunking.Layout
	Refused []string
	Doubted []string
	Seconds float64
}

// Verdict is the worst that the limits of the device say.
func (r *Ranked) Verdict() string { return verdict(r.Refused, r.Doubted) }

// Rank prices every candidate at a context and keeps the top ones. progress may be nil.
func (s *Space) Rank(ctx context.Context, length, top int, progress func(done int)) (Ranking, error) {
	r := Ranking{Context: length}
	if err := s.pricePresets(&r); err != nil {
		return r, err
	}
	pricer := anesim.NewPricer(s.Device, s.Workload)
	for c, err := range s.Candidates(ctx, length) {
		if err != nil {
			return r, err
		}
		if r.Priced++; progress != nil && r.Priced%checkEach == 0 {
			progress(r.Priced)
		}
		if s.counts(&r, &c) {
			r.place(c, pricer.Seconds(c.Plan), top)
		}
	}
	for i := range r.Best {
		r.Best[i].Rank = i + 1
	}
	return r, nil
}

// counts reports whether a candidate is ranked, and counts those that are not.
func (s *Space) counts(r *Ranking, c *Candidate) bool {
	switch {
	case len(c.Refused) > 0:
		r.Refused++
		return false
	case len(c.Doubted) > 0 && !s.Untried:
		r.Untried++
		return false
	}
	return true
}

// pricePresets files the presets before the search, so that it can count who is faster.
func (s *Space) pricePresets(r *Ranking) error {
	f, pricer := newFactory(s), anesim.NewPricer(s.Device, s.Workload)
	for _, p := range f.presets {
		c, err := f.candidate(chunking.Layout{Cuts: p.cuts, Context: r.Context})
		if err != nil {
			return err
		}
		one := ranked(c, pricer.Seconds(c.Plan))
		one.Preset = p.name
		if len(c.Refused) == 0 && (len(c.Doubted) == 0 || s.Untried) {
			one.Rank = 1
		}
		r.Presets = append(r.Presets, one)
	}
	return nil
}

func ranked(c Candidate, seconds float64) Ranked {
	l := c.Plan.Layout
	l.Cuts = slices.Clone(l.Cuts)
	return Ranked{Preset: c.Preset, Layout: l, Refused: slices.Clone(c.Refused), Doubted: slices.Clone(c.Doubted), Seconds: seconds}
}

// place moves slower presets down, and keeps the candidate if it is among the best. Of equal ones the first stays in front.
func (r *Ranking) place(c Candidate, seconds float64, top int) {
	for i := range r.Presets {
		if p := &r.Presets[i]; p.Rank > 0 && seconds < p.Seconds {
			p.Rank++
		}
	}
	if len(r.Best) == top && (top == 0 || seconds >= r.Best[top-1].Seconds) {
		return
	}
	at, _ := slices.BinarySearchFunc(r.Best, seconds, func(b Ranked, s float64) int {
		if b.Seconds <= s {
			return -1
		}
		return 1
	})
	r.Best = slices.Insert(r.Best, at, ranked(c, seconds))
	if len(r.Best) > top {
		r.Best = r.Best[:top]
	}
}
