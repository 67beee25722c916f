package search

import (
	"fmt"
	"iter"

	"anelab/anesim"
	"anelab/chunking"
)

// Grid is what to explore: every way to cut into the given numbers of chunks under every combination of settings.
//
// Weight bits and windows change what the model says, and no objective measures that. Points are therefore compared only
// within a variant (same weights, policy and context), unless the grid mixes them on purpose.
type Grid struct {
	Model    *chunking.Model
	Device   anesim.Device
	Workload anesim.Workload
	MinCuts  int // chunks, inclusive
	MaxCuts  int
	Variants []Variant
	Load     anesim.Load
	Prompt   anesim.Prompt
	Legality Legality
}

// Variant is one combination of settings.
type Variant struct {
	Weights string // encoding: "int4g32"
	Attn    string // policy of the full layers, "" = the model's own
	Context int
}

// String names the variant in tables.
func (v Variant) String() string {
	s := fmt.Sprintf("w=%s C=%d", v.Weights, v.Context)
	if v.Attn != "" {
		s += " attn=" + v.Attn
	}
	return s
}

// Candidate is a layout on a front.
type Candidate struct {
	Variant Variant
	Layout  string
	Point   Point
}

// Exploration is the front of every variant, and that of all variants together.
type Exploration struct {
	Points   int
	Refused  int
	Variants map[Variant][]Candidate
	All      []Candidate
}

// Explore prices a grid and keeps its fronts.
func Explore(g Grid) (Exploration, error) {
	out := Exploration{Variants: map[Variant][]Candidate{}}
	var best []Point
	byID := map[int]Candidate{}
	for _, v := range g.Variants {
		s := &strand{grid: &g, variant: v, first: out.Points}
		points, err := s.points()
		if err != nil {
			return Exploration{}, err
		}
		out.Points += s.seen
		out.Refused += s.refused
		for _, p := range Front(points) {
			c := Candidate{Variant: v, Point: p, Layout: s.layout(p.ID)}
			out.Variants[v] = append(out.Variants[v], c)
			best = append(best, p)
			byID[p.ID] = c
		}
	}
	for _, p := range Front(best) {
		out.All = append(out.All, byID[p.ID])
	}
	return out, nil
}

// strand is the part of a grid under one variant.
type strand struct {
	grid    *Grid
	variant Variant
	first   int // ID of its first layout
	seen    int
	refused int
}

// settings is the layout behind every cut of the variant.
func (s *strand) settings() (chunking.Layout, error) {
	text := fmt.Sprintf("@1way w=%s context=%d", s.variant.Weights, s.variant.Context)
	if s.variant.Attn != "" {
		text += " attn=" + s.variant.Attn
	}
	return chunking.Parse(text, s.grid.Model)
}

// points prices every layout of the variant.
func (s *strand) points() ([]Point, error) {
	base, err := s.settings()
	if err != nil {
		return nil, err
	}
	g := s.grid
	planner, coster := chunking.NewPlanner(g.Model), newCoster(g)
	var plan chunking.Plan
	var points []Point
	for l := range s.layouts(base) {
		if err := planner.PlanInto(&plan, l); err != nil {
			return nil, err
		}
		s.seen++
		cost, legal := coster.cost(&plan)
		if !legal {
			s.refused++
			continue
		}
		points = append(points, Point{Cost: cost, ID: s.first + s.seen - 1})
	}
	return points, nil
}

// layouts yields the cuts of the grid with the variant's settings. A layout is valid until the next one is asked for.
func (s *strand) layouts(base chunking.Layout) iter.Seq[chunking.Layout] {
	return func(yield func(chunking.Layout) bool) {
		for n := max(1, s.grid.MinCuts); n <= s.grid.MaxCuts; n++ {
			for l := range chunking.Enumerate(s.grid.Model, n) {
				for i := range l.Cuts {
					l.Cuts[i].Weights = base.Cuts[0].Weights
				}
				out := base
				out.Cuts = l.Cuts
				if !yield(out) {
					return
				}
			}
		}
	}
}

// layout finds the text of a candidate by its ID again: counting is cheaper than keeping a million layouts.
func (s *strand) layout(id int) string {
	base, err := s.settings()
	if err != nil {
		panic("search: a variant that was planned cannot be parsed")
	}
	n := s.first
	for l := range s.layouts(base) {
		if n == id {
			return l.String()
		}
		n++
	}
	panic("search: no layout with this ID")
}

// coster prices plans of one variant. What depends on single chunks is computed once per chunk.
type coster struct {
	grid   *Grid
	pricer *anesim.Pricer
	legal  map[*chunking.Chunk]bool
}

func newCoster(g *Grid) *coster {
	return &coster{grid: g, pricer: anesim.NewPricer(g.Device, g.Workload), legal: map[*chunking.Chunk]bool{}}
}

// cost of a plan in every respect.
func (c *coster) cost(p *chunking.Plan) (cost [NumObjectives]float64, legal bool) {
	for i := range p.Chunks {
		if !c.isLegal(p, i) {
			return cost, false
		}
	}
	cost[TimePerToken] = c.pricer.Seconds(p)
	m := anesim.MemoryOf(p, c.grid.Load)
	cost[Resident], cost[Download] = float64(m.ResidentBytes), float64(m.DownloadBytes)
	cost[FirstToken] = anesim.PredictPrefill(p, c.grid.Device, c.grid.Prompt).TimeS
	return cost, true
}

// Verdicts are kept per chunk: a grid has a thousand chunks and a million plans.
func (c *coster) isLegal(p *chunking.Plan, i int) bool {
	if c.grid.Legality == AllowAll {
		return true
	}
	legal, known := c.legal[p.Chunks[i]]
	if !known {
		worst := anesim.WorstVerdict(anesim.SubjectOf(p, i, c.grid.Device.Class))
		legal = worst != anesim.VerdictNo && (worst != anesim.VerdictWarning || c.grid.Legality == AllowDoubtful)
		c.legal[p.Chunks[i]] = legal
	}
	return legal
}
