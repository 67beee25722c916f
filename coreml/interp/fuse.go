package interp

import (
	"math"

	"anelab/coreml/mil"
	"anelab/internal/arith"
)

// A chunk writes a row into a cache as cache·(1 − m) + row·m, and turns heads as x·cos + x'·sin. Op by op the first reads and writes the
// whole cache four times. Both are a sum of two products; done as one step, row by row, the products stay in the first-level cache.
// Every element is formed and rounded as by the three ops, so the bits are theirs. The three ops run by themselves when somebody taps
// results, because then the products are to be seen.

// sumOfProducts is an add of two products that nothing else uses.
type sumOfProducts struct{ left, right *mil.Op }

// fused is the steps with every such add and its products made one.
func (f *function) fused() []step {
	uses, makers := map[string]int{}, map[string]int{}
	for i, s := range f.steps {
		for name := range mil.Uses(s.op) {
			uses[name]++
		}
		for _, out := range s.op.Outputs {
			makers[out.Name] = i
		}
	}
	for _, name := range f.Body.Outputs {
		uses[name]++
	}
	gone := map[int]bool{}
	steps := make([]step, len(f.steps))
	for i, s := range f.steps {
		steps[i] = step{op: s.op, impl: s.impl, open: s.open}
		l, r := f.productOf(s, "x", uses, makers), f.productOf(s, "y", uses, makers)
		if l < 0 || r < 0 || l == r {
			continue
		}
		gone[l], gone[r] = true, true
		sum := &sumOfProducts{f.steps[l].op, f.steps[r].op}
		steps[i].impl, steps[i].with = sum.run, []*mil.Op{sum.left, sum.right}
	}
	kept := steps[:0]
	for i, s := range steps {
		if !gone[i] {
			kept = append(kept, s)
		}
	}
	return kept
}

// productOf is the step whose product an add takes for a parameter, −1 if it is no such product.
func (f *function) productOf(s step, param string, uses, makers map[string]int) int {
	b := s.op.Input(param)
	if s.op.Type != "add" || bool(s.open) || len(b) != 1 || b[0].Value != nil || uses[b[0].Name] != 1 {
		return -1
	}
	i, ok := makers[b[0].Name]
	if !ok {
		return -1
	}
	maker := f.steps[i]
	d := maker.op.Outputs[0].Type.DType
	if maker.op.Type != "mul" || bool(maker.open) || !d.IsFloat() || d != s.op.Outputs[0].Type.DType {
		return -1
	}
	return i
}

// run computes the sum.
func (p *sumOfProducts) run(c *call) {
	left, right := &call{running: c.running, op: p.left}, &call{running: c.running, op: p.right}
	arrays := []*array{nil, left.array("x"), left.array("y"), right.array("x"), right.array("y")}
	c.fail(left.err)
	c.fail(right.err)
	if c.err != nil {
		return
	}
	shape := c.stretch(arrays[1:]...)
	if c.err != nil {
		return
	}
	out := c.blank(c.declared(0).DType, shape...)
	arrays[0] = out
	j := &sums{g: c.graph(), data: make([][]float32, len(arrays))}
	for k, a := range arrays {
		j.data[k] = a.floats
		arrays[k] = a.broadcast(shape)
	}
	j.walk = newWalk(shape, arrays...)
	if j.walk.n*j.walk.rows < parallelFrom {
		j.Run(0, j.walk.rows)
	} else {
		j.g.Parallel(j.walk.rows, max(1, parallelFrom/2/j.walk.n), j)
	}
	c.yield(out)
}

// sums is the job of a sum of products: rows of the walk over the sum and its four factors.
type sums struct {
	g    *arith.Graph
	walk walk
	data [][]float32
}

// Run implements arith.Job. Most rows of a masked write are the old row times one plus the new row times zero: the first product is the
// old row itself, whose elements are stored ones already, and the second is taken from the row before.
func (j *sums) Run(lo, hi int) {
	w := j.walk.part(lo, hi)
	second := make([]float32, w.n)
	var gathered [4][]float32
	var before [2]factor
	for w.next() {
		y := j.data[0][w.at[0]:][:w.n]
		first := w.operand(j.data[1], 1, &gathered[0])
		if by := w.factorOf(j.data, 1, 2, &gathered[1]); len(by) != 1 || by[0] != 1 || len(first) != w.n {
			j.g.Mul(y, first, by)
			first = y
		}
		if now := [2]factor{w.same(j.data[3], 3), w.same(j.data[4], 4)}; now != before {
			before = now
			j.g.Mul(second, w.operand(j.data[3], 3, &gathered[2]), w.factorOf(j.data, 3, 4, &gathered[3]))
		}
		j.g.Add(y, first, second)
	}
}

// factor tells rows apart: those of one element by it, others by where they start.
type factor struct {
	at   int
	bits uint32
	one  bool
}

func (w *walk) same(x []float32, k int) factor {
	if w.inner[k] == 0 {
		return factor{bits: math.Float32bits(x[w.at[k]]), one: true}
	}
	return factor{at: w.at[k] + 1}
}

// factorOf is the second operand of a pair; if neither changes along the row it is spelt out, because two single elements have no length.
func (w *walk) factorOf(data [][]float32, first, second int, scratch *[]float32) []float32 {
	if w.inner[first] != 0 || w.inner[second] != 0 || w.n == 1 {
		return w.operand(data[second], second, scratch)
	}
	if *scratch == nil {
		*scratch = make([]float32, w.n)
	}
	for i := range *scratch {
		(*scratch)[i] = data[second][w.at[second]]
	}
	return *scratch
}
