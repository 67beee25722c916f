package interp

import (
	"math"
	"slices"
	"strings"

	"anelab/coreml/mil"
	"anelab/internal/arith"
	"anelab/quant"
)

// products sum over common dimensions of two operands.
var products = family{"linear": linear, "matmul": matmul, "einsum": einsum, "scaled_dot_product_attention": attention}

// floating fails unless the result is of a floating type.
func (c *call) floating() bool {
	if d := c.declared(0).DType; !d.IsFloat() {
		c.failValue("x", d.String(), "fp16 or fp32: products of integers are not supported")
		return false
	}
	return true
}

func linear(c *call) {
	if !c.floating() {
		return
	}
	x, w := c.array("x"), c.value("weight")
	m, err := w.matrix(w.shape[0])
	if err != nil {
		c.fail(err)
		return
	}
	t := count(x.shape[:len(x.shape)-1])
	out := c.blank(c.declared(0).DType, append(slices.Clone(x.shape[:len(x.shape)-1]), w.shape[0])...)
	c.graph().LinearBias(out.floats, m, x.flat(), t, c.floats("bias"))
	c.yield(out)
}

// swapped exchanges the last two dimensions.
func (a *array) swapped() *array {
	perm := make([]int, len(a.shape))
	for i := range perm {
		perm[i] = i
	}
	n := len(perm)
	perm[n-2], perm[n-1] = n-1, n-2
	return a.permute(perm)
}

func matmul(c *call) {
	if !c.floating() {
		return
	}
	x, y := c.array("x"), c.value("y")
	rowX, columnY := len(x.shape) == 1, len(y.shape) == 1
	if rowX {
		x = x.reshape(1, x.shape[0])
	} else if c.flag("transpose_x") {
		x = x.swapped()
	}
	var out *array
	if y.weight != nil && len(y.shape) == 2 {
		out = c.timesConstant(x, y)
	} else {
		b := c.elements(y)
		if columnY {
			b = b.reshape(b.shape[0], 1)
		} else if c.flag("transpose_y") {
			b = b.swapped()
		}
		out = c.times(c.graph(), x, b)
	}
	if c.err != nil {
		return
	}
	shape := slices.Clone(out.shape)
	if columnY {
		shape = shape[:len(shape)-1]
	}
	if rowX {
		shape = slices.Delete(shape, len(out.shape)-2, len(out.shape)-1)
	}
	c.yield(out.reshape(shape...))
}

// timesConstant multiplies with a constant in its stored form.
func (c *call) timesConstant(x *array, y *value) *array {
	m := y.weight.matrix(y.shape[0])
	rows := x.shape[:len(x.shape)-1]
	n, product := m.Cols(), (*arith.Graph).Matmul
	if c.flag("transpose_y") {
		n, product = m.Rows(), func(g *arith.Graph, y, x []float32, w quant.Matrix, t int) { g.Linear(y, w, x, t) }
	}
	out := c.blank(c.declared(0).DType, append(slices.Clone(rows), n)...)
	product(c.graph(), out.floats, x.flat(), m, count(rows))
	return out
}

// times is the product of stacks of matrices, a [B…, M, K] and b [B…, K, N], which stretch to each other.
func (c *call) times(g *arith.Graph, a, b *array) *array {
	ra, rb := len(a.shape), len(b.shape)
	m, k, n := a.shape[ra-2], a.shape[ra-1], b.shape[rb-1]
	batch := c.stretch(a.view(a.shape[:ra-2], a.stride[:ra-2], 0), b.view(b.shape[:rb-2], b.stride[:rb-2], 0))
	if c.err != nil || b.shape[rb-2] != k {
		c.fail(&mil.Fault{Rule: mil.ErrShape, Operand: "y", Got: b.typ().String(), Want: "a matrix that " + a.typ().String() + " can be multiplied with"})
		return nil
	}
	a, b = a.contiguous(), inRows(b)
	out := c.blank(c.declared(0).DType, append(slices.Clone(batch), m, n)...)
	if out.count() == 0 {
		return out
	}
	w := newWalk(batch, out.view(batch, out.stride[:len(batch)], 0), stackOf(a, batch), stackOf(b, batch))
	for w.next() {
		// One matrix for all rows of a: the rows are one matrix too.
		together := 1
		if w.inner[2] == 0 && w.inner[1] == m*k {
			together = w.n
		}
		for i := 0; i < w.n; i += together {
			y := out.floats[w.at[0]+i*w.inner[0]:][:together*m*n]
			multiply(g, y, a.floats[w.at[1]+i*w.inner[1]:][:together*m*k], b.matrixAt(w.at[2]+i*w.inner[2]), together*m)
		}
	}
	return out
}

// stackOf is the batch dimensions of a stack of matrices, stretched.
func stackOf(a *array, batch []int) *array {
	n := len(a.shape) - 2
	return a.view(a.shape[:n], a.stride[:n], a.offset).broadcast(batch)
}

// inRows is b with the rows or the columns of every matrix in one piece.
func inRows(b *array) *array {
	n := len(b.shape)
	if b.stride[n-1] == 1 || b.stride[n-2] == 1 {
		return b
	}
	return b.contiguous()
}

// product is one operand of a multiplication: a matrix [K, N] by rows, or by columns.
type operand struct {
	rows
	columns orientation
}

// orientation says that the rows of a matrix in memory are the columns of the operand.
type orientation bool

// matrixAt is the last two dimensions of an array as an operand.
func (a *array) matrixAt(offset int) operand {
	n := len(a.shape)
	if a.stride[n-1] == 1 || a.shape[n-1] == 1 && a.stride[n-2] != 1 {
		return operand{rows: rows{data: a.floats[offset:], count: a.shape[n-2], len: a.shape[n-1], stride: a.stride[n-2]}}
	}
	return operand{rows{data: a.floats[offset:], count: a.shape[n-1], len: a.shape[n-2], stride: a.stride[n-1]}, true}
}

// multiply is y [t, N] = x [t, K] · w.
func multiply(g *arith.Graph, y, x []float32, w operand, t int) {
	if w.columns {
		g.Linear(y, &w.rows, x, t)
		return
	}
	g.Matmul(y, x, &w.rows, t)
}

// attention is softmax(q·kᵀ/√E + mask)·v, one op with one rounding. A mask of bools keeps where it is true.
func attention(c *call) {
	q, k, v, wide := c.array("query"), c.array("key"), c.array("value"), c.numerics.wide
	e := q.shape[len(q.shape)-1]
	scores := c.times(wide, q, k.swapped())
	if c.err != nil {
		return
	}
	scale := 1 / math.Sqrt(float64(e))
	wide.Map(scores.floats, scores.floats, func(x float64) float64 { return x * scale })
	if mask := c.array("attn_mask"); mask != nil {
		c.addMask(scores, mask)
	}
	wide.SoftmaxRows(scores.floats, scores.floats, scores.shape[len(scores.shape)-1])
	if out := c.times(c.graph(), scores, v); c.err == nil {
		c.yield(out)
	}
}

func (c *call) addMask(scores, mask *array) {
	shape := c.stretch(scores, mask)
	if c.err != nil || count(shape) != scores.count() {
		c.failValue("attn_mask", mask.typ().String(), "a shape that stretches to "+mil.ShapeString(sizes(scores.shape)))
		return
	}
	w := newWalk(shape, scores, mask.broadcast(shape))
	for w.next() {
		for i := range w.n {
			to, from := w.at[0]+i*w.inner[0], w.at[1]+i*w.inner[1]
			switch {
			case mask.isFloat():
				scores.floats[to] += mask.floats[from]
			case mask.ints[from] == 0:
				scores.floats[to] = float32(math.Inf(-1))
			}
		}
	}
}

// einsum multiplies two operands; letters of both that the result lacks are summed over.
func einsum(c *call) {
	values := c.arrays("values")
	left, result, _ := strings.Cut(strings.ReplaceAll(c.text("equation", ""), " ", ""), "->")
	terms := strings.Split(left, ",")
	if len(values) != 2 || !c.floating() {
		c.failValue("values", plural(len(values), "operand"), "two")
		return
	}
	var batch, onlyA, onlyB, inner string
	for _, letter := range dedupe(terms[0] + terms[1]) {
		l := string(letter)
		switch a, b, r := strings.Contains(terms[0], l), strings.Contains(terms[1], l), strings.Contains(result, l); {
		case a && b && r:
			batch += l
		case a && b:
			inner += l
		case a && r:
			onlyA += l
		case b && r:
			onlyB += l
		default:
			c.failValue("equation", l, "letters that are in both terms or in the result")
			return
		}
	}
	size := map[string]int{}
	a, b := c.term(values[0], terms[0], batch+onlyA+inner, size), c.term(values[1], terms[1], batch+inner+onlyB, size)
	if c.err != nil {
		return
	}
	n := func(letters string) int { return count(lengths(letters, size)) }
	out := c.times(c.graph(), stretchOnes(a, batch+onlyA+inner, size).reshape(n(batch), n(onlyA), n(inner)),
		stretchOnes(b, batch+inner+onlyB, size).reshape(n(batch), n(inner), n(onlyB)))
	if c.err != nil {
		return
	}
	have := batch + onlyA + onlyB
	perm := make([]int, len(result))
	for i, letter := range result {
		perm[i] = strings.IndexRune(have, letter)
	}
	c.yield(out.reshape(lengths(have, size)...).permute(perm))
}

func dedupe(s string) string {
	out := ""
	for _, r := range s {
		if !strings.ContainsRune(out, r) {
			out += string(r)
		}
	}
	return out
}

// term orders the dimensions of an operand and notes their sizes.
func (c *call) term(a *array, have, want string, size map[string]int) *array {
	if len(dedupe(have)) != len(have) || len(have) != len(a.shape) {
		c.failValue("equation", have, "each letter once, one for each dimension of "+a.typ().String())
		return a
	}
	perm := make([]int, 0, len(have))
	for _, letter := range want {
		perm = append(perm, strings.IndexRune(have, letter))
	}
	for i, letter := range have {
		size[string(letter)] = max(size[string(letter)], a.shape[i])
	}
	return a.permute(perm)
}

func lengths(letters string, size map[string]int) []int {
	var shape []int
	for _, letter := range letters {
		shape = append(shape, size[string(letter)])
	}
	return shape
}

// stretchOnes gives every dimension the size of its letter.
func stretchOnes(a *array, letters string, size map[string]int) *array {
	return a.broadcast(lengths(letters, size))
}
