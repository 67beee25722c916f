package run

import (
	"context"
	"fmt"

	"anelab/chunking"
	"anelab/internal/format"
	"anelab/swa"
)

// Prefill starts a sequence with a prompt of at most f.Tokens tokens, in one call of every chunk, and fills the caches from what
// comes out (spec forward.md §6.5). Rows behind the prompt are zero.
func (s *Session) Prefill(ctx context.Context, f *Function, tokens []int) (Token, error) {
	switch {
	case f.Kind != Prefill:
		return Token{}, &format.Error{Field: "function", Got: f.Name, Want: "a prefill function"}
	case s.pos > 0:
		return Token{}, &format.Error{Field: "prefill", Got: fmt.Sprintf("position %d", s.pos), Want: "a new sequence", Fix: "a prefill sees no cache; go on with decode steps"}
	case len(tokens) == 0 || len(tokens) > f.Tokens:
		return Token{}, &format.Error{Field: "prompt", Got: fmt.Sprintf("%d tokens", len(tokens)), Want: fmt.Sprintf("1 to %d", f.Tokens)}
	}
	if err := s.check(tokens...); err != nil {
		return Token{}, err
	}
	outs, err := s.through(ctx, f, tokens)
	if err != nil {
		return Token{}, err
	}
	s.pos = len(tokens)
	s.fill(func(l int) (keys, values swa.View, held swa.Span) {
		k, v := rowsOf(f, outs, l)
		store := swa.NewHandoff(k, v, s.e.model.Layers[l].HeadDim, 0, 0)
		return store.Keys(), store.Values(), swa.Span{Hi: len(tokens)}
	})
	return tokenOf(outs[len(outs)-1])
}

// rowsOf finds the keys and values of a layer among the outputs of a prefill.
func rowsOf(f *Function, outs []Ports, l int) (k, v swa.Slot) {
	for i, sig := range f.Chunks {
		for n, p := range sig.Outputs {
			if (p.Role == chunking.RoleCache || p.Role == chunking.RoleHandoff) && p.Layers[0] == l {
				return slot(outs[i][p.Name], 0), slot(outs[i][sig.Outputs[n+1].Name], 0)
			}
		}
	}
	panic("run: a prefill without the rows of an owner")
}

// trial is what a verify call has computed and nobody has accepted yet.
type trial struct {
	f    *Function
	outs []Ports
}

// Verify runs tokens through all chunks and returns, for each of them, the token that follows it. Caches stay as they are:
// [Session.Accept] takes over as many rows as the caller agrees with.
func (s *Session) Verify(ctx context.Context, f *Function, tokens []int) ([]int, error) {
	if f.Kind != Verify || len(tokens) != f.Tokens {
		return nil, &format.Error{Field: "verify", Got: fmt.Sprintf("%d tokens for function %s", len(tokens), f.Name), Want: fmt.Sprintf("%d for a verify function", f.Tokens)}
	}
	if err := s.check(tokens...); err != nil {
		return nil, err
	}
	outs, err := s.through(ctx, f, tokens)
	if err != nil {
		return nil, err
	}
	s.trial = &trial{f, outs}
	var next []int
	for _, id := range outs[len(outs)-1]["token_ids"].IDs {
		next = append(next, int(id))
	}
	return next, nil
}

// Accept commits the first n rows of the last verify call: windows shift by n and take the rows, other caches take them at
// their positions (spec forward.md §4.10). The rest is forgotten.
func (s *Session) Accept(n int) error {
	if s.trial == nil || n < 0 || n > s.trial.f.Tokens {
		return &format.Error{Field: "accept", Got: fmt.Sprintf("%d rows", n), Want: "0 to the tokens of the verify call just made"}
	}
	for i, sig := range s.trial.f.Chunks {
		for _, p := range sig.Outputs {
			if p.Role != chunking.RoleCache {
				continue
			}
			name := p.Name[len("new_"):] + "_in"
			for c, l := range p.Layers {
				s.take(s.e.Decode.slotOf(s.caches[i][name], c, l), slot(s.trial.outs[i][p.Name], c), l, n)
			}
		}
	}
	s.pos += n
	s.trial = nil
	return nil
}

// take commits n rows of a layer.
func (s *Session) take(cache, rows swa.Slot, l, n int) {
	size := cache.Rows * cache.Width
	for g := 0; g*size < len(cache.Data); g++ {
		head, fresh := cache.Data[g*size:(g+1)*size], rows.Data[g*rows.Rows*rows.Width:][:n*rows.Width]
		at := s.pos
		if s.e.Decode.Memory.Banks[l].Windowed() {
			sinks, window := head[:cache.Sinks*cache.Width], head[cache.Sinks*cache.Width:]
			if at < cache.Sinks {
				put(sinks[at*cache.Width:], cache.Width, fresh[:min(n, cache.Sinks-at)*rows.Width], rows.Width)
			}
			length := cache.Rows - cache.Sinks
			fresh = fresh[max(n-length, 0)*rows.Width:]
			at = length - len(fresh)/rows.Width
			copy(window, window[(length-at)*cache.Width:])
			head = window
		}
		put(head[at*cache.Width:], cache.Width, fresh, rows.Width)
	}
}

// put writes rows of width d into wider ones, zeros behind them.
func put(to []float32, width int, rows []float32, d int) {
	for ; len(rows) > 0; to, rows = to[width:], rows[d:] {
		clear(to[copy(to[:width], rows[:d]):width])
	}
}
