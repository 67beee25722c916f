package emit

import (
	"fmt"
	"math"
	"slices"

	"anelab/attention"
	"anelab/chunking/run"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/internal/half"
	"anelab/swa"
)

// The causal masks come from the host, one for all layers of a kind. What a layer's policy hides beyond that is the same in every
// call where row i of its keys is always so many positions from the query: in a window, whose newest row is the last, and in a
// batch that starts a sequence. There the graph adds a constant band of 0 and −∞, made of [attention.Policy.Visible]: the window that
// a prefill's one causal mask lacks (spec forward.md ⚠ D), and in verify calls a guard against masks that show later drafts (⚠ E).

// maskOf is the mask [1, 1|H, T, rows] of layer y.
func (w *writer) maskOf(y gemma4.Layer, rows int64) string {
	port := w.fn.Memory.Banks[y.Index].Mask()
	if w.fn.past() == noPast {
		port = "causal_mask"
	}
	policy := w.fn.Memory.Policies[y.Index]
	key := fmt.Sprintf("%s %s %d", port, policy, rows)
	if name, ok := w.masks[key]; ok {
		return name
	}
	w.masks[key] = port
	b := must(w.fn.band(y, policy, rows))
	prefix, name := w.prefix, identifier(port+"_"+policy.String())
	w.prefix = ""
	switch {
	case b != nil:
		w.masks[key] = w.add2(name, port, w.named(name+"_band", stored(b)))
	case w.fn.pastOf(y) == everyward && !seesAll(policy, y.Heads, int(rows)):
		w.masks[key] = w.moving(name, port, policy, y.Heads)
	}
	w.prefix = prefix
	return w.masks[key]
}

// past says where the keys of earlier positions are.
type past uint8

const (
	noPast    past = iota // there are none: row i is position i
	inOrder               // a window: the last row is that of the last token; sinks may stand in front of it
	inRing                // a ring in any order, with the call's own rows behind it when there are several
	everyward             // row i is position i, of any length
)

func (f *call) pastOf(y gemma4.Layer) past {
	switch {
	case f.past() == noPast:
		return noPast
	case !f.Memory.Banks[y.Index].Windowed():
		return everyward
	case f.caches == StateCaches:
		return inRing
	}
	return inOrder
}

// past is noPast for functions that begin a sequence.
func (f *call) past() past {
	if f.Kind == run.Prefill && f.caches != StateCaches {
		return noPast
	}
	return inOrder
}

// band is what a policy hides beyond the causal mask, nil where that is nothing. The error names policies that no band can say.
func (f *call) band(y gemma4.Layer, p attention.Policy, rows int64) (*mil.Value, error) {
	b := &band{policy: p, heads: y.Heads, rows: int(rows), tokens: f.Tokens}
	switch f.pastOf(y) {
	case everyward:
		if _, ok := streamsOf(p, y.Heads, int(rows)); !ok {
			return nil, &format.Error{Field: fmt.Sprintf("attention of layer %d", y.Index), Got: p.String(), Want: "heads that see everything, or the first and the newest positions",
				Fix: "no mask of a graph says this; choose full, duo:<s>+<r>:<heads> or a window"}
		}
		return nil, nil
	case inRing:
		if own := int(rows); f.Tokens > 1 {
			b.fixed = own - f.Tokens
		} else {
			return nil, f.wholeRing(y, p, own)
		}
		if err := f.wholeRing(y, p, b.fixed); err != nil {
			return nil, err
		}
		b.first = b.fixed
	case inOrder:
		b.first, b.sinks = b.rows-f.Tokens, f.Memory.Banks[y.Index].Keep.Sink
		if err := b.sameSinks(y); err != nil {
			return nil, err
		}
	}
	if b.first > 0 {
		b.pos = 4 * (b.rows + f.Tokens)
		b.strict = f.Tokens > 1
	}
	return b.value(), nil
}

// wholeRing wants a policy that sees all of a ring: which rows a narrower one sees moves with the position.
func (f *call) wholeRing(y gemma4.Layer, p attention.Policy, rows int) error {
	if p.Keep() == swa.Last(rows) && len(p.Groups(y.Heads)) == 1 {
		return nil
	}
	return &format.Error{Field: fmt.Sprintf("attention of layer %d", y.Index), Got: fmt.Sprintf("%s over a ring of %d", p, rows), Want: fmt.Sprintf("sliding:%d", rows),
		Fix: "emit without states, or give all layers of the cache one window"}
}

// sameSinks wants heads that see all of the sinks for ever: rows that one day are hidden move with the position.
func (b *band) sameSinks(y gemma4.Layer) error {
	of, ok := streamsOf(b.policy, y.Heads, 4*(b.rows+b.tokens))
	for _, s := range of {
		ok = ok && s.sink == b.sinks
	}
	if ok || b.sinks == 0 {
		return nil
	}
	return &format.Error{Field: fmt.Sprintf("attention of layer %d", y.Index), Got: fmt.Sprintf("%s over rows of which the first %d stay", b.policy, b.sinks),
		Want: fmt.Sprintf("stream:%d+<r>", b.sinks), Fix: "give all layers that read these rows the same sinks"}
}

var minusInf = float32(math.Inf(-1))

// band is a mask under construction: token t is at position pos+t, and row first is the position of token 0.
type band struct {
	policy       attention.Policy
	heads        int
	tokens, rows int
	first, pos   int
	fixed        int    // rows before it are in no order, and the host's mask alone rules them
	sinks        int    // rows before it are the first positions
	strict       strict // later positions are hidden, too
}

// strict says that a mask does not rely on another to hide what comes later.
type strict bool

// value is the band as fp16 [1, 1|H, T, rows], nil if it hides nothing.
func (b *band) value() *mil.Value {
	groups, of := b.policy.Groups(b.heads), []int{0} // group of each head of the band
	if len(groups) > 1 {
		of = nil
		for g, group := range groups {
			of = append(of, slices.Repeat([]int{g}, group.Hi-group.Lo)...)
		}
	}
	hidden, any := make([]byte, 0, 2*len(of)*b.tokens*b.rows), false
	for _, g := range of {
		for t := range b.tokens {
			row, hides := b.row(g, t)
			hidden, any = append(hidden, row...), any || hides
		}
	}
	if !any {
		return nil
	}
	return mil.TensorValue(mil.TensorOf(mil.Float16, 1, int64(len(of)), int64(b.tokens), int64(b.rows)), hidden)
}

// row is what token t of head group g sees.
func (b *band) row(g, t int) (row []byte, hides bool) {
	seen := make([]bool, b.rows)
	for _, s := range b.policy.Visible(nil, g, b.pos+t) {
		for q := s.Lo; q < min(s.Hi, b.sinks); q++ {
			seen[q] = true
		}
		for q := max(s.Lo, b.pos-b.first+b.sinks); q < s.Hi; q++ {
			seen[q-b.pos+b.first] = true
		}
	}
	wall := half.F32ToF16(minusInf)
	row = make([]byte, 2*b.rows)
	for i := range seen {
		if later := i-b.first > t; seen[i] || i < b.fixed || later && !bool(b.strict) {
			continue
		}
		hides = true
		row[2*i], row[2*i+1] = byte(wall), byte(wall>>8)
	}
	return row, hides
}
