package bundle

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Chain is one sequence run through chunks: the host's part of spec forward.md §6.4. Explicit caches and states are both served;
// which one a chunk wants, and every shape, is read off its inputs. Not safe for concurrent use.
type Chain struct {
	// Watch is told what a chunk gave; the tensors are borrowed.
	Watch func(chunk, pos int, outputs map[string]*interp.Tensor)

	host    Host
	context int
	links   []*link
	pos     int
	scores  string    // name of the tensor that the last chunk takes its token from; "" if there is not just one
	logits  []float32 // what it held in the last step
	ring    bool      // sliding caches are rings, whose rows stay where they were written
	values  map[string]*interp.Tensor
}

// link is a chunk with what it remembers.
type link struct {
	*Chunk
	caches map[string]*interp.Tensor // by input
	state  interp.State
}

// Token is what the last chunk says.
type Token struct {
	ID    int
	Logit float32 // soft-capped; NaN if the chunk does not tell
}

// NewChain starts a sequence of at most context positions.
func NewChain(h Host, context int, chunks ...*Chunk) (*Chain, error) {
	c := &Chain{host: h, context: context}
	for _, chunk := range chunks {
		c.links = append(c.links, &link{Chunk: chunk})
		c.ring = c.ring || chunk.function().Input("ring_pos") != nil
	}
	c.scores = scores(chunks[len(chunks)-1].function())
	return c, c.Reset()
}

// scores is the tensor whose greatest element is the token. Heads that are cut into pieces have several.
func scores(f *mil.Function) (name string) {
	for _, op := range f.Body.Ops {
		if op.Type != "reduce_argmax" {
			continue
		}
		if name != "" {
			return ""
		}
		name = op.Input("x")[0].Name
	}
	return name
}

// Logits are the soft-capped logits [V] of the last step, valid until the next; nil if the last chunk does not compute them in one
// piece.
func (c *Chain) Logits() []float32 { return c.logits }

// watch picks the logits out of a run of the last chunk.
func (c *Chain) watch(l *link) interp.Call {
	call := interp.Call{State: l.state}
	if c.scores != "" && l == c.links[len(c.links)-1] {
		call.Only = func(name string) interp.Wanted { return name == c.scores }
		call.Tap = func(_ string, t *interp.Tensor) { c.logits = append(c.logits[:0], t.Floats...) }
	}
	return call
}

// Reset forgets the sequence: caches are zeros again, which a masked write needs (0 · Inf would be NaN).
func (c *Chain) Reset() (err error) {
	c.pos, c.values = 0, map[string]*interp.Tensor{}
	for _, l := range c.links {
		l.caches = map[string]*interp.Tensor{}
		if l.state, err = l.Model.NewState(l.Function); err != nil {
			return err
		}
	}
	return nil
}

// Next is the position of the next token.
func (c *Chain) Next() int { return c.pos }

// Step runs one token through all chunks.
func (c *Chain) Step(ctx context.Context, token int) (Token, error) {
	if c.pos >= c.context {
		return Token{}, &format.Error{Path: c.links[0].Name, Field: "context", Got: fmt.Sprintf("position %d", c.pos), Want: fmt.Sprintf("at most %d positions", c.context),
			Fix: "start a new sequence, or build the chunks for a longer context"}
	}
	clear(c.values)
	var out map[string]*interp.Tensor
	for i, l := range c.links {
		in, err := c.inputs(l, token)
		if err != nil {
			return Token{}, err
		}
		if out, err = l.Model.Run(ctx, l.Function, in, c.watch(l)); err != nil {
			return Token{}, fmt.Errorf("%s: position %d: %w", l.Name, c.pos, err)
		}
		if c.Watch != nil {
			c.Watch(i, c.pos, out)
		}
		c.collect(l, out)
	}
	c.pos++
	return tokenOf(out), nil
}

func tokenOf(out map[string]*interp.Tensor) Token {
	t := Token{ID: -1, Logit: float32(math.NaN())}
	if id := out["token_id"]; id != nil {
		t.ID = int(id.Ints[0])
	}
	if logit := out["token_logit"]; logit != nil {
		t.Logit = logit.Floats[0]
	}
	return t
}

// Generate feeds the prompt and yields up to n tokens, each the last chunk's choice after the one before. The last token is not fed
// back. An error ends the sequence.
func (c *Chain) Generate(ctx context.Context, prompt []int, n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		var last Token
		for _, token := range prompt {
			var err error
			if last, err = c.Step(ctx, token); err != nil {
				yield(0, err)
				return
			}
		}
		for i := range n {
			if !yield(last.ID, nil) || i == n-1 {
				return
			}
			var err error
			if last, err = c.Step(ctx, last.ID); err != nil {
				yield(0, err)
				return
			}
		}
	}
}

// inputs gathers what a chunk declares.
func (c *Chain) inputs(l *link, token int) (map[string]*interp.Tensor, error) {
	in := map[string]*interp.Tensor{}
	for _, port := range l.function().Inputs {
		if port.Type.Kind == mil.State {
			continue
		}
		t := l.caches[port.Name]
		if t == nil {
			t = c.values[port.Name]
		}
		if t == nil {
			if t = c.hosted(port, token); t == nil {
				return nil, &format.Error{Path: l.Name, Field: port.Name, Got: "an input that nobody gives", Want: "the ports of a decode chunk, in the order of the layers",
					Fix: "a chunk before this one is missing, or its ports have other names"}
			}
		}
		in[port.Name] = t
	}
	return in, nil
}

// hosted makes what the host gives, in the shape that the chunk declares; nil for what only a chunk can give.
func (c *Chain) hosted(port mil.Input, token int) *interp.Tensor {
	t := empty(port)
	switch name := port.Name; {
	case strings.HasPrefix(name, "K_"), strings.HasPrefix(name, "V_"): // caches before the first token
	case name == "hidden_states":
		c.host.Embed(t.Floats, token)
	case name == "per_layer_raw":
		c.host.PLERaw(t.Floats, token)
	case name == "current_pos":
		t.Ints[0] = int32(c.pos)
	case name == "ring_pos":
		t.Ints[0] = int32(c.pos % c.window())
	case name == "cos_s", name == "sin_s":
		c.rotary(c.host.RopeSliding, "cos_s", "sin_s", t)
	case name == "cos_f", name == "sin_f":
		c.rotary(c.host.RopeFull, "cos_f", "sin_f", t)
	case strings.Contains(name, "mask"):
		c.mask(name, t.Floats)
	default:
		return nil
	}
	if v := c.values[port.Name]; v != nil {
		return v
	}
	return t
}

// rotary makes both rows of a position, shaped like one of them.
func (c *Chain) rotary(rows func(cos, sin []float32, pos int), cos, sin string, like *interp.Tensor) {
	c.values[cos], c.values[sin] = like.Clone(), like.Clone()
	rows(c.values[cos].Floats, c.values[sin].Floats, c.pos)
}

// window is the number of rows of sliding caches.
func (c *Chain) window() int {
	for _, l := range c.links {
		if mask := l.function().Input("causal_mask_sliding"); mask != nil {
			shape := mask.Type.Shape
			return int(max(1, shape[len(shape)-1]))
		}
	}
	return 1
}

// mask fills the one-hot of the row to be written; the positions up to this one; the newest rows of a window, which end at its last
// row or, in a ring, lie anywhere once it is full (spec forward.md §4.0, §4.11).
func (c *Chain) mask(name string, m []float32) {
	n := len(m)
	for i := range m {
		visible := i <= c.pos
		switch {
		case name == "causal_mask_sliding" && c.ring:
			visible = visible || c.pos >= n
		case name == "causal_mask_sliding":
			visible = i >= n-(c.pos+1)
		}
		switch {
		case name == "update_mask" && i == c.pos:
			m[i] = 1
		case name != "update_mask" && !visible:
			m[i] = float32(math.Inf(-1))
		}
	}
}

// collect passes outputs on: caches go back to the chunk's inputs, the rest is for later chunks.
func (c *Chain) collect(l *link, out map[string]*interp.Tensor) {
	for name, t := range out {
		root := strings.TrimSuffix(name, "_out")
		switch {
		case root != name && l.function().Input(root+"_in") != nil:
			l.caches[root+"_in"] = t
		default:
			c.values[root] = t // hidden_states, per_layer_combined, kv13_k, …
		}
	}
}

func empty(port mil.Input) *interp.Tensor {
	shape := make([]int, len(port.Type.Shape))
	for i, n := range port.Type.Shape {
		shape[i] = int(max(n, 0))
	}
	return interp.NewTensor(port.Type.DType, shape...)
}
