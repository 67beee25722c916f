package search

import (
	"fmt"
	"math"
	"math/big"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/internal/format"
	"anelab/quant"
)

// Legality says which chunks may be used.
type Legality uint8

// OnlyTried leaves out every chunk with a refusal or a warning, such as one longer than any that was seen to run: what the
// sum law says of those is extrapolation. AllowDoubtful leaves out refusals alone; AllowAll searches as if every program ran.
const (
	OnlyTried Legality = iota
	AllowDoubtful
	AllowAll
)

// Request is what to search.
type Request struct {
	Model          *chunking.Model
	Device         anesim.Device
	Workload       anesim.Workload
	Settings       chunking.Layout // context, query tokens, attention policies; the encoding of its first cut holds for all chunks
	Chunks         int             // exactly so many; 0 = any number
	Legality       Legality
	MaxWeightBytes int64 // of one chunk; 0 = no bound of your own
}

// One encoding for all chunks: mixed ones are another search, over the variants of [Explore].
func (r *Request) weights() (w quant.Encoding) {
	if len(r.Settings.Cuts) > 0 {
		return r.Settings.Cuts[0].Weights
	}
	return w
}

// Result is the best layout.
type Result struct {
	Layout  chunking.Layout
	Seconds float64 // per token, the same as [anesim.Predict]'s up to rounding
	Proof   Proof
}

// Proof is why no other layout is better under the same prices.
type Proof struct {
	Layouts      *big.Int `json:"layouts"` // boundary sets searched, illegal ones included
	States       int      `json:"states"`
	Edges        int      `json:"edges"`
	ChunksPriced int      `json:"chunks_priced"`
	ChunksBanned int      `json:"chunks_banned"` // by limits
	BoundSeconds float64  `json:"bound_s"`       // no layout takes less; the result takes as much

	graph *graph
	cost  []float64
}

// Best finds the fastest of all layouts.
func Best(r Request) (Result, error) {
	if r.Chunks < 0 || r.Chunks > len(r.Model.Layers) {
		return Result{}, &format.Error{Path: "search", Field: "chunks", Got: fmt.Sprint(r.Chunks), Want: fmt.Sprintf("0 for any number, or 1 to %d", len(r.Model.Layers))}
	}
	g, err := newGraph(r)
	if err != nil {
		return Result{}, err
	}
	cost, next, edges := g.potentials()
	start := g.index(node{})
	if math.IsInf(cost[start], 1) {
		return Result{}, &format.Error{Path: "search", Got: fmt.Sprintf("%d of %d chunks refused", g.banned, g.priced), Want: "at least one layout without them",
			Fix: "allow more chunks, fewer bits, or search as if every program ran"}
	}
	out := Result{Layout: r.path(g, next), Seconds: cost[start] + g.host}
	out.Proof = Proof{Layouts: layoutCount(g.layers, r.Chunks), States: reached(cost), Edges: edges, ChunksPriced: g.priced, ChunksBanned: g.banned,
		BoundSeconds: out.Seconds, graph: g, cost: cost}
	return out, nil
}

// path follows the best edges from the first layer.
func (r *Request) path(g *graph, next []int) chunking.Layout {
	l := r.Settings
	l.Cuts = nil
	for n := (node{}); n.layer < g.layers; {
		hi := next[g.index(n)]
		l.Cuts = append(l.Cuts, chunking.Cut{Lo: n.layer, Hi: hi, Head: hi == g.layers, Weights: r.weights()})
		n, _, _ = g.step(n, hi)
	}
	return l
}

// reached counts nodes from which the end can be reached.
func reached(cost []float64) int {
	n := 0
	for _, c := range cost {
		if !math.IsInf(c, 1) {
			n++
		}
	}
	return n
}

// layoutCount is the number of boundary sets: C(L−1, n−1), or 2^(L−1) for any number of chunks.
func layoutCount(layers, chunks int) *big.Int {
	if chunks == 0 {
		return new(big.Int).Lsh(big.NewInt(1), uint(layers-1))
	}
	return new(big.Int).Binomial(int64(layers-1), int64(chunks-1))
}

// Verify walks every edge once and checks that the potentials are a feasible dual: no edge leads from a node to one whose
// remaining cost is lower by more than the edge costs. Then every path from the start costs at least the start's potential,
// which is the bound; and the result attains it.
func (p *Proof) Verify() error {
	g := p.graph
	for layer := range g.layers {
		for chunks := 0; chunks <= g.exact; chunks++ {
			for _, exported := range []bool{false, true} {
				n := node{layer, exported, chunks}
				for hi := layer + 1; hi <= g.layers; hi++ {
					to, seconds, ok := g.step(n, hi)
					if ok && p.cost[g.index(n)] > seconds+p.cost[g.index(to)] {
						return fmt.Errorf("the chunk of layers %d to %d undercuts the bound", layer, hi-1)
					}
				}
			}
		}
	}
	if bound := p.cost[g.index(node{})] + g.host; bound != p.BoundSeconds {
		return fmt.Errorf("the bound is %v s, the result takes %v s", bound, p.BoundSeconds)
	}
	return nil
}
