package parity

import (
	"context"
	"fmt"
	"iter"
	"math"

	"anelab/coreml"
	"anelab/coreml/bundle"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Packages is the model as the decode chunks of a converter, in a [bundle.Chain]. It yields the tensors that cross the borders of
// chunks, or those inside that taps name.
//
// Chunks take one token per call: a case wants Batch 1.
type Packages struct {
	Label  string
	Model  *gemma4.Model // for the sizes of the tensors, and for rows and rotary angles where no tables give them; its mode rounds them
	Tables bundle.Host   // what a bundle gives its chunks; nil for the model's own
	Chunks []PackageChunk
	// Windows are the rows of caches that keep a window, by kind of layer; 0 where caches keep every position. nil leaves it to the
	// ports.
	Windows *[2]int
}

// PackageChunk is one package of the chain and the layers [Lo, Hi) that it holds.
type PackageChunk struct {
	MIL
	Lo, Hi int
	Taps   map[string]PackageTap // results by name; nil yields what crosses the borders of chunks alone

	// Predictor runs the package in place of the interpreter, if it is set. The model is still asked what the ports are.
	Predictor
}

// PackageTap is a result inside a package that the forward pass has a name for.
type PackageTap struct {
	Point gemma4.Point
	Layer int // −1 outside the layers
	Order TapOrder
}

// TapOrder says how the elements of a tap lie: the values of a token side by side, or the tokens of a value.
type TapOrder uint8

// Convolutions have channels before tokens, [1, C, 1, T].
const (
	TokensFirst TapOrder = iota
	ChannelsFirst
)

// Name implements [Backend].
func (p Packages) Name() string { return p.Label }

// Where implements [Locator].
func (p Packages) Where(layer int) string {
	for _, c := range p.Chunks {
		if layer >= c.Lo && layer < c.Hi {
			return c.Label
		}
	}
	return ""
}

// Op implements [OpLocator].
func (p Packages) Op(point gemma4.Point, layer int) string {
	for _, c := range p.Chunks {
		for name, t := range c.Taps {
			if t.Point != point || t.Layer != layer {
				continue
			}
			if op := c.function().Body.Producers()[name]; op != nil {
				return fmt.Sprintf("%s/%s (%s)", c.name(), name, op.Type)
			}
		}
	}
	return ""
}

// Run implements [Backend].
func (p Packages) Run(ctx context.Context, c Case) iter.Seq2[Tap, error] {
	return Traced(ctx, func(ctx context.Context, trace gemma4.Tracer) error {
		if len(c.Prompt) > 1 && c.Batch != 1 {
			return &format.Error{Path: p.Label, Field: "case " + c.Name, Got: fmt.Sprintf("calls of %d tokens", c.Batch), Want: "1", Fix: "decode chunks take a token at a time"}
		}
		s, err := p.start("", trace)
		if err != nil {
			return err
		}
		defer s.chain.Close()
		for lo := range c.Calls() {
			if err := s.call(ctx, "", c.Tokens(lo, lo+1)); err != nil {
				return err
			}
			s.chain.Advance(1)
		}
		return nil
	})
}

// start begins a sequence whose steps call a function of the chunks, "" for the chunks' own.
func (p Packages) start(function string, trace gemma4.Tracer) (*sequence, error) {
	s := &sequence{Packages: p, host: p.Tables, trace: trace}
	if s.host == nil {
		s.host = &modelHost{model: p.Model}
	}
	var chunks []*bundle.Chunk
	for i := range p.Chunks {
		chunks = append(chunks, p.Chunks[i].chained(function))
	}
	var err error
	if s.chain, err = bundle.NewChain(s.host, p.context(), chunks...); err != nil {
		return nil, err
	}
	if p.Windows != nil {
		s.chain.Windows = *p.Windows
	}
	return s, nil
}

// chained is a chunk as a chain runs it.
func (c *PackageChunk) chained(function string) *bundle.Chunk {
	if function == "" {
		function = c.name()
	}
	chunk := &bundle.Chunk{Name: c.Label, Model: c.Model, Function: function}
	if c.Predictor != nil {
		chunk.Start = c.onDevice
	}
	return chunk
}

// context is the number of positions that masks have room for; masks of windows do not say how many there are.
func (p Packages) context() int {
	n := int64(0)
	for _, c := range p.Chunks {
		n = max(n, coreml.Context(c.function()))
	}
	if n == 0 || p.Windows != nil && p.Windows[gemma4.Full] > 0 {
		return math.MaxInt
	}
	return int(n)
}
