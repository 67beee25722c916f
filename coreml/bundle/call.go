package bundle

import (
	"fmt"
	"strings"

	"anelab/coreml"
	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
)

// call is one call of all chunks under way.
type call struct {
	*Chain
	tokens []int
	rows   int // of the function, at least as many as there are tokens: those behind them are zeros
	ring   ringed
	values map[string]*interp.Tensor // what chunks and host have made, by input
}

// ringed says that sliding caches are rings, whose rows stay where they were written.
type ringed bool

// inputs gathers what a chunk declares.
func (c *call) inputs(l *link, f *mil.Function) (map[string]*interp.Tensor, error) {
	if err := c.begin(l, f); err != nil {
		return nil, err
	}
	in := map[string]*interp.Tensor{}
	for _, port := range f.Inputs {
		if port.Type.Kind == mil.State {
			continue
		}
		t := l.caches[port.Name]
		if t == nil {
			t = c.values[port.Name]
		}
		if t == nil {
			if t = c.hosted(port); t == nil {
				return nil, &format.Error{Path: l.Name, Field: port.Name, Got: "an input that nobody gives", Want: "the ports of a chunk, in the order of the layers",
					Fix: "a chunk before this one is missing, or its ports have other names"}
			}
		}
		in[port.Name] = t
	}
	return in, nil
}

// begin learns how many rows a function has, and whether they can be written where the sequence is.
func (c *call) begin(l *link, f *mil.Function) error {
	c.rows = max(coreml.Tokens(f), 1)
	if len(c.tokens) > c.rows {
		return &format.Error{Path: l.Name, Field: f.Name, Got: fmt.Sprintf("%d tokens", len(c.tokens)), Want: fmt.Sprintf("at most %d", c.rows)}
	}
	if f.Input("ring_pos") == nil {
		return nil
	}
	c.ring = true
	if coreml.Writes(f) == coreml.InStates {
		return c.fits(l, f)
	}
	return nil
}

// fits refuses rows that a ring has no room for before its end, and those that no token stands for: they would overwrite others.
func (c *call) fits(l *link, f *mil.Function) error {
	w := c.window(gemma4.Sliding)
	e := &format.Error{Path: l.Name, Field: f.Name, Fix: "take these tokens one at a time"}
	switch at := c.pos % w; {
	case at+c.rows > w:
		e.Got, e.Want = fmt.Sprintf("%d rows from row %d of a ring", c.rows, at), fmt.Sprintf("rows that end before row %d", w)
	case len(c.tokens) < c.rows:
		e.Got, e.Want = fmt.Sprintf("%d tokens", len(c.tokens)), fmt.Sprintf("%d, a row for each", c.rows)
	default:
		return nil
	}
	return e
}

// window is the rows of a kind's window, 1 if nothing tells.
func (c *call) window(kind gemma4.Kind) int { return max(1, c.Windows[kind]) }

// hosted makes what the host gives, in the shape that the chunk declares; nil for what only a chunk can give.
func (c *call) hosted(port mil.Input) *interp.Tensor {
	t := empty(port)
	switch name := port.Name; {
	case isCache(name): // before the first token
	case name == "hidden_states":
		c.each(t, c.host.Embed)
	case name == "per_layer_raw":
		c.each(t, c.host.PLERaw)
	case name == "current_pos":
		t.Ints[0] = int32(c.pos)
	case name == "ring_pos":
		t.Ints[0] = int32(c.pos % c.window(gemma4.Sliding))
	case name == "cos_s", name == "sin_s":
		c.rotary(c.host.RopeSliding, "cos_s", "sin_s", t)
	case name == "cos_f", name == "sin_f":
		c.rotary(c.host.RopeFull, "cos_f", "sin_f", t)
	case name == "last_position_mask":
		t.Floats[len(c.tokens)-1] = 1
	case name == "update_mask":
		t.Floats[c.pos] = 1
	case name == "update_indicator": // [C, T]
		for row := range c.tokens {
			t.Floats[(c.pos+row)*c.rows+row] = 1
		}
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

// each fills the rows of a tensor [1, T, width] by token.
func (c *call) each(t *interp.Tensor, fill func(x []float32, token int)) {
	width := len(t.Floats) / c.rows
	for i, token := range c.tokens {
		fill(t.Floats[i*width:(i+1)*width], token)
	}
}

// rotary makes both tensors of the call's positions, shaped like one of them, [1, 1, T, d].
func (c *call) rotary(fill func(cos, sin []float32, pos int), cos, sin string, like *interp.Tensor) {
	c.values[cos], c.values[sin] = like.Clone(), like.Clone()
	d := len(like.Floats) / c.rows
	for i := range c.tokens {
		lo, hi := i*d, (i+1)*d
		fill(c.values[cos].Floats[lo:hi], c.values[sin].Floats[lo:hi], c.pos+i)
	}
}

// collect passes outputs on: caches go back to the chunk's inputs, the rest is for later chunks.
func (c *call) collect(l *link, f *mil.Function, out map[string]*interp.Tensor) {
	for name, t := range out {
		root := strings.TrimSuffix(name, "_out")
		switch {
		case root != name && f.Input(root+"_in") != nil:
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
