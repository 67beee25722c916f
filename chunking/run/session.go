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
	watch  Watcher
	trial  *trial
}

// Watcher is told of every call of a chunk and what came out of it.
type Watcher func(v Invocation, out Ports)

// Token is what the last chunk says.
type Token struct {
	ID     int
	Logit  float32   // soft-capped
	Hidden []float32 // [D], final-normed; nil after a prefill, whose graph does not give it
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

// Watch tells of every later call of a chunk; nil stops it.
func (s *Session) Watch(w Watcher) { s.watch = w }

// Step runs one token through all chunks. On an error no cache has changed.
func (s *Session) Step(ctx context.Context, token int) (Token, error) {
	if err := s.check(token); err != nil {
		return Token{}, err
	}
	outs, err := s.through(ctx, s.e.Decode, []int{token})
	if err != nil {
		return Token{}, err
	}
	for i, c := range s.e.Plan.Chunks {
		s.caches[i] = updated(c, outs[i])
	}
	s.pos++
	s.trial = nil
	return tokenOf(outs[len(outs)-1])
}

func tokenOf(out Ports) (Token, error) {
	if out["token_id"] == nil {
		return Token{}, &format.Error{Field: "layout", Got: "no head", Want: "a last chunk with +head"}
	}
	t := Token{ID: int(out["token_id"].IDs[0]), Logit: out["token_logit"].Data[0]}
	if hidden := out["hidden_states_out"]; hidden != nil {
		t.Hidden = hidden.Data
	}
	return t, nil
}

// updated are the caches that a chunk hands back.
func updated(c *chunking.Chunk, out Ports) Ports {
	caches := Ports{}
	for _, p := range c.Inputs {
		if p.Role == chunking.RoleCache {
			caches[p.Name] = out[outName(p.Name)]
		}
	}
	return caches
}

// through calls every chunk in turn and returns their outputs; the caches stay as they are. Rows beyond the tokens are zero.
func (s *Session) through(ctx context.Context, f *Function, tokens []int) ([]Ports, error) {
	values := s.hostInputs(f, tokens)
	var outs []Ports
	for i := range s.e.Plan.Chunks {
		v := Invocation{Function: f, Chunk: i, Pos: s.pos, In: s.chunkInputs(f, i, values)}
		out, err := s.e.Call(ctx, v, s.trace)
		if err != nil {
			return nil, err
		}
		if s.watch != nil {
			s.watch(v, out)
		}
		passOn(f.Chunks[i], out, values)
		outs = append(outs, out)
	}
	return outs, nil
}

// chunkInputs gathers what chunk i declares: its caches, its masks, and values of the step.
func (s *Session) chunkInputs(f *Function, i int, values Ports) Ports {
	in := Ports{}
	for _, p := range f.Chunks[i].Inputs {
		switch {
		case p.Role == chunking.RoleCache:
			in[p.Name] = s.caches[i][p.Name]
		case values[p.Name] != nil:
			in[p.Name] = values[p.Name]
		default:
			in[p.Name] = newTensor(p)
			f.FillMask(p, in[p.Name].Data, s.pos)
		}
	}
	return in
}

func (s *Session) check(tokens ...int) error {
	if last := s.pos + len(tokens) - 1; last >= s.e.Plan.Context {
		return &format.Error{Field: "context", Got: fmt.Sprintf("position %d", last), Want: fmt.Sprintf("below the compiled context %d", s.e.Plan.Context)}
	}
	for _, token := range tokens {
		if token < 0 || token >= s.e.model.Config.VocabSize {
			return &format.Error{Field: "token", Got: fmt.Sprintf("id %d", token), Want: fmt.Sprintf("0 to %d", s.e.model.Config.VocabSize-1)}
		}
	}
	return nil
}

// hostInputs are the tensors the host makes once for a call: embeddings, raw per-layer rows, rotary rows.
func (s *Session) hostInputs(f *Function, tokens []int) Ports {
	values, m := Ports{}, s.e.model
	pass := gemma4.Pass{First: s.pos, T: f.Tokens}
	m.Begin(&pass, &s.e.ws)
	for _, p := range f.Chunks[0].Inputs {
		switch p.Role {
		case chunking.RoleHidden:
			t := newTensor(p)
			m.Embed(t.Data[:len(tokens)*m.Config.HiddenSize], tokens)
			s.traceEmbeds(t.Data)
			values[p.Name] = t
		case chunking.RolePLE:
			t := newTensor(p)
			m.PLERaw(t.Data[:len(tokens)*len(m.Layers)*m.Config.HiddenSizePerLayer], tokens)
			values[p.Name] = t
		}
	}
	if f.Kind == Prefill {
		last := &Tensor{Shape: []int{1, f.Tokens, 1}, Data: make([]float32, f.Tokens)}
		last.Data[len(tokens)-1] = 1
		values["last_position_mask"] = last
	}
	for _, p := range f.Chunks[0].Inputs {
		for kind, names := range RopeNames {
			switch p.Name {
			case names[0]:
				values[p.Name] = &Tensor{Shape: p.Shape, Data: slices.Clone(pass.Rope[kind].Cos)}
			case names[1]:
				values[p.Name] = &Tensor{Shape: p.Shape, Data: slices.Clone(pass.Rope[kind].Sin)}
			}
		}
	}
	return values
}

func (s *Session) traceEmbeds(x []float32) {
	if s.trace != nil {
		d := s.e.model.Config.HiddenSize
		s.trace(gemma4.Tap{Point: gemma4.PointEmbeds, Layer: -1, First: s.pos, Shape: []int{len(x) / d, d}, Data: x})
	}
}

// passOn makes a chunk's outputs inputs of later chunks.
func passOn(sig Signature, out, values Ports) {
	if hidden, ok := out["hidden_states_out"]; ok {
		values["hidden_states"] = hidden
	}
	if combined, ok := out["per_layer_combined_out"]; ok {
		values["per_layer_combined"] = combined
	}
	for _, p := range sig.Outputs {
		if p.Role == chunking.RoleHandoff {
			values[p.Name] = out[p.Name]
		}
	}
}

// Import fills the caches from a sequence that the whole model has prefilled, row by row and by layer, whatever slot the layout
// gives a layer (spec forward.md §6.5): a sliding cache takes the newest min(n, W) rows right-aligned, a full cache rows
// 0 … n−1, sinks the first ones.
func (s *Session) Import(st *gemma4.State) error {
	if st.Next() > s.e.Plan.Context {
		return &format.Error{Field: "context", Got: fmt.Sprintf("a prompt of %d tokens", st.Next()), Want: fmt.Sprintf("at most the compiled context %d", s.e.Plan.Context)}
	}
	s.pos = st.Next()
	s.fill(func(l int) (keys, values swa.View, held swa.Span) {
		store := st.Store(l)
		return store.Keys(), store.Values(), store.Held()
	})
	return nil
}

// fill makes the caches those of a sequence that ends before the next position, from the rows that rows gives for a layer.
func (s *Session) fill(rows func(l int) (keys, values swa.View, held swa.Span)) {
	s.trial = nil
	for i, c := range s.e.Plan.Chunks {
		for _, p := range c.Inputs {
			if p.Role != chunking.RoleCache {
				continue
			}
			t := s.caches[i][p.Name]
			clear(t.Data)
			for n, l := range p.Layers {
				view, values, held := rows(l)
				if HoldsValues(p) {
					view = values
				}
				dst := slot(t, n)
				copyRows(dst, view, s.e.Decode.place(l, s.pos-1, dst.Rows), held)
			}
		}
	}
}
