package emit

import (
	"fmt"

	"anelab/gemma4"
)

// blockwise is attention with an online softmax over blocks of positions (spec forward.md §4.8): greatest score m, sum ℓ and an
// output o that is normalised after every block, each step an op of its own as in [attention.Flash]. A block of which a query sees
// nothing must leave ℓ and o as they are: the sum does by itself, for the output the factor is made 1. scores are masked
// [1, H, T, rows]; the result is [1, H, T, d].
func (w *writer) blockwise(scores, mask string, values string, y gemma4.Layer, rows int64) string {
	total := w.shape(scores)[3]
	var m, l, o string
	for lo := int64(0); lo < total; lo += rows {
		hi, at := min(lo+rows, total), fmt.Sprintf("block%d_", lo/rows)
		last := []arg{w.ints("axes", 3), w.flag("keep_dims", true)}
		block := w.slice(at+"scores", scores, 3, lo, hi)
		next := w.op("reduce_max", at+"most", append([]arg{in("x", block)}, last...)...)
		if m != "" {
			next = w.op("maximum", at+"greatest", in("x", m), in("y", next))
		}
		powers := w.op("exp", at+"powers", in("x", w.op("sub", at+"differences", in("x", block), in("y", next))))
		sum := w.op("reduce_sum", at+"sum", append([]arg{in("x", powers)}, last...)...)
		old := ""
		if m != "" {
			old = w.mul(at+"kept", l, w.op("exp", at+"alpha", in("x", w.op("sub", at+"fall", in("x", m), in("y", next)))))
			sum = w.add2(at+"total", old, sum)
		}
		guarded := w.op("add", at+"guarded", in("x", sum), w.set("y", f16(1e-7)))
		inverse := w.op("real_div", at+"inverse", w.set("x", f16(1)), in("y", guarded))
		mixed := w.mul(at+"share", w.mix(at+"mixed", powers, w.slice(at+"values", values, 2, lo, hi), y), inverse)
		if m != "" {
			factor := w.mul(at+"factor", old, inverse)
			mixed = w.add2(at+"output", w.mul(at+"rest", o, w.unlessHidden(at, factor, mask, lo, hi)), mixed)
		}
		m, l, o = next, sum, mixed
	}
	return o
}

// unlessHidden is the factor where a query sees something of rows [lo, hi), else 1.
func (w *writer) unlessHidden(at, factor, mask string, lo, hi int64) string {
	seen := w.op("exp", at+"seen", in("x", w.op("reduce_max", at+"open", in("x", w.slice(at+"mask", mask, 3, lo, hi)), w.ints("axes", 3), w.flag("keep_dims", true))))
	unseen := w.op("sub", at+"unseen", w.set("x", f16(1)), in("y", seen))
	return w.add2(at+"step", w.mul(at+"stepped", factor, seen), unseen)
}
