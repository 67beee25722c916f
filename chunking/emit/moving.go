package emit

import (
	"slices"

	"anelab/attention"
	"anelab/coreml/mil"
	"anelab/internal/half"
	"anelab/swa"
)

// In a cache of every position row i is position i, and what a policy hides moves with the query. The causal mask knows where the
// query is: shifted by R it is 0 where p − j ≥ R. So a head that sees j < S and p − j < R is masked by
//
//	causal[j] − h/(1 − h),  h = exp(causal[j+R]) for j ≥ S, 0 below
//
// h is 1 where the head must not look, and −1/0 is −∞; elsewhere nothing is added. Products and quotients of 0 and 1 are exact.

// stream is what a head sees: the first Sink positions and the last Recent; everything if Recent is 0.
type stream struct{ sink, recent int }

// streamsOf recognises a policy by what it shows, head by head; ok is false for any other form, and for heads that stream over
// different numbers of positions.
func streamsOf(p attention.Policy, heads, context int) (of []stream, ok bool) {
	recent := context
	for g, group := range p.Groups(heads) {
		s := streamAt(p.Visible(nil, g, context-1), context)
		if s.recent < context && recent < context && s.recent != recent {
			return nil, false
		}
		recent = min(recent, s.recent)
		for pos := range context {
			if !slices.Equal(p.Visible(nil, g, pos), s.visible(pos)) {
				return nil, false
			}
		}
		of = append(of, slices.Repeat([]stream{s}, group.Hi-group.Lo)...)
	}
	return of, len(of) == heads
}

// streamAt reads the form off what the last position sees.
func streamAt(spans []swa.Span, context int) stream {
	switch {
	case len(spans) == 1 && spans[0].Lo > 0:
		return stream{recent: spans[0].Len()}
	case len(spans) == 2 && spans[0].Lo == 0:
		return stream{spans[0].Len(), spans[1].Len()}
	}
	return stream{recent: context}
}

// visible are the spans that the form shows.
func (s stream) visible(pos int) []swa.Span {
	lo := max(pos-s.recent+1, 0)
	switch {
	case lo <= s.sink:
		return []swa.Span{{Lo: 0, Hi: pos + 1}}
	case s.sink == 0:
		return []swa.Span{{Lo: lo, Hi: pos + 1}}
	}
	return []swa.Span{{Lo: 0, Hi: s.sink}, {Lo: lo, Hi: pos + 1}}
}

// seesAll reports whether every head sees every position of a context.
func seesAll(p attention.Policy, heads, context int) bool {
	of, ok := streamsOf(p, heads, context)
	return ok && !slices.ContainsFunc(of, func(s stream) bool { return s.recent < context })
}

// moving is the mask [1, 1|H, T, C] of a policy over a cache of every position.
func (w *writer) moving(name, causal string, p attention.Policy, heads int) string {
	context := w.shape(causal)[3]
	of, _ := streamsOf(p, heads, int(context))
	narrow := slices.MinFunc(of, func(a, b stream) int { return a.recent - b.recent }).recent
	later := w.slice(name+"_later", causal, 3, int64(narrow), context)
	past := w.op("pad", name+"_past", in("x", later), w.ints("pad", 0, 0, 0, 0, 0, 0, 0, int64(narrow)), w.set("mode", mil.Scalar("constant")),
		w.set("constant_val", mil.Scalar(mil.F16(half.F32ToF16(minusInf)))))
	gone := w.op("exp", name+"_gone", in("x", past))
	hidden := w.mul(name+"_hidden", gone, w.named(name+"_heads", stored(hides(of, int(context)))))
	rest := w.op("sub", name+"_rest", w.set("x", f16(1)), in("y", hidden))
	wall := w.op("real_div", name+"_wall", in("x", w.scale(name+"_negated", hidden, -1)), in("y", rest))
	return w.add2(name, causal, wall)
}

// hides is 1 where a head that streams looks at what is no sink: [1, 1|H, 1, C].
func hides(of []stream, context int) *mil.Value {
	if !slices.ContainsFunc(of, func(s stream) bool { return s != of[0] }) {
		of = of[:1]
	}
	var bits []mil.F16
	for _, s := range of {
		for j := range context {
			one := float32(0)
			if s.recent < context && j >= s.sink {
				one = 1
			}
			bits = append(bits, mil.F16(half.F32ToF16(one)))
		}
	}
	v := mil.Vector(bits...)
	v.Type.Shape = []int64{1, int64(len(of)), 1, int64(context)}
	return v
}
