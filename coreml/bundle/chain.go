package bundle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Chain is one sequence run through chunks: the host's part of spec forward.md §6.4. Explicit caches and states are both served;
// which one a chunk wants, and every shape, is read off its inputs. Not safe for concurrent use. Close it.
type Chain struct {
	// Watch is told what a chunk gave; the tensors are borrowed.
	Watch func(chunk, pos int, outputs map[string]*interp.Tensor)
	// Inside says which results inside a chunk are looked at, and by whom: Only and Tap of a call. nil is for none.
	Inside func(chunk int) interp.Call
	// Windows are the rows of caches that keep a window, by kind of layer; 0 where caches keep every position. They are read off the
	// ports, which cannot tell a window as long as the context from all positions.
	Windows [2]int

	host    Host
	context int
	links   []*link
	pos     int
	logits  []float32 // what the token of the last call was taken from
}

// link is a chunk with what it remembers.
type link struct {
	*Chunk
	Engine
	caches map[string]*interp.Tensor // by input
}

// Token is what the last chunk says.
type Token struct {
	ID    int
	Logit float32 // soft-capped; NaN if the chunk does not tell
}

// NewChain starts a sequence of at most context positions.
func NewChain(h Host, context int, chunks ...*Chunk) (*Chain, error) {
	c := &Chain{host: h, context: context, Windows: windowsOf(chunks)}
	for _, chunk := range chunks {
		c.links = append(c.links, &link{Chunk: chunk})
	}
	return c, c.Reset()
}

// Logits are the soft-capped logits [V] of the last call, [T, V] of one with several tokens, valid until the next; nil if the last
// chunk does not compute them in one piece.
func (c *Chain) Logits() []float32 { return c.logits }

// Reset forgets the sequence: caches are zeros again, which a masked write needs (0 · Inf would be NaN).
func (c *Chain) Reset() error {
	c.pos = 0
	err := c.Close()
	for _, l := range c.links {
		var failed error
		l.caches = map[string]*interp.Tensor{}
		l.Engine, failed = l.start()
		err = errors.Join(err, failed)
	}
	return err
}

// Close releases what the sequence holds; the chunks stay open.
func (c *Chain) Close() error {
	var err error
	for _, l := range c.links {
		if l.Engine != nil {
			err = errors.Join(err, l.Engine.Close())
			l.Engine = nil
		}
	}
	return err
}

// Next is the position of the next token.
func (c *Chain) Next() int { return c.pos }

// Step runs one token through all chunks.
func (c *Chain) Step(ctx context.Context, token int) (Token, error) {
	out, err := c.Call(ctx, "", token)
	if err != nil {
		return Token{}, err
	}
	c.Advance(1)
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

// Call runs a function of all chunks on the next tokens, at most as many as it takes, and returns what the last chunk gave; "" is the
// function of steps. The sequence stays where it is: verify functions leave no rows behind. After one that does (see
// [coreml.Writes]), [Chain.Advance].
func (c *Chain) Call(ctx context.Context, function string, tokens ...int) (out map[string]*interp.Tensor, err error) {
	if err := c.check(tokens); err != nil {
		return nil, err
	}
	call := &call{Chain: c, tokens: tokens, values: map[string]*interp.Tensor{}}
	for i, l := range c.links {
		f := l.function(function)
		if f == nil {
			return nil, &format.Error{Path: l.Name, Field: "functions", Got: "no " + function, Want: "the same functions in every chunk"}
		}
		in, err := call.inputs(l, f)
		if err != nil {
			return nil, err
		}
		if out, err = l.Run(ctx, f.Name, in, c.inside(i, f)); err != nil {
			return nil, fmt.Errorf("%s: position %d: %w", l.Name, c.pos, err)
		}
		if c.Watch != nil {
			c.Watch(i, c.pos, out)
		}
		call.collect(l, f, out)
	}
	return out, nil
}

// check refuses tokens that no table has, and those beyond the context.
func (c *Chain) check(tokens []int) error {
	if len(tokens) == 0 {
		panic("bundle: a call without tokens")
	}
	for i, token := range tokens {
		if n := c.host.Vocabulary(); token < 0 || token >= n {
			return &format.Error{Path: c.links[0].Name, Field: fmt.Sprintf("position %d", c.pos+i), Got: fmt.Sprintf("token %d", token), Want: fmt.Sprintf("0 to %d", n-1)}
		}
	}
	if len(tokens) > c.context-c.pos {
		return &format.Error{Path: c.links[0].Name, Field: "context", Got: fmt.Sprintf("position %d", c.pos+len(tokens)-1), Want: fmt.Sprintf("at most %d positions", c.context),
			Fix: "start a new sequence, or build the chunks for a longer context"}
	}
	return nil
}

// Advance moves on behind the n tokens that a call has written.
func (c *Chain) Advance(n int) { c.pos += n }

// inside picks the logits out of a run of the last chunk, and what else is asked for.
func (c *Chain) inside(i int, f *mil.Function) (call interp.Call) {
	if c.Inside != nil {
		call = c.Inside(i)
	}
	if i < len(c.links)-1 {
		return call
	}
	name := scores(f)
	if c.logits = c.logits[:0]; name == "" {
		c.logits = nil
		return call
	}
	return withLogits(call, name, func(t *interp.Tensor) { c.logits = append(c.logits, t.Floats...) })
}

// withLogits is a call that also looks at one result.
func withLogits(call interp.Call, name string, look func(*interp.Tensor)) interp.Call {
	asked := call
	wanted := func(n string) interp.Wanted {
		return interp.Wanted(asked.Tap != nil && (asked.Only == nil || bool(asked.Only(n))))
	}
	call.Only = func(n string) interp.Wanted { return interp.Wanted(n == name) || wanted(n) }
	call.Tap = func(n string, t *interp.Tensor) {
		if n == name {
			look(t)
		}
		if wanted(n) {
			asked.Tap(n, t)
		}
	}
	return call
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

// windowsOf reads off the ports which caches keep a window. Those of full layers do where nothing says into which row to write
// (spec forward.md §4.8, WFA).
func windowsOf(chunks []*Chunk) (rows [2]int) {
	written, full := false, 0
	for _, c := range chunks {
		for _, in := range c.function("").Inputs {
			t, ok := in.Type.AsTensor()
			if !ok || len(t.Shape) != 4 {
				written = written || in.Name == "current_pos"
				continue
			}
			switch in.Name {
			case "K_sliding_in", "kv_cache_sliding":
				rows[gemma4.Sliding] = int(t.Shape[2])
			case "causal_mask_sliding": // as wide as the window in calls of one token; a cache says it in others
				if rows[gemma4.Sliding] == 0 && coreml.Tokens(c.function("")) == 1 {
					rows[gemma4.Sliding] = int(t.Shape[3])
				}
			case "K_full_in":
				full = int(t.Shape[2])
			case "update_mask", "update_indicator":
				written = true
			}
		}
	}
	if !written {
		rows[gemma4.Full] = full
	}
	return rows
}

// isCache tells ports of caches by their names, K_sliding_in or V_in.
func isCache(port string) bool { return strings.HasPrefix(port, "K_") || strings.HasPrefix(port, "V_") }
