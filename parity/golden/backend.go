package golden

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anelab/gemma4"
	"anelab/parity"
)

// Backend plays a case back as taps.
type Backend struct{ Case *Case }

// Name implements [parity.Backend].
func (b Backend) Name() string { return filepath.Base(b.Case.file.Path()) }

// ParityCase is what another backend must run to be comparable with the recording: the prompt, then every token but the last.
func (c *Case) ParityCase() parity.Case {
	p := parity.Case{Name: c.Name, Prompt: c.Prompt}
	if n := len(c.Tokens); n > 0 {
		p.Follow = c.Tokens[:n-1]
	}
	return p
}

// Run implements [parity.Backend]. The case must be the recorded one; it may be cut into calls differently, since a recording
// can be cut anywhere.
func (b Backend) Run(ctx context.Context, c parity.Case) iter.Seq2[parity.Tap, error] {
	return func(yield func(parity.Tap, error) bool) {
		recorded := b.Case.ParityCase()
		if !slices.Equal(c.Prompt, recorded.Prompt) || !slices.Equal(c.Follow, recorded.Follow) {
			yield(parity.Tap{}, fmt.Errorf("%s has no recording of these tokens", b.Case.file.Path()))
			return
		}
		tracks := b.Case.tracks()
		for lo, hi := range c.Calls() {
			for _, t := range tracks {
				tap, ok := t.cut(lo, hi)
				if ok && !yield(tap, ctx.Err()) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// tracks are the recorded tensors of a case as taps over all their positions, in the order of a pass.
func (c *Case) tracks() []track {
	var list []track
	for _, key := range c.Keys() {
		for _, t := range c.tracksOf(key) {
			if slices.Contains(parity.Points, t.Point) { // router_* and the like are no points
				list = append(list, t)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b track) int { return a.rank() - b.rank() })
	return list
}

// track is a tap that covers many calls.
type track struct{ parity.Tap }

// rank orders tracks as a pass visits them.
func (t track) rank() int {
	const points = 64 // more than there are
	i := slices.Index(parity.Points, t.Point)
	if t.Layer >= 0 {
		return points + points*t.Layer + i
	}
	if i < slices.Index(parity.Points, gemma4.PointQ) {
		return i
	}
	return points<<16 + i // after every layer: isNumber admits no layer above 65535
}

// tracksOf turns one recorded tensor into tracks. Decode and formula files hold the last rows of a prompt, or one row per
// generated token.
func (c *Case) tracksOf(key string) []track {
	data, shape, _ := c.Tensor(key)
	name, layer := splitKey(key)
	last := len(c.Prompt) - 1
	one := func(point gemma4.Point, layer, first int, shape ...int) []track {
		return []track{{parity.Tap{Point: point, Layer: layer, First: first, Shape: shape, Data: data}}}
	}
	switch {
	case c.file.Kind == Passes:
		return one(gemma4.Point(name), layer, 0, shape...)
	case name == "logits": // row i follows the prompt and i tokens
		return one(gemma4.PointLogits, -1, last, shape...)
	case name == "k" || name == "v":
		return one(gemma4.Point(name), layer, 0, shape...)
	case name == "embeds_last2":
		return one(gemma4.PointEmbeds, -1, last-1, shape...)
	case name == "final_norm_last":
		return one(gemma4.PointFinalNorm, -1, last, 1, shape[0])
	case name == "cache_k_last":
		return one(gemma4.PointK, layer, last, 1, 1, shape[1])
	case name == "cache_v_last":
		return one(gemma4.PointV, layer, last, 1, 1, shape[1])
	case name == "hidden_last2":
		return hiddenTracks(data, shape, last-1)
	}
	return nil
}

// hiddenTracks cuts hidden_last2 [L, 2, D] into layers.
func hiddenTracks(data []float32, shape []int, first int) []track {
	var list []track
	width := shape[1] * shape[2]
	for l := range shape[0] {
		list = append(list, track{parity.Tap{Point: gemma4.PointHidden, Layer: l, First: first,
			Shape: shape[1:], Data: data[l*width : (l+1)*width]}})
	}
	return list
}

// splitKey takes "hidden.3" apart; keys without a layer, rope_cos.sliding among them, have layer −1.
func splitKey(key string) (name string, layer int) {
	name, tail, _ := strings.Cut(key, ".")
	if l, err := strconv.Atoi(tail); err == nil {
		return name, l
	}
	return key, -1
}

// cut returns the rows of a track that the call [lo, hi) computes; ok is false when there are none.
func (t track) cut(lo, hi int) (parity.Tap, bool) {
	if t.Point == gemma4.PointProbs {
		return t.cutProbs(lo, hi)
	}
	from, to := max(lo, t.First), min(hi, t.First+t.Shape[0])
	if from >= to {
		return parity.Tap{}, false
	}
	width := len(t.Data) / t.Shape[0]
	tap := t.Tap
	tap.First = from
	tap.Shape = slices.Clone(t.Shape)
	tap.Shape[0] = to - from
	tap.Data = t.Data[(from-t.First)*width : (to-t.First)*width]
	return tap, true
}

// cutProbs cuts [H, T, T]: the call's queries, and the positions up to its last one.
func (t track) cutProbs(lo, hi int) (parity.Tap, bool) {
	heads, n := t.Shape[0], t.Shape[1]
	if lo >= n {
		return parity.Tap{}, false
	}
	tap := t.Tap
	tap.First, tap.Shape, tap.Data = lo, []int{heads, hi - lo, hi}, nil
	for h := range heads {
		for q := lo; q < hi; q++ {
			tap.Data = append(tap.Data, t.Data[(h*n+q)*n:][:hi]...)
		}
	}
	return tap, true
}
