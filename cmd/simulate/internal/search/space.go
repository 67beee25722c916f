package search

import (
	"context"
	"iter"
	"slices"

	"anelab/anesim"
	"anelab/chunking"
)

// Space is what is searched.
type Space struct {
	Model    *chunking.Model
	Device   anesim.Device
	Workload anesim.Workload
	MinParts int // chunks of a cut, both ends included; 0 and 0 search Layouts alone
	MaxParts int
	Layouts  []chunking.Layout // tried besides
	Untried  bool              // rank layouts that a limit warns of, too
}

// Candidate is one layout at one context.
type Candidate struct {
	Plan    *chunking.Plan
	Preset  string   // its name, if it has one
	Refused []string // rules of the device that say no to it
	Doubted []string // rules that warn of it
}

// Verdict is the worst that the limits of the device say: yes when they say nothing.
func (c *Candidate) Verdict() string { return verdict(c.Refused, c.Doubted) }

func verdict(refused, doubted []string) string {
	switch {
	case len(refused) > 0:
		return string(anesim.VerdictNo)
	case len(doubted) > 0:
		return string(anesim.VerdictWarning)
	}
	return "yes"
}

// Size is the number of candidates at each context.
func (s *Space) Size() int64 {
	n := int64(len(s.Layouts))
	for parts := max(s.MinParts, 1); parts <= s.MaxParts; parts++ {
		n += chunking.Count(s.Model, parts)
	}
	return n
}

// checkEach is how many candidates pass between two looks at the context of the run.
const checkEach = 1024

// Candidates yields the candidates at a context length, but for the first few. The error is the run's own end, or a layout that
// cannot be planned.
func (s *Space) Candidates(ctx context.Context, length int, skip int64) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		f := newFactory(s)
		n := 0
		for l := range s.layouts() {
			if skip > 0 {
				skip--
				continue
			}
			if n++; n%checkEach == 0 && ctx.Err() != nil {
				yield(Candidate{}, ctx.Err())
				return
			}
			l.Context = length
			c, err := f.candidate(l)
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// layouts yields the cuts, then the list.
func (s *Space) layouts() iter.Seq[chunking.Layout] {
	return func(yield func(chunking.Layout) bool) {
		for parts := max(s.MinParts, 1); parts <= s.MaxParts; parts++ {
			for l := range chunking.Enumerate(s.Model, parts) {
				if !yield(l) {
					return
				}
			}
		}
		for _, l := range s.Layouts {
			if !yield(l) {
				return
			}
		}
	}
}

// factory makes candidates with as little work as possible: chunks are planned and checked once.
type factory struct {
	device  anesim.Device
	planner *chunking.Planner
	plan    chunking.Plan
	presets []named
	checked map[*chunking.Chunk]rules
	found   rules // of the candidate in hand
}

// rules that say no, and rules that warn.
type rules struct{ no, warning []string }

// named is a preset as it comes out on the model.
type named struct {
	name string
	cuts []chunking.Cut
}

func newFactory(s *Space) *factory {
	f := &factory{device: s.Device, planner: chunking.NewPlanner(s.Model), checked: map[*chunking.Chunk]rules{}}
	for _, p := range chunking.Presets() {
		if l, ok := s.Model.Preset(p.Name); ok {
			f.presets = append(f.presets, named{p.Name, l.Cuts})
		}
	}
	return f
}

func (f *factory) candidate(l chunking.Layout) (Candidate, error) {
	if err := f.planner.PlanInto(&f.plan, l); err != nil {
		return Candidate{}, err
	}
	f.check()
	return Candidate{Plan: &f.plan, Preset: f.presetOf(l), Refused: f.found.no, Doubted: f.found.warning}, nil
}

// presetOf names a layout that a preset comes to; one with settings of its own is no preset.
func (f *factory) presetOf(l chunking.Layout) string {
	if len(l.Attn) > 0 || l.QueryTokens != 0 {
		return ""
	}
	for _, p := range f.presets {
		if slices.Equal(p.cuts, l.Cuts) {
			return p.name
		}
	}
	return ""
}

// check gathers what the limits of the device say. They look at one chunk at a time, so each chunk is asked about once.
func (f *factory) check() {
	f.found.no, f.found.warning = f.found.no[:0], f.found.warning[:0]
	for _, c := range f.plan.Chunks {
		r, known := f.checked[c]
		if !known {
			one := f.plan
			one.Chunks = []*chunking.Chunk{c}
			r = sortRules(anesim.Check(&one, f.device))
			f.checked[c] = r
		}
		f.found.no = append(f.found.no, r.no...)
		f.found.warning = append(f.found.warning, r.warning...)
	}
}

func sortRules(found []anesim.Finding) rules {
	var r rules
	for _, one := range found {
		switch one.Verdict {
		case anesim.VerdictNo:
			r.no = append(r.no, one.Rule)
		case anesim.VerdictWarning:
			r.warning = append(r.warning, one.Rule)
		}
	}
	return r
}
