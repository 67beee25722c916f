package parity

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
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
				return fmt.Sprintf("%s: %s/%s (%s)", c.Label, c.name(), name, op.Type)
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
		h, err := p.newHost()
		if err != nil {
			return err
		}
		defer h.close()
		for lo := range c.Calls() {
			if err := h.step(ctx, c.Tokens(lo, lo+1)[0], trace); err != nil {
				return err
			}
		}
		return nil
	})
}

// packageHost is a sequence under way.
type packageHost struct {
	Packages
	pos     int
	caches  []map[string]*interp.Tensor // per chunk, by input name
	engines []engine
	ring    ringed
	ws      gemma4.Workspace
}

// ringed says that sliding caches are rings, whose rows stay where they were written.
type ringed bool

func (p Packages) newHost() (*packageHost, error) {
	h := &packageHost{Packages: p}
	for _, c := range p.Chunks {
		e, err := c.engine()
		if err != nil {
			h.close()
			return nil, err
		}
		h.engines = append(h.engines, e)
		h.caches = append(h.caches, map[string]*interp.Tensor{})
		h.ring = h.ring || c.function().Input("ring_pos") != nil
	}
	return h, nil
}

func (h *packageHost) close() {
	for _, e := range h.engines {
		e.close()
	}
}

// step runs one token through all chunks.
func (h *packageHost) step(ctx context.Context, token int, trace gemma4.Tracer) error {
	if vocab := h.Host.Config.VocabSize; token < 0 || token >= vocab {
		return &format.Error{Path: h.Label, Field: fmt.Sprintf("position %d", h.pos), Got: fmt.Sprintf("token %d", token), Want: fmt.Sprintf("0 to %d", vocab-1)}
	}
	values := h.hostValues(token)
	h.tap(trace, gemma4.PointEmbeds, -1, values["hidden_states"].Floats, 1)
	for i, c := range h.Chunks {
		in, err := h.inputs(i, values)
		if err != nil {
			return err
		}
		out, err := h.engines[i].run(ctx, in, h.call(i, trace))
		if err != nil {
			return fmt.Errorf("%s: position %d: %w", c.Label, h.pos, err)
		}
		h.collect(i, out, values, trace)
	}
	h.pos++
	return nil
}

// call is what goes with the inputs of a chunk.
func (h *packageHost) call(i int, trace gemma4.Tracer) interp.Call {
	c := &h.Chunks[i]
	return interp.Call{
		Only: func(name string) interp.Wanted {
			_, ok := c.Taps[name]
			return interp.Wanted(ok)
		},
		Tap: func(name string, t *interp.Tensor) {
			tap, rows := c.Taps[name], 1
			if tap.Point == gemma4.PointPLE {
				rows = len(h.Host.Layers)
			}
			h.tap(trace, tap.Point, tap.Layer, t.Floats, rows)
		},
	}
}

// hostValues are the tensors that the host makes for a step.
func (h *packageHost) hostValues(token int) map[string]*interp.Tensor {
	m := h.Host
	pass := gemma4.Pass{First: h.pos, T: 1}
	m.Begin(&pass, &h.ws)
	hidden := make([]float32, m.Config.HiddenSize)
	m.Embed(hidden, []int{token})
	values := map[string]*interp.Tensor{"hidden_states": interp.F16(hidden, 1, 1, len(hidden)),
		"current_pos": interp.I32([]int32{int32(h.pos)}, 1), "ring_pos": interp.I32([]int32{int32(h.pos % max(1, m.Config.SlidingWindow))}, 1)}
	if width := m.Config.HiddenSizePerLayer * len(m.Layers); width > 0 {
		raw := make([]float32, width)
		m.PLERaw(raw, []int{token})
		values["per_layer_raw"] = interp.F16(raw, 1, 1, width)
	}
	for kind, names := range [2][2]string{gemma4.Sliding: {"cos_s", "sin_s"}, gemma4.Full: {"cos_f", "sin_f"}} {
		rows := pass.Rope[kind]
		values[names[0]], values[names[1]] = interp.F16(rows.Cos, 1, 1, 1, len(rows.Cos)), interp.F16(rows.Sin, 1, 1, 1, len(rows.Sin))
	}
	return values
}

// inputs gathers what a chunk declares.
func (h *packageHost) inputs(i int, values map[string]*interp.Tensor) (map[string]*interp.Tensor, error) {
	in := map[string]*interp.Tensor{}
	for _, port := range h.Chunks[i].function().Inputs {
		switch cached := h.caches[i][port.Name]; {
		case port.Type.Kind == mil.State:
		case cached != nil:
			in[port.Name] = cached
		case strings.HasPrefix(port.Name, "K_"), strings.HasPrefix(port.Name, "V_"):
			in[port.Name] = emptyPort(port)
		case strings.Contains(port.Name, "mask"):
			in[port.Name] = h.mask(port)
		case values[port.Name] != nil:
			in[port.Name] = values[port.Name]
		default:
			return nil, &format.Error{Path: h.Chunks[i].Label, Field: port.Name, Got: "an input that no decode chunk has", Want: "the ports of a decode chunk"}
		}
	}
	return in, nil
}

func emptyPort(port mil.Input) *interp.Tensor {
	shape := make([]int, len(port.Type.Shape))
	for i, n := range port.Type.Shape {
		shape[i] = int(max(n, 0))
	}
	return interp.NewTensor(port.Type.DType, shape...)
}

// mask is a mask in the shape that a chunk declares: the one-hot of the row to be written; the positions up to this one; the newest
// rows of a window, which end at its last row or, in a ring, lie anywhere once it is full.
func (h *packageHost) mask(port mil.Input) *interp.Tensor {
	t := emptyPort(port)
	n := len(t.Floats)
	for i := range t.Floats {
		visible := i <= h.pos
		switch {
		case port.Name == "causal_mask_sliding" && bool(h.ring):
			visible = visible || h.pos >= n
		case port.Name == "causal_mask_sliding":
			visible = i >= n-(h.pos+1)
		}
		switch {
		case port.Name == "update_mask" && i == h.pos:
			t.Floats[i] = 1
		case port.Name != "update_mask" && !visible:
			t.Floats[i] = float32(math.Inf(-1))
		}
	}
	return t
}

// collect passes outputs on: caches go back to the chunk's inputs, the rest is for later chunks.
func (h *packageHost) collect(i int, out, values map[string]*interp.Tensor, trace gemma4.Tracer) {
	c, m := h.Chunks[i], h.Host
	for name, t := range out {
		cache := strings.TrimSuffix(name, "_out") + "_in"
		switch {
		case c.function().Input(cache) != nil:
			h.caches[i][cache] = t
		case name == "hidden_states_out":
			values["hidden_states"] = t
		case name == "per_layer_combined_out":
			values["per_layer_combined"] = t
		default:
			values[name] = t // kv13_k, …
		}
	}
	if c.Taps != nil {
		return
	}
	if t := out["per_layer_combined_out"]; t != nil {
		h.tap(trace, gemma4.PointPLE, -1, t.Floats, len(m.Layers))
	}
	switch hidden := out["hidden_states_out"]; {
	case out["hidden_normed"] != nil: // what chunks with states call the last one
		h.tap(trace, gemma4.PointFinalNorm, -1, out["hidden_normed"].Floats, 1)
	case hidden != nil && out["token_id"] != nil:
		h.tap(trace, gemma4.PointFinalNorm, -1, hidden.Floats, 1)
	case hidden != nil:
		h.tap(trace, gemma4.PointHidden, c.Hi-1, hidden.Floats, 1)
	}
}

// tap yields one row, of one vector or of one per layer.
func (h *packageHost) tap(trace gemma4.Tracer, point gemma4.Point, layer int, data []float32, layers int) {
	t := Tap{Point: point, Layer: layer, First: h.pos, Shape: []int{1, len(data)}, Data: data}
	if layers > 1 {
		t.Shape = []int{1, layers, len(data) / layers}
	}
	trace(t)
}
