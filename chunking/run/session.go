package run

import (
	"context"
	"fmt"
	"slices"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/format"
	"anelab/swa"
)

// Session is one sequence run through a plan: the host's part, with the persistent cache buffers of every chunk.
type Session struct {
	e      *Executor
	caches []Ports // per chunk, by input name
	pos    int
	trace  gemma4.Tracer
}

// Token is what the last chunk says.
type Token struct {
	ID     int
	Logit  float32   // soft-capped
	Hidden []float32 // [D], final-normed
}

// NewSession starts a sequence with zeroed caches.
func NewSession(m *gemma4.Model, plan *chunking.Plan) (*Session, error) {
	e, err := New(m, plan)
	if err != nil {
		return nil, err
	}
	s := &Session{e: e}
	for _, c := range plan.Chunks {
		caches := Ports{}
		for _, p := range c.Inputs {
			if p.Role == chunking.RoleCache {
				caches[p.Name] = newTensor(p)
			}
		}
		s.caches = append(s.caches, caches)
	}
	return s, nil
}

// Next is the position of the next token.
func (s *Session) Next() int { return s.pos }

// Listen sends the intermediate tensors of every later step to the tracer; nil stops it.
func (s *Session) Listen(t gemma4.Tracer) { s.trace = t }

// Step runs one token through all chunks. On an error no cache has changed.
func (s *Session) Step(ctx context.Context, token int) (Token, error) {
	if err := s.check(token); err != nil {
		return Token{}, err
	}
	values := s.hostInputs(token)
	updated := make([]Ports, len(s.caches))
	var out Ports
	for i := range s.e.Plan.Chunks {
		in := s.chunkInputs(i, values)
		var err error
		if out, err = s.e.Call(ctx, i, s.pos, in, s.trace); err != nil {
			return Token{}, err
		}
		updated[i] = s.collect(s.e.Plan.Chunks[i], out, values)
	}
	s.caches, s.pos = updated, s.pos+1
	if out["token_id"] == nil {
		return Token{}, &format.Error{Field: "layout", Got: "no head", Want: "a last chunk with +head"}
	}
	return Token{ID: int(out["token_id"].IDs[0]), Logit: out["token_logit"].Data[0], Hidden: out["hidden_states_out"].Data}, nil
}

// chunkInputs gathers what chunk i declares: its caches, its masks, and values of the step.
func (s *Session) chunkInputs(i int, values Ports) Ports {
	in := Ports{}
	for _, p := range s.e.Plan.Chunks[i].Inputs {
		switch p.Role {
		case chunking.RoleCache:
			in[p.Name] = s.caches[i][p.Name]
		case chunking.RoleMask, chunking.RoleUpdate:
			in[p.Name] = s.mask(p)
		default:
			in[p.Name] = values[p.Name]
		}
	}
	return in
}

// mask builds a mask in the shape that a chunk declares.
func (s *Session) mask(p chunking.Port) *Tensor {
	t := newTensor(p)
	switch p.Name {
	case "causal_mask_full":
		s.e.fillMask(gemma4.Full, t.Data, s.pos)
	case "causal_mask_sliding":
		s.e.fillMask(gemma4.Sliding, t.Data, s.pos)
	default:
		fillOneHot(t.Data, s.pos)
	}
	return t
}

func (s *Session) check(token int) error {
	if s.pos >= s.e.Plan.Context {
		return &format.Error{Field: "context", Got: fmt.Sprintf("position %d", s.pos), Want: fmt.Sprintf("below the compiled context %d", s.e.Plan.Context)}
	}
	if token < 0 || token >= s.e.model.Config.VocabSize {
		return &format.Error{Field: "token", Got: fmt.Sprintf("id %d", token), Want: fmt.Sprintf("0 to %d", s.e.model.Config.VocabSize-1)}
	}
	return nil
}

// hostInputs are the tensors the host makes once for a step: embedding, raw per-layer rows, rotary rows.
func (s *Session) hostInputs(token int) Ports {
	values, m := Ports{}, s.e.model
	pass := gemma4.Pass{First: s.pos, T: 1}
	m.Begin(&pass, &s.e.ws)
	rope := map[string][]float32{
		"cos_s": pass.Rope[gemma4.Sliding].Cos, "sin_s": pass.Rope[gemma4.Sliding].Sin,
		"cos_f": pass.Rope[gemma4.Full].Cos, "sin_f": pass.Rope[gemma4.Full].Sin,
	}
	for _, p := range s.e.Plan.Chunks[0].Inputs {
		if p.Role == chunking.RoleCache || p.Role == chunking.RoleMask || p.Role == chunking.RoleUpdate {
			continue
		}
		t := newTensor(p)
		values[p.Name] = t
		switch p.Name {
		case "hidden_states":
			m.Embed(t.Data, []int{token})
			s.traceEmbeds(t.Data)
		case "per_layer_raw":
			m.PLERaw(t.Data, []int{token})
		default:
			t.Data = slices.Clone(rope[p.Name])
		}
	}
	return values
}

func (s *Session) traceEmbeds(x []float32) {
	if s.trace != nil {
		s.trace(gemma4.Tap{Point: gemma4.PointEmbeds, Layer: -1, First: s.pos, Shape: []int{1, len(x)}, Data: x})
	}
}

// collect passes a chunk's outputs on: updated caches return to the chunk's own buffers, the rest is input of later chunks.
func (s *Session) collect(c *chunking.Chunk, out, values Ports) Ports {
	caches := Ports{}
	for _, p := range c.Inputs {
		if p.Role == chunking.RoleCache {
			caches[p.Name] = out[outName(p.Name)]
		}
	}
	values["hidden_states"] = out["hidden_states_out"]
	if combined, ok := out["per_layer_combined_out"]; ok {
		values["per_layer_combined"] = combined
	}
	for _, p := range c.Outputs {
		if p.Role == chunking.RoleHandoff {
			values[p.Name] = out[p.Name]
		}
	}
	return caches
}

// Import fills the caches from a sequence that the whole model has prefilled, row by row and by layer, whatever slot the layout
// gives a layer (spec forward.md §6.5): a sliding cache takes the newest min(n, W) rows right-aligned, a full cache rows
// 0 … n−1.
func (s *Session) Import(st *gemma4.State) error {
	if st.Next() > s.e.Plan.Context {
		return &format.Error{Field: "context", Got: fmt.Sprintf("a prompt of %d tokens", st.Next()), Want: fmt.Sprintf("at most the compiled context %d", s.e.Plan.Context)}
	}
	for i, c := range s.e.Plan.Chunks {
		for _, p := range c.Inputs {
			if p.Role == chunking.RoleCache {
				s.importPort(st, p, s.caches[i][p.Name])
			}
		}
	}
	s.pos = st.Next()
	return nil
}

func (s *Session) importPort(st *gemma4.State, p chunking.Port, t *Tensor) {
	clear(t.Data)
	for n, l := range p.Layers {
		store, y := st.Store(l), s.e.model.Layers[l]
		view := store.Keys()
		if p.Name[0] == 'V' {
			view = store.Values()
		}
		dst := slot(t, n)
		importSlot(dst, view, s.e.base(y, dst, store.Held().Hi-1), store.Held())
	}
}

// importSlot copies held rows into a slot [K, S, width] whose row 0 is position base.
func importSlot(dst swa.Slot, view swa.View, base int, held swa.Span) {
	for g := range len(dst.Data) / (dst.Rows * dst.Width) {
		head := view.Head(g)
		for p := max(base, held.Lo); p < held.Hi; p++ {
			head.Load(dst.Data[(g*dst.Rows+p-base)*dst.Width:][:head.Dim()], p, 1)
		}
	}
}
