package talk

import (
	"context"

	"anelab/coreml/bundle"
	"anelab/internal/format"
)

// Programs are the chunks of a bundle, run by the interpreter.
type Programs struct{ *bundle.Bundle }

// Begin implements [Speaker].
func (p Programs) Begin(int) (Sequence, error) {
	c, err := p.NewChain()
	return &chain{c, p.Path}, err
}

// Ends implements [Speaker].
func (p Programs) Ends() []int { return p.Config.Ends() }

// Layout implements [Speaker].
func (p Programs) Layout() string { return p.Bundle.Layout }

// StepBytes implements [Speaker].
func (p Programs) StepBytes() int64 { return p.WeightBytes() }

// KVBytes implements [Speaker].
func (p Programs) KVBytes(int) int64 { return p.CacheBytes() }

// chain is a sequence through the chunks.
type chain struct {
	*bundle.Chain
	path string
}

// Prefill feeds a prompt a token at a time: that is right for any prompt, whatever batches the chunks know.
func (c *chain) Prefill(ctx context.Context, tokens []int) (logits []float32, err error) {
	for _, token := range tokens {
		if logits, err = c.Step(ctx, token); err != nil {
			return nil, err
		}
	}
	return logits, nil
}

func (c *chain) Step(ctx context.Context, token int) ([]float32, error) {
	if _, err := c.Chain.Step(ctx, token); err != nil {
		return nil, err
	}
	logits := c.Logits()
	if logits == nil {
		return nil, &format.Error{Path: c.path, Field: "token_id", Got: "a head that takes its token from several pieces", Want: "one reduce_argmax over all logits"}
	}
	return logits, nil
}
