package search

import (
	"context"
	"math"
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
	Quote   anesim.Quote
}

// Verdict is the worst that the limits of the device say.
func (r *Ranked) Verdict() string { return verdict(r.Refused, r.Doubted) }

// Rank prices every candidate at a context and keeps the top ones. progress may be nil.
func (s *Space) Rank(ctx context.Context, length, top int, progress func(done int)) (Ranking, error) {
	r := Ranking{Context: length}
	if err := s.pricePresets(&r); err != nil {
		return r, err
	}
	quoter := anesim.NewQuoter(s.Device, s.Workload)
	for c, err := range s.Candidates(ctx, length, 0) {
		if err != nil {
			return r, err
		}
		if r.Priced++; progress != nil && r.Priced%checkEach == 0 {
			progress(r.Priced)
		}
		if s.counts(&r, &c) {
			r.place(c, quoter.Quote(c.Plan), top)
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
	f, quoter := newFactory(s), anesim.NewQuoter(s.Device, s.Workload)
	for _, p := range f.presets {
		c, err := f.candidate(chunking.Layout{Cuts: p.cuts, Context: r.Context})
		if err != nil {
			return err
		}
		one := ranked(c, quoter.Quote(c.Plan))
		one.Preset = p.name
		if len(c.Refused) == 0 && (len(c.Doubted) == 0 || s.Untried) {
			one.Rank = 1
		}
		r.Presets = append(r.Presets, one)
	}
	return nil
}

func ranked(c Candidate, q anesim.Quote) Ranked {
	l := c.Plan.Layout
	l.Cuts = slices.Clone(l.Cuts)
	return Ranked{Preset: c.Preset, Layout: l, Refused: slices.Clone(c.Refused), Doubted: slices.Clone(c.Doubted), Quote: q}
}

// place moves slower presets down, and keeps the candidate if it is among the best. Of equal ones the first stays in front.
func (r *Ranking) place(c Candidate, q anesim.Quote, top int) {
	for i := range r.Presets {
		if p := &r.Presets[i]; p.Rank > 0 && order(q) < order(p.Quote) {
			p.Rank++
		}
	}
	if len(r.Best) == top && order(q) >= order(r.Best[top-1].Quote) {
		return
	}
	at, _ := slices.BinarySearchFunc(r.Best, order(q), func(b Ranked, o float64) int {
		if order(b.Quote) <= o {
			return -1
		}
		return 1
	})
	r.Best = slices.Insert(r.Best, at, ranked(c, q))
	if len(r.Best) > top {
		r.Best = r.Best[:top]
	}
}

// order is the time in picoseconds: layouts whose terms are the same in another order are equal, whatever the sums rounded to.
func order(q anesim.Quote) float64 { return math.Round(1e12 * q.Seconds) }
