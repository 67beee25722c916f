package anesim

import (
	"fmt"
	"strings"
)

// Unpriced is work of a chunk that no term stands for: ops that the chunks which were timed do not have.
type Unpriced struct {
	Chunk           int
	Class           string
	Ops             int
	ExpectedSeconds float64 // by whatever knows; an order of magnitude
}

// doubtUnpriced is how many times longer than expected unpriced work may take: Apple's own expectation is about three times too
// short for work that is bound by its activations (spec ane.md §0.7).
const doubtUnpriced = 3

// Widen lets the slow ends of a prediction's ranges hold unpriced work, and names it. The estimate itself stays: nothing is known
// that would move it.
func (p *Prediction) Widen(work []Unpriced) {
	var total float64
	named := map[int][]string{}
	for _, u := range work {
		more := doubtUnpriced * u.ExpectedSeconds
		p.Chunks[u.Chunk].TimeRange.Hi += more
		total += more
		named[u.Chunk] = append(named[u.Chunk], fmt.Sprintf("%d %s", u.Ops, u.Class))
	}
	if len(work) == 0 {
		return
	}
	p.TimeRange.Hi += total
	p.Range.Lo = 1 / p.TimeRange.Hi
	for i := range p.Chunks {
		if list := named[i]; len(list) > 0 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s has work that no term prices (%s); the range allows for it", p.Chunks[i].Chunk, strings.Join(list, ", ")))
		}
	}
}
