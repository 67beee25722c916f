package parity

import (
	"context"
	"fmt"
	"iter"

	"anelab/gemma4"
	"anelab/internal/format"
)

// Packages is the model as the decode chunks of a converter, run by the interpreter. The host's part is done here as the ports of
// spec forward.md §4 ask for it: embeddings, rotary rows, masks, caches that go round, what one chunk hands to later ones. Both
// explicit caches and states are served. It yields the tensors that cross the borders of chunks.
//
// Chunks take one token per call: a case wants Batch 1.
type Packages struct {
	Label  string
	Host   *gemma4.Model // for embedding tables and rotary frequencies; its mode rounds them
	Chunks []PackageChunk
	// Windows are the rows of caches that keep a window, by kind of layer; 0 where caches keep every position. Without any, sliding
	// layers have the window of the model's config.
	Windows [2]int
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

// window is the rows of a kind's window, 0 if it has none.
func (p Packages) window(kind gemma4.Kind) int {
	if p.Windows == [2]int{} && kind == gemma4.Sliding {
		return p.Host.Config.SlidingWindow
	}
	return p.Windows[kind]
}

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
		h, err := p.newHost(1)
		if err != nil {
			return err
		}
		defer h.close()
		for lo := range c.Calls() {
			if err := h.step(ctx, c.Tokens(lo, lo+1), trace); err != nil {
				return err
			}
		}
		return nil
	})
}
