package interp

import (
	"math"
	"slices"
	"sort"

	"anelab/coreml/mil"
	"anelab/internal/arith"
)

// reductions fold dimensions.
var reductions = family{
	"reduce_max": reduce(greatest), "reduce_min": reduce(least), "reduce_sum": reduce(arith.Sum64),
	"reduce_mean":        reduce(func(x []float64) float64 { return arith.Sum64(x) / float64(len(x)) }),
	"reduce_prod":        reduce(product),
	"reduce_l1_norm":     reduce(func(x []float64) float64 { return arith.Sum64(mapped(x, math.Abs)) }),
	"reduce_l2_norm":     reduce(func(x []float64) float64 { return math.Sqrt(sumSquares(x)) }),
	"reduce_sum_square":  reduce(sumSquares),
	"reduce_log_sum":     reduce(func(x []float64) float64 { return logarithm(arith.Sum64(x)) }),
	"reduce_log_sum_exp": reduce(logSumExp),
	"reduce_argmax":      argOf(func(x, best float32) bool { return x > best }),
	"reduce_argmin":      argOf(func(x, best float32) bool { return x < best }),
}

// reduce folds rows of float64 numbers, rounds once and leaves integers whole.
func reduce(fold func(row []float64) float64) impl {
	return func(c *call) {
		x := c.array("x")
		axes := c.axes("axes", len(x.shape))
		moved, _ := x.toLast(axes)
		moved = moved.contiguous()
		var kept []int
		for i, n := range x.shape {
			switch {
			case !slices.Contains(axes, i):
				kept = append(kept, n)
			case c.flag("keep_dims"):
				kept = append(kept, 1)
			}
		}
		out := newArray(x.dtype, kept...)
		row := make([]float64, count(moved.shape[len(x.shape)-len(axes):]))
		for i := range out.count() {
			moved.widen(row, moved.offset+i*len(row))
			if v := fold(row); out.isFloat() {
				out.floats[i] = float32(v)
			} else {
				out.ints[i] = int32(v)
			}
		}
		if out.isFloat() {
			c.graph().Store(out.floats)
		}
		c.yield(out)
	}
}

// widen copies elements that lie one after the other, from a place in memory on.
func (a *array) widen(row []float64, at int) {
	if a.floats == nil {
		for k := range row {
			row[k] = float64(a.ints[at+k])
		}
		return
	}
	for k, v := range a.floats[at:][:len(row)] {
		row[k] = float64(v)
	}
}

func greatest(x []float64) float64 {
	m := math.Inf(-1)
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func least(x []float64) float64 {
	m := math.Inf(1)
	for _, v := range x {
		m = min(m, v)
	}
	return m
}

func product(x []float64) float64 {
	p := 1.0
	for _, v := range x {
		p *= v
	}
	return p
}

// mapped changes x in place.
func mapped(x []float64, f func(float64) float64) []float64 {
	for i, v := range x {
		x[i] = f(v)
	}
	return x
}

func sumSquares(x []float64) float64 {
	return arith.Sum64(mapped(x, func(v float64) float64 { return v * v }))
}

func logSumExp(x []float64) float64 {
	m := greatest(x)
	if math.IsInf(m, 0) {
		return m
	}
	return m + logarithm(arith.Sum64(mapped(x, func(v float64) float64 { return arith.Exp64(v - m) })))
}

// argOf finds the first element that is better than all before it.
func argOf(better func(x, best float32) bool) impl {
	return func(c *call) {
		x := c.array("x")
		axis := c.axis("axis", -1, len(x.shape))
		moved, _ := x.toLast([]int{axis})
		shape := slices.Clone(x.shape)
		if shape[axis] = 1; !c.flag("keep_dims") {
			shape = slices.Delete(shape, axis, axis+1)
		}
		out := newArray(c.declared(0).DType, shape...)
		rows, n := toFloats(moved), x.shape[axis]
		for i := range out.ints {
			row, best := rows[i*n:(i+1)*n], 0
			for k, v := range row {
				if better(v, row[best]) {
					best = k
				}
			}
			out.ints[i] = int32(best)
		}
		c.yield(out)
	}
}

// ordering walks along one axis.
var ordering = family{"argsort": argsort, "topk": topK, "cumsum": cumsum, "softmax": softmax}

// along gives f the rows of x along an axis, contiguous, and yields what f makes of them with the axis back in its place.
func (c *call) along(x *array, axis int, f func(x *array) []*array) {
	moved, back := x.toLast([]int{axis})
	for _, y := range f(moved.contiguous()) {
		c.yield(y.permute(back))
	}
}

// sorted is the order of a row, equal elements in theirs.
func sorted(row []float32, ascending bool) []int32 {
	order := make([]int32, len(row))
	for i := range order {
		order[i] = int32(i)
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := row[order[i]], row[order[j]]
		if ascending {
			return a < b
		}
		return a > b
	})
	return order
}

func argsort(c *call) {
	x := c.array("x")
	c.along(x, c.axis("axis", -1, len(x.shape)), func(x *array) []*array {
		_, indices := c.ranked(x, x.shape[len(x.shape)-1], mil.Int32)
		return []*array{indices}
	})
}

// topK: −1 takes the whole axis.
func topK(c *call) {
	x, k := c.array("x"), c.int("k", 1)
	axis := c.axis("axis", -1, len(x.shape))
	if k == -1 {
		k = x.shape[axis]
	}
	if k < 0 || k > x.shape[axis] {
		c.failValue("k", plural(k, "element"), plural(x.shape[axis], "element")+" at most")
		return
	}
	d := mil.Int32
	if len(c.op.Outputs) > 1 {
		d = c.declared(1).DType
	}
	c.along(x, axis, func(x *array) []*array {
		values, indices := c.ranked(x, k, d)
		return []*array{values, indices}[:len(c.op.Outputs)]
	})
}

// ranked is the first k of every row in order, and where they were.
func (c *call) ranked(x *array, k int, d mil.DType) (values, indices *array) {
	n := x.shape[len(x.shape)-1]
	shape := append(slices.Clone(x.shape[:len(x.shape)-1]), k)
	values, indices = newArray(x.dtype, shape...), newArray(d, shape...)
	data := toFloats(x)
	for r := 0; r*n < len(data); r++ {
		for i, from := range sorted(data[r*n:(r+1)*n], c.flag("ascending"))[:k] {
			indices.ints[r*k+i] = from
			values.put(r*k+i, x, r*n+int(from), 1)
		}
	}
	return values, indices
}

func cumsum(c *call) {
	x := c.array("x")
	c.along(x, c.axis("axis", 0, len(x.shape)), func(x *array) []*array {
		n, out := x.shape[len(x.shape)-1], newArray(x.dtype, x.shape...)
		for lo := 0; lo < out.count(); lo += n {
			c.accumulate(out, x, lo, n)
		}
		if out.isFloat() {
			c.graph().Store(out.floats)
		}
		return []*array{out}
	})
}

// accumulate is the running sum of one row.
func (c *call) accumulate(out, x *array, lo, n int) {
	total, exclusive := 0.0, c.flag("exclusive")
	for i := range n {
		at := lo + i
		if c.flag("reverse") {
			at = lo + n - 1 - i
		}
		v := x.number(x.offset + at)
		sum := total + v
		if exclusive {
			sum = total
		}
		if total += v; out.isFloat() {
			out.floats[at] = float32(sum)
		} else {
			out.ints[at] = int32(sum)
		}
	}
}

func softmax(c *call) {
	x := c.array("x")
	c.along(x, c.axis("axis", -1, len(x.shape)), func(x *array) []*array {
		out := c.blank(x.dtype, x.shape...)
		c.graph().SoftmaxRows(out.floats, x.flat(), x.shape[len(x.shape)-1])
		return []*array{out}
	})
}
