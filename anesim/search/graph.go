package search

import (
	"math"
	"runtime"
	"sync"

	"anelab/anesim"
	"anelab/chunking"
)

// edge is one chunk as a step from its first layer to the one behind its last.
type edge struct {
	seconds float64
	imports bool // reads keys and values of layers before it
	exports bool // hands keys and values to layers behind it
	legal   bool
}

// graph holds the price of every chunk of a model under one set of settings.
type graph struct {
	layers int
	edges  [][]edge // [lo][hi−lo−1]
	first  float64  // s, the first-import term
	host   float64  // s per token
	exact  int      // number of chunks, 0 = any
	priced int
	banned int
}

// newGraph plans and prices every chunk once: L·(L+1)/2 of them, shared out among the processors. First layers are dealt
// like cards, because early ones have more chunks.
func newGraph(r Request) (*graph, error) {
	n := len(r.Model.Layers)
	workers := min(runtime.GOMAXPROCS(0), n)
	parts := make([]*part, workers)
	edges := make([][]edge, n)
	var wait sync.WaitGroup
	for w := range workers {
		parts[w] = &part{request: &r, pricer: anesim.NewPricer(r.Device, r.Workload), planner: chunking.NewPlanner(r.Model), edges: edges}
		wait.Go(func() {
			for lo := w; lo < n && parts[w].err == nil; lo += workers {
				parts[w].price(lo)
			}
		})
	}
	wait.Wait()
	g := &graph{layers: n, edges: edges, exact: r.Chunks, first: parts[0].pricer.FirstImportSeconds()}
	for _, p := range parts {
		if p.err != nil {
			return nil, p.err
		}
		g.priced, g.banned = g.priced+p.priced, g.banned+p.banned
	}
	g.host = parts[0].pricer.HostSeconds(parts[0].plan.Context)
	return g, nil
}

// part is the share of one processor.
type part struct {
	request *Request
	pricer  *anesim.Pricer
	planner *chunking.Planner
	plan    chunking.Plan
	edges   [][]edge // shared; each row has one writer
	priced  int
	banned  int
	err     error
}

// price fills the row of edges that begin at layer lo.
func (p *part) price(lo int) {
	n := len(p.request.Model.Layers)
	row := make([]edge, n-lo)
	for hi := lo + 1; hi <= n; hi++ {
		layout, at := p.request.around(lo, hi)
		if p.err = p.planner.PlanInto(&p.plan, layout); p.err != nil {
			return
		}
		row[hi-lo-1] = p.request.edge(&p.plan, at, p.pricer)
		p.priced++
		if !row[hi-lo-1].legal {
			p.banned++
		}
	}
	p.edges[lo] = row
}

// around is a layout with the chunk [lo, hi) in it, and the chunk's index there. What lies beside it does not matter: a
// chunk depends on its own layers alone.
func (r *Request) around(lo, hi int) (l chunking.Layout, at int) {
	l = r.Settings
	n := len(r.Model.Layers)
	l.Cuts = nil
	add := func(lo, hi int) {
		l.Cuts = append(l.Cuts, chunking.Cut{Lo: lo, Hi: hi, Head: hi == n, Weights: r.weights()})
	}
	if lo > 0 {
		add(0, lo)
		at = 1
	}
	add(lo, hi)
	if hi < n {
		add(hi, n)
	}
	return l, at
}

// Imports and exports are facts of the chunk alone: what it hands on follows from the model, not from where the cuts
// are.
func (r *Request) edge(p *chunking.Plan, i int, pricer *anesim.Pricer) edge {
	c := p.Chunks[i]
	e := edge{seconds: pricer.ChunkSeconds(c, r.Model), imports: c.Totals.HandoffInBytes > 0, exports: c.Totals.HandoffOutBytes > 0, legal: true}
	if r.Legality != AllowAll {
		worst := anesim.WorstVerdict(anesim.SubjectOf(p, i, r.Device.Class))
		e.legal = worst != anesim.VerdictNo && (worst != anesim.VerdictWarning || r.Legality == AllowDoubtful)
	}
	if r.MaxWeightBytes > 0 && c.Totals.WeightBytes > r.MaxWeightBytes {
		e.legal = false
	}
	return e
}

// node is a place between two chunks.
type node struct {
	layer    int
	exported bool // by the chunk before
	chunks   int  // so far; stays 0 when any number will do
}

// Nodes are kept in flat tables: index = (chunks·(L+1) + layer)·2 + exported.
func (g *graph) index(n node) int {
	i := (n.chunks*(g.layers+1) + n.layer) * 2
	if n.exported {
		i++
	}
	return i
}

// One more than the last index.
func (g *graph) size() int {
	return g.index(node{layer: g.layers, exported: true, chunks: g.exact}) + 1
}

// step follows the edge that takes the chunk [n.layer, hi); false where there is none.
func (g *graph) step(n node, hi int) (to node, seconds float64, ok bool) {
	e := &g.edges[n.layer][hi-n.layer-1]
	to = node{layer: hi, exported: e.exports}
	if g.exact > 0 {
		to.chunks = n.chunks + 1
		if to.chunks > g.exact || hi == g.layers && to.chunks < g.exact {
			return to, 0, false
		}
	}
	seconds = e.seconds
	if n.exported && e.imports {
		seconds += g.first
	}
	return to, seconds, e.legal
}

// potentials is the least cost from every node to the end, by node index, and the chunk's end to go to. +Inf where the end
// cannot be reached. Layers only grow along edges, so one pass from the back settles all.
func (g *graph) potentials() (cost []float64, next []int, edges int) {
	cost, next = make([]float64, g.size()), make([]int, g.size())
	for layer := g.layers; layer >= 0; layer-- {
		for chunks := 0; chunks <= g.exact; chunks++ {
			for _, exported := range []bool{false, true} {
				n := node{layer, exported, chunks}
				i := g.index(n)
				if layer == g.layers {
					continue // the end: step lets nobody in with the wrong number of chunks
				}
				cost[i] = math.Inf(1)
				for hi := layer + 1; hi <= g.layers; hi++ {
					to, seconds, ok := g.step(n, hi)
					edges++
					// Strictly less: of equal layouts the one with the shorter first chunk wins, on every machine.
					if !ok {
						continue
					}
					if c := seconds + cost[g.index(to)]; c < cost[i] {
						cost[i], next[i] = c, hi
					}
				}
			}
		}
	}
	return cost, next, edges
}
