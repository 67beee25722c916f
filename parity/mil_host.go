package parity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/gemma4"
	"anelab/internal/format"
)

// packageHost is a sequence under way: what a runtime does around the calls of a chain.
type packageHost struct {
	Packages
	rows    int                         // tokens of a call, T
	pos     int                         // of the first token of the next call
	caches  []map[string]*interp.Tensor // per chunk, by input name
	engines []engine
	ring    ringed
	ws      gemma4.Workspace
}

// ringed says that sliding caches are rings, whose rows stay where they were written.
type ringed bool

func (p Packages) newHost(rows int) (*packageHost, error) {
	h := &packageHost{Packages: p, rows: rows}
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

// step runs tokens through all chunks, at most as many as a call has rows; rows behind them are zero.
func (h *packageHost) step(ctx context.Context, tokens []int, trace gemma4.Tracer) error {
	for i, token := range tokens {
		if vocab := h.Host.Config.VocabSize; token < 0 || token >= vocab {
			return &format.Error{Path: h.Label, Field: fmt.Sprintf("position %d", h.pos+i), Got: fmt.Sprintf("token %d", token), Want: fmt.Sprintf("0 to %d", vocab-1)}
		}
	}
	values := h.hostValues(tokens)
	h.tap(trace, PackageTap{Point: gemma4.PointEmbeds, Layer: -1}, values["hidden_states"].Floats, len(tokens))
	for i, c := range h.Chunks {
		in, err := h.inputs(i, values)
		if err != nil {
			return err
		}
		out, err := h.engines[i].run(ctx, in, h.call(i, len(tokens), trace))
		if err != nil {
			return fmt.Errorf("%s: position %d: %w", c.Label, h.pos, err)
		}
		h.collect(i, out, values)
		if c.Taps == nil {
			h.tapBorder(i, out, len(tokens), trace)
		}
	}
	h.pos += len(tokens)
	return nil
}

// call is what goes with the inputs of a chunk.
func (h *packageHost) call(i, tokens int, trace gemma4.Tracer) interp.Call {
	c := &h.Chunks[i]
	return interp.Call{
		Only: func(name string) interp.Wanted {
			_, ok := c.Taps[name]
			return interp.Wanted(ok)
		},
		Tap: func(name string, t *interp.Tensor) { h.tap(trace, c.Taps[name], t.Floats, tokens) },
	}
}

// hostValues are the tensors that the host makes for a call.
func (h *packageHost) hostValues(tokens []int) map[string]*interp.Tensor {
	m, n, t := h.Host, len(tokens), h.rows
	pass := gemma4.Pass{First: h.pos, T: t}
	m.Begin(&pass, &h.ws)
	hidden := make([]float32, t*m.Config.HiddenSize)
	m.Embed(hidden[:n*m.Config.HiddenSize], tokens)
	values := map[string]*interp.Tensor{"hidden_states": interp.F16(hidden, 1, t, m.Config.HiddenSize),
		"current_pos": interp.I32([]int32{int32(h.pos)}, 1), "ring_pos": interp.I32([]int32{int32(h.pos % max(1, m.Config.SlidingWindow))}, 1)}
	if width := m.Config.HiddenSizePerLayer * len(m.Layers); width > 0 {
		raw := make([]float32, t*width)
		m.PLERaw(raw[:n*width], tokens)
		values["per_layer_raw"] = interp.F16(raw, 1, t, width)
	}
	for kind, names := range [2][2]string{gemma4.Sliding: {"cos_s", "sin_s"}, gemma4.Full: {"cos_f", "sin_f"}} {
		rows := pass.Rope[kind]
		values[names[0]], values[names[1]] = interp.F16(rows.Cos, 1, 1, t, len(rows.Cos)/t), interp.F16(rows.Sin, 1, 1, t, len(rows.Sin)/t)
	}
	last := interp.NewTensor(mil.Float16, 1, t, 1)
	last.Floats[n-1] = 1
	values["last_position_mask"] = last
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
		case values[port.Name] != nil:
			in[port.Name] = values[port.Name]
		case strings.Contains(port.Name, "mask"), port.Name == "update_indicator":
			in[port.Name] = h.mask(port)
		default:
			return nil, &format.Error{Path: h.Chunks[i].Label, Field: port.Name, Got: "an input that no chunk is known to have", Want: "the ports of a chunk"}
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

// collect passes outputs on: caches go back to the chunk's inputs, the rest is for later chunks.
func (h *packageHost) collect(i int, out, values map[string]*interp.Tensor) {
	for name, t := range out {
		cache := strings.TrimSuffix(name, "_out") + "_in"
		switch {
		case h.Chunks[i].function().Input(cache) != nil:
			h.caches[i][cache] = t
		case name == "hidden_states_out":
			values["hidden_states"] = t
		case name == "per_layer_combined_out":
			values["per_layer_combined"] = t
		default:
			values[name] = t // kv13_k, …
		}
	}
}

// tapBorder yields what leaves a chunk.
func (h *packageHost) tapBorder(i int, out map[string]*interp.Tensor, tokens int, trace gemma4.Tracer) {
	if t := out["per_layer_combined_out"]; t != nil {
		h.tap(trace, PackageTap{Point: gemma4.PointPLE, Layer: -1}, t.Floats, tokens)
	}
	switch hidden := out["hidden_states_out"]; {
	case out["hidden_normed"] != nil: // what chunks with states call the last one
		h.tap(trace, PackageTap{Point: gemma4.PointFinalNorm, Layer: -1}, out["hidden_normed"].Floats, tokens)
	case hidden != nil && out["token_id"] != nil:
		h.tap(trace, PackageTap{Point: gemma4.PointFinalNorm, Layer: -1}, hidden.Floats, tokens)
	case hidden != nil:
		h.tap(trace, PackageTap{Point: gemma4.PointHidden, Layer: h.Chunks[i].Hi - 1}, hidden.Floats, tokens)
	}
}

// tap yields the rows of the call's tokens, or the one row that a head has made of the last of them.
func (h *packageHost) tap(trace gemma4.Tracer, at PackageTap, data []float32, tokens int) {
	width, axes := h.Host.Config.HiddenSize, []int{0}
	switch at.Point {
	case gemma4.PointPLE:
		p := h.Host.Config.HiddenSizePerLayer
		width, axes = p*len(h.Host.Layers), []int{len(h.Host.Layers), p}
	case gemma4.PointLogits, gemma4.PointLogitsPre:
		width = h.Host.Config.VocabSize
	}
	if len(axes) == 1 {
		axes[0] = width
	}
	rows, first := len(data)/width, h.pos
	if at.Order == ChannelsFirst && rows > 1 {
		data = turned(data, width, rows)
	}
	if rows < tokens { // the head of a prefill
		first += tokens - rows
	} else {
		rows = tokens
	}
	trace(Tap{Point: at.Point, Layer: at.Layer, First: first, Shape: slices.Concat([]int{rows}, axes), Data: data[:rows*width]})
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
