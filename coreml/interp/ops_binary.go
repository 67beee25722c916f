package interp

import (
	"math"

	"anelab/coreml/mil"
	"anelab/internal/arith"
)

// binaryOps are ops on two operands that stretch to a common shape.
var binaryOps = family{
	"add":       binary((*arith.Graph).Add, func(x, y int32) int32 { return x + y }),
	"sub":       binary((*arith.Graph).Sub, func(x, y int32) int32 { return x - y }),
	"mul":       binary((*arith.Graph).Mul, func(x, y int32) int32 { return x * y }),
	"real_div":  binary((*arith.Graph).Div, quotient),
	"floor_div": binary(pairs(func(x, y float64) float64 { return math.Floor(x / y) }), floorDiv),
	"mod":       binary(pairs(floorMod), func(x, y int32) int32 { return x - floorDiv(x, y)*y }),
	"pow":       binary(pairs(math.Pow), func(x, y int32) int32 { return int32(math.Pow(float64(x), float64(y))) }),
	"maximum":   binary(pairs(math.Max), func(x, y int32) int32 { return max(x, y) }),
	"minimum":   binary(pairs(math.Min), func(x, y int32) int32 { return min(x, y) }),

	"equal":         comparison(func(x, y float64) bool { return x == y }),
	"not_equal":     comparison(func(x, y float64) bool { return x != y }),
	"greater":       comparison(func(x, y float64) bool { return x > y }),
	"greater_equal": comparison(func(x, y float64) bool { return x >= y }),
	"less":          comparison(func(x, y float64) bool { return x < y }),
	"less_equal":    comparison(func(x, y float64) bool { return x <= y }),

	"logical_and": binary(nil, func(x, y int32) int32 { return x & y }),
	"logical_or":  binary(nil, func(x, y int32) int32 { return x | y }),
	"logical_xor": binary(nil, func(x, y int32) int32 { return x ^ y }),
}

type vectorPair = func(g *arith.Graph, y, a, b []float32)

// pairs makes a function of slices of one of numbers. An operand of one element stands for all.
func pairs(f func(x, y float64) float64) vectorPair {
	return func(g *arith.Graph, y, a, b []float32) {
		stepA, stepB := min(1, len(a)-1), min(1, len(b)-1)
		for i := range y {
			y[i] = float32(f(float64(a[i*stepA]), float64(b[i*stepB])))
		}
		g.Store(y)
	}
}

func binary(floats vectorPair, ints func(x, y int32) int32) impl {
	return func(c *call) {
		x, y := c.array("x"), c.array("y")
		shape := c.stretch(x, y)
		if c.err != nil {
			return
		}
		out := c.blank(c.declared(0).DType, shape...)
		w := newWalk(shape, out, x.broadcast(shape), y.broadcast(shape))
		if x.isFloat() {
			joinRows(c.graph(), &w, floats, [3][]float32{out.floats, x.floats, y.floats})
		} else {
			joinInts(&w, ints, [3][]int32{out.ints, x.ints, y.ints})
		}
		c.yield(out)
	}
}

// stretch is the common shape of arrays under numpy's rule.
func (c *call) stretch(arrays ...*array) []int {
	var shape []int
	for _, a := range arrays {
		if len(a.shape) > len(shape) {
			shape = append(ones(len(a.shape)-len(shape)), shape...)
		}
		lead := len(shape) - len(a.shape)
		for i, n := range a.shape {
			switch at := &shape[lead+i]; {
			case *at == 1:
				*at = n
			case n != 1 && n != *at:
				c.fail(&mil.Fault{Rule: mil.ErrShape, Got: a.typ().String(), Want: "a shape that stretches to " + mil.ShapeString(sizes(shape))})
				return nil
			}
		}
	}
	return shape
}

// joinRows applies f row by row, shared among cores where there is much to do. Operands that do not lie one element after the
// other are gathered first; one that repeats an element is that element.
func joinRows(g *arith.Graph, w *walk, f vectorPair, data [3][]float32) {
	switch {
	case w.n*w.rows < parallelFrom:
		joinSome(g, w, f, data)
	case w.rows == 1:
		y, a, b := data[0][w.at[0]:][:w.n], w.operand(data[1], 1, new([]float32)), w.factorOf(data[:], 1, 2, new([]float32))
		spread(g, w.n, func(lo, hi int) { f(g, y[lo:hi], piece(a, lo, hi), piece(b, lo, hi)) })
	default:
		grain := max(1, parallelFrom/2/w.n)
		g.Parallel(w.rows, grain, blocks(func(lo, hi int) {
			part := w.part(lo, hi)
			joinSome(g, &part, f, data)
		}))
	}
}

func joinSome(g *arith.Graph, w *walk, f vectorPair, data [3][]float32) {
	var scratch [2][]float32
	for w.next() {
		f(g, data[0][w.at[0]:][:w.n], w.operand(data[1], 1, &scratch[0]), w.factorOf(data[:], 1, 2, &scratch[1]))
	}
}

// piece is a part of an operand.
func piece(x []float32, lo, hi int) []float32 {
	if len(x) == 1 {
		return x
	}
	return x[lo:hi]
}

// operand is the current row of array k as a slice: one element if it is the same throughout.
func (w *walk) operand(x []float32, k int, scratch *[]float32) []float32 {
	at, stride := w.at[k], w.inner[k]
	switch stride {
	case 0:
		return x[at : at+1]
	case 1:
		return x[at:][:w.n]
	}
	if *scratch == nil {
		*scratch = make([]float32, w.n)
	}
	for i := range *scratch {
		(*scratch)[i] = x[at+i*stride]
	}
	return *scratch
}

func joinInts(w *walk, f func(x, y int32) int32, data [3][]int32) {
	for w.next() {
		for i := range w.n {
			data[0][w.at[0]+i*w.inner[0]] = f(data[1][w.at[1]+i*w.inner[1]], data[2][w.at[2]+i*w.inner[2]])
		}
	}
}

// quotient truncates; nothing is divided by zero.
func quotient(x, y int32) int32 {
	if y == 0 {
		return 0
	}
	return x / y
}

func floorDiv(x, y int32) int32 {
	q := quotient(x, y)
	if y != 0 && x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func floorMod(x, y float64) float64 {
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func comparison(f func(x, y float64) bool) impl {
	return func(c *call) {
		x, y := c.array("x"), c.array("y")
		shape := c.stretch(x, y)
		if c.err != nil {
			return
		}
		a, b := x.broadcast(shape), y.broadcast(shape)
		out := newArray(mil.Bool, shape...)
		w := newWalk(shape, out, a, b)
		for w.next() {
			for i := range w.n {
				if f(a.number(w.at[1]+i*w.inner[1]), b.number(w.at[2]+i*w.inner[2])) {
					out.ints[w.at[0]+i*w.inner[0]] = 1
				}
			}
		}
		c.yield(out)
	}
}

// number is an element by its place in memory.
func (a *array) number(at int) float64 {
	if a.floats != nil {
		return float64(a.floats[at])
	}
	return float64(a.ints[at])
}

// choosing picks elements by a condition.
var choosing = family{"select": choose}

func choose(c *call) {
	cond, a, b := c.array("cond"), c.array("a"), c.array("b")
	shape := c.stretch(cond, a, b)
	if c.err != nil {
		return
	}
	out := newArray(c.declared(0).DType, shape...)
	copyInto(out, b.broadcast(shape))
	w := newWalk(shape, out, cond.broadcast(shape), a.broadcast(shape))
	for w.next() {
		for i := range w.n {
			if cond.ints[w.at[1]+i*w.inner[1]] == 0 {
				continue
			}
			to, from := w.at[0]+i*w.inner[0], w.at[2]+i*w.inner[2]
			if a.isFloat() {
				out.floats[to] = a.floats[from]
			} else {
				out.ints[to] = a.ints[from]
			}
		}
	}
	c.yield(out)
}
