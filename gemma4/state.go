package gemma4

import (
	"context"
	"errors"
	"fmt"

	"anelab/internal/format"
	"anelab/swa"
)

// ErrNotFinite says that a forward pass produced NaN or infinity; its argmax would be meaningless.
var ErrNotFinite = errors.New("logits are not finite: a value overflowed this numerics mode")

// State is one sequence: what its layers remember, and scratch. Not safe for concurrent use.
type State struct {
	model   *Model
	context int
	batch   int
	stores  []swa.Store
	ws      Workspace
	pass    Pass
	x, ple  []float32
	normed  []float32
	pre     []float32
	logits  []float32
	one     [1]int
	tried   int // rows of a Try that may be accepted
	tracer  Tracer
}

// defaultBatch is how many prompt tokens go through the layers at once.
const defaultBatch = 256

// NewState allocates the memory of a sequence of at most context positions.
func (m *Model) NewState(context int) (*State, error) {
	if context < 1 || (m.Config.MaxPositionEmbeddings > 0 && context > m.Config.MaxPositionEmbeddings) {
		return nil, &format.Error{Field: "context", Got: fmt.Sprint(context), Want: fmt.Sprintf("1 to %d positions", m.Config.MaxPositionEmbeddings)}
	}
	return &State{model: m, context: context, batch: defaultBatch, stores: m.newStores(context)}, nil
}

// Next is the position of the next token.
func (s *State) Next() int { return s.stores[0].Next() }

// Context is the number of positions the state has room for.
func (s *State) Context() int { return s.context }

// Store is what layer l remembers; nil for layers that share another's.
func (s *State) Store(l int) swa.Store { return s.stores[l] }

// SetBatch limits how many prompt tokens go through the layers at once; results do not depend on it.
func (s *State) SetBatch(t int) { s.batch = max(t, 1) }

// Listen sends the intermediate tensors of every later call to the tracer, and makes calls compute the logits of all their
// rows; nil stops it.
func (s *State) Listen(t Tracer) { s.tracer = t }

// Truncate forgets positions p and above, to go on differently from there. It fails, and changes nothing, where a sliding
// layer no longer holds the rows before p.
func (s *State) Truncate(p int) error {
	for _, st := range s.stores {
		if st == nil {
			continue
		}
		if err := swa.Resumable(st, p); err != nil {
			return err
		}
	}
	for _, st := range s.stores {
		if st == nil {
			continue
		}
		if err := st.Truncate(p); err != nil {
			return err
		}
	}
	return nil
}

// Prefill feeds tokens and returns the logits [V] that follow the last of them. The slice is valid until the next call.
func (s *State) Prefill(ctx context.Context, tokens []int) ([]float32, error) {
	if err := s.check(tokens); err != nil {
		return nil, err
	}
	for len(tokens) > s.batch {
		if err := s.call(ctx, tokens[:s.batch], inner); err != nil {
			return nil, err
		}
		tokens = tokens[s.batch:]
	}
	if err := s.call(ctx, tokens, final); err != nil {
		return nil, err
	}
	return s.head()
}

// part says what a call is needed for.
type part uint8

const (
	inner part = iota // only what its tokens leave behind
	final             // also the logits that follow its last token
	every             // also the logits that follow each of them
)

// Step feeds one token and returns the logits [V] that follow it.
func (s *State) Step(ctx context.Context, token int) ([]float32, error) {
	s.one[0] = token
	return s.Prefill(ctx, s.one[:])
}

func (s *State) check(tokens []int) error {
	if len(tokens) == 0 {
		return &format.Error{Field: "prompt", Got: "no tokens", Want: "at least one"}
	}
	if n := s.Next() + len(tokens); n > s.context {
		return &format.Error{Field: "context", Got: fmt.Sprintf("%d positions", n), Want: fmt.Sprintf("at most %d", s.context),
			Fix: "ask for a longer context; positions are never shifted, a window cache cannot be re-based"}
	}
	vocab := s.model.Config.VocabSize
	if s.model.Config.HiddenSizePerLayer > 0 {
		vocab = min(vocab, s.model.Config.VocabSizePerLayerInput)
	}
	for i, id := range tokens {
		if id < 0 || id >= vocab {
			return &format.Error{Field: fmt.Sprintf("token %d", i), Got: fmt.Sprintf("id %d", id), Want: fmt.Sprintf("0 to %d", vocab-1)}
		}
	}
	return nil
}

// layers carries a batch through the model. A layer above the last owner of keys and values leaves nothing behind, so only the
// last token of a prompt needs it; of that owner the others need the keys and values alone (spec perf.md §6.1). Rows do not
// depend on one another's presence, so the result is the same bit for bit. When somebody listens, every row goes all the way.
func (s *State) layers(ctx context.Context, p *Pass, what part) error {
	m, donor := s.model, s.model.owner
	if p.Trace != nil || what == every || p.T == 1 && what == final {
		return m.RunLayers(ctx, p, 0, len(m.Layers))
	}
	if err := m.RunLayers(ctx, p, 0, donor); err != nil {
		return err
	}
	m.remember(p, donor)
	if what == inner {
		return nil
	}
	return m.RunLayers(ctx, m.last(p, donor), donor, len(m.Layers))
}

// call runs one batch through the layers and commits it.
func (s *State) call(ctx context.Context, tokens []int, what part) error {
	if err := s.forward(ctx, tokens, what); err != nil {
		return err
	}
	s.commit()
	s.tapHead(&s.pass)
	return nil
}

// forward runs one batch through the layers; its keys and values are staged.
func (s *State) forward(ctx context.Context, tokens []int, what part) error {
	m, p := s.model, &s.pass
	s.tried = 0
	*p = Pass{First: s.Next(), T: len(tokens), Stores: s.stores, Trace: s.tracer}
	m.Begin(p, &s.ws)
	s.tapRope(p)
	s.x = grow(s.x, p.T*m.Config.HiddenSize)
	p.X = s.x
	m.Embed(p.X, tokens)
	p.tap(PointEmbeds, -1, p.X, dims{p.T, m.Config.HiddenSize})
	if n := len(m.Layers) * m.Config.HiddenSizePerLayer; n > 0 {
		s.ple, s.ws.proj = grow(s.ple, p.T*n), grow(s.ws.proj, p.T*n)
		p.PLE = s.ple
		m.PLERaw(p.PLE, tokens)
		m.CombinePLE(p.PLE, s.ws.proj, p.X)
		p.tap(PointPLE, -1, p.PLE, dims{p.T, len(m.Layers), m.Config.HiddenSizePerLayer})
	}
	return s.layers(ctx, p, what)
}

// commit makes the staged rows part of the past.
func (s *State) commit() {
	for _, st := range s.stores {
		if st != nil {
			st.Commit()
		}
	}
}

// head computes the logits of the last row of the last call.
func (s *State) head() ([]float32, error) {
	m, d := s.model, s.model.Config.HiddenSize
	s.normed, s.pre, s.logits = grow(s.normed, d), grow(s.pre, m.Config.VocabSize), grow(s.logits, m.Config.VocabSize)
	m.FinalNorm(s.normed, s.pass.X[(s.pass.T-1)*d:])
	m.Logits(s.logits, s.pre, s.normed)
	if !finite(s.logits) {
		return nil, ErrNotFinite
	}
	return s.logits, nil
}

// finite reports whether no logit is NaN or infinite.
func finite(logits []float32) bool {
	for _, v := range logits {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// tapRope traces the rotary tables of the call.
func (s *State) tapRope(p *Pass) {
	if p.Trace == nil {
		return
	}
	points := [2][2]Point{Sliding: {PointRopeCosSliding, PointRopeSinSliding}, Full: {PointRopeCosFull, PointRopeSinFull}}
	for kind, r := range p.Rope {
		d := len(r.Cos) / p.T
		if d > 0 {
			p.tap(points[kind][0], -1, r.Cos, dims{p.T, d})
			p.tap(points[kind][1], -1, r.Sin, dims{p.T, d})
		}
	}
}

// tapHead traces norm and logits of every row of the call.
func (s *State) tapHead(p *Pass) {
	if p.Trace == nil {
		return
	}
	m, d, v := s.model, s.model.Config.HiddenSize, s.model.Config.VocabSize
	normed, pre, capped := make([]float32, p.T*d), make([]float32, p.T*v), make([]float32, p.T*v)
	m.FinalNorm(normed, p.X)
	m.Logits(capped, pre, normed)
	p.tap(PointFinalNorm, -1, normed, dims{p.T, d})
	p.tap(PointLogitsPre, -1, pre, dims{p.T, v})
	p.tap(PointLogits, -1, capped, dims{p.T, v})
}
