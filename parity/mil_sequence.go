package parity

import (
	"context"
	"slices"

	"anelab/coreml/bundle"
	"anelab/coreml/interp"
	"anelab/gemma4"
)

// sequence is packages under way, with what is looked at on the way.
type sequence struct {
	Packages
	chain  *bundle.Chain
	host   bundle.Host
	trace  gemma4.Tracer
	tokens int // of the call under way
}

// call runs a function on tokens and yields what it has a name for. The sequence stays where it is.
func (s *sequence) call(ctx context.Context, function string, tokens []int) error {
	s.tokens = len(tokens)
	s.chain.Inside, s.chain.Watch = s.inside, s.border
	s.tapTables(tokens)
	_, err := s.chain.Call(ctx, function, tokens...)
	return err
}

// silently runs steps that nobody looks at.
func (s *sequence) silently(ctx context.Context, tokens []int) error {
	s.chain.Inside, s.chain.Watch = nil, nil
	for _, token := range tokens {
		if _, err := s.chain.Step(ctx, token); err != nil {
			return err
		}
	}
	return nil
}

// inside yields the taps of a chunk.
func (s *sequence) inside(chunk int) interp.Call {
	taps := s.Chunks[chunk].Taps
	if taps == nil {
		return interp.Call{}
	}
	return interp.Call{
		Only: func(name string) interp.Wanted {
			_, ok := taps[name]
			return interp.Wanted(ok)
		},
		Tap: func(name string, t *interp.Tensor) { s.tap(taps[name], t.Floats) },
	}
}

// border yields what leaves a chunk without taps.
func (s *sequence) border(chunk, _ int, out map[string]*interp.Tensor) {
	c := &s.Chunks[chunk]
	if c.Taps != nil {
		return
	}
	if t := out["per_layer_combined_out"]; t != nil {
		s.tap(PackageTap{Point: gemma4.PointPLE, Layer: -1}, t.Floats)
	}
	switch hidden := out["hidden_states_out"]; {
	case out["hidden_normed"] != nil: // what chunks with states call the last one
		s.tap(PackageTap{Point: gemma4.PointFinalNorm, Layer: -1}, out["hidden_normed"].Floats)
	case hidden != nil && out["token_id"] != nil:
		s.tap(PackageTap{Point: gemma4.PointFinalNorm, Layer: -1}, hidden.Floats)
	case hidden != nil:
		s.tap(PackageTap{Point: gemma4.PointHidden, Layer: c.Hi - 1}, hidden.Floats)
	}
}

// tapTables yields what the host gives: embeddings, and rotary rows where they are not the model's own.
func (s *sequence) tapTables(tokens []int) {
	if s.Tables != nil {
		s.tapRope(gemma4.Sliding, s.host.RopeSliding)
		s.tapRope(gemma4.Full, s.host.RopeFull)
	}
	width := s.Model.Config.HiddenSize
	rows := make([]float32, len(tokens)*width)
	for i, token := range tokens {
		if token >= 0 && token < s.host.Vocabulary() { // the chain says what is wrong with others
			s.host.Embed(rows[i*width:(i+1)*width], token)
		}
	}
	s.tap(PackageTap{Point: gemma4.PointEmbeds, Layer: -1}, rows)
}

// ropePoints are the points of rotary rows by kind of layer: cosines, sines.
var ropePoints = [2][2]gemma4.Point{
	gemma4.Sliding: {gemma4.PointRopeCosSliding, gemma4.PointRopeSinSliding},
	gemma4.Full:    {gemma4.PointRopeCosFull, gemma4.PointRopeSinFull},
}

func (s *sequence) tapRope(kind gemma4.Kind, rows func(cos, sin []float32, pos int)) {
	i := slices.IndexFunc(s.Model.Layers, func(y gemma4.Layer) bool { return y.Kind == kind })
	if i < 0 {
		return
	}
	d := s.Model.Layers[i].HeadDim
	cos, sin := make([]float32, s.tokens*d), make([]float32, s.tokens*d)
	for t := range s.tokens {
		rows(cos[t*d:(t+1)*d], sin[t*d:(t+1)*d], s.chain.Next()+t)
	}
	for side, data := range [2][]float32{cos, sin} {
		s.trace(Tap{Point: ropePoints[kind][side], Layer: -1, First: s.chain.Next(), Shape: []int{s.tokens, d}, Data: data})
	}
}

// tap yields the rows of the call's tokens, or the one row that a head has made of the last of them.
func (s *sequence) tap(at PackageTap, data []float32) {
	width, axes := s.Model.Config.HiddenSize, []int{0}
	switch at.Point {
	case gemma4.PointPLE:
		p := s.Model.Config.HiddenSizePerLayer
		width, axes = p*len(s.Model.Layers), []int{len(s.Model.Layers), p}
	case gemma4.PointLogits, gemma4.PointLogitsPre:
		width = s.Model.Config.VocabSize
	}
	if len(axes) == 1 {
		axes[0] = width
	}
	rows, first := len(data)/width, s.chain.Next()
	if at.Order == ChannelsFirst && rows > 1 {
		data = turned(data, width, rows)
	}
	if rows < s.tokens { // the head of a prefill
		first += s.tokens - rows
	} else {
		rows = s.tokens
	}
	s.trace(Tap{Point: at.Point, Layer: at.Layer, First: first, Shape: slices.Concat([]int{rows}, axes), Data: data[:rows*width]})
}

// turned puts the values of a token side by side.
func turned(data []float32, width, rows int) []float32 {
	out := make([]float32, len(data))
	for c := range width {
		for t := range rows {
			out[t*width+c] = data[c*rows+t]
		}
	}
	return out
}
