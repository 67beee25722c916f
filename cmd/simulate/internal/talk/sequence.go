package talk

import (
	"context"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
	"anelab/internal/chat"
	"anelab/internal/tokenizer"
)

// Speaker is what computes: a model in one piece, in chunks, or as Core ML programs.
type Speaker interface {
	// Begin starts a sequence of at most context positions.
	Begin(context int) (Sequence, error)
	// Ends are the ids that end an answer.
	Ends() []int
	// Layout is the cut in canonical text; "" = in one piece.
	Layout() string
	// StepBytes are the weight bytes that a token reads, KVBytes what a sequence keeps.
	StepBytes() int64
	KVBytes(context int) int64
}

// Sequence is one sequence in progress; logits [V] are valid until the next call.
type Sequence interface {
	Prefill(ctx context.Context, tokens []int) ([]float32, error)
	Step(ctx context.Context, token int) ([]float32, error)
}

// Whole is a model in one piece.
type Whole struct{ *gemma4.Model }

// Begin implements [Speaker].
func (w Whole) Begin(context int) (Sequence, error) { return w.NewState(context) }

// Ends implements [Speaker].
func (w Whole) Ends() []int { return w.Config.EOSTokenID }

// Layout implements [Speaker].
func (w Whole) Layout() string { return "" }

// Cut is a model in chunks.
type Cut struct {
	Whole
	Plan *chunking.Plan
}

// Begin implements [Speaker].
func (c Cut) Begin(int) (Sequence, error) {
	s, err := run.NewSession(c.Model, c.Plan)
	if err != nil {
		return nil, err
	}
	q := &chunked{model: c.Model, plan: c.Plan, session: s}
	s.Listen(q.note)
	return q, nil
}

// Layout implements [Speaker].
func (c Cut) Layout() string { return c.Plan.Layout.String() }

// chunked decodes chunk by chunk. Its prompt, but for the last token, goes through the whole model and is imported: the caches are
// the same bits, and a call of every chunk for every token of a prompt would take minutes.
type chunked struct {
	model   *gemma4.Model
	plan    *chunking.Plan
	session *run.Session
	logits  []float32 // [V] of the last step
}

// note keeps the logits of the head's chunk, whose ports only carry the greedy choice.
func (c *chunked) note(t gemma4.Tap) {
	if t.Point == gemma4.PointLogits {
		c.logits = append(c.logits[:0], t.Data...)
	}
}

func (c *chunked) Prefill(ctx context.Context, tokens []int) ([]float32, error) {
	if last := len(tokens) - 1; last > 0 {
		s, err := c.model.NewState(c.plan.Context)
		if err != nil {
			return nil, err
		}
		if _, err := s.Prefill(ctx, tokens[:last]); err != nil {
			return nil, err
		}
		if err := c.session.Import(s); err != nil {
			return nil, err
		}
		tokens = tokens[last:]
	}
	return c.Step(ctx, tokens[0])
}

func (c *chunked) Step(ctx context.Context, token int) ([]float32, error) {
	_, err := c.session.Step(ctx, token)
	return c.logits, err
}

// decoder turns ids into text.
type decoder interface {
	Push(id int) chat.Part
	Flush() chat.Part
}

func (e *Engine) decoder(r *Request) decoder {
	switch {
	case e.Tokenizer == nil:
		return noText{}
	case r.Style == Chat && e.Chat != nil:
		return e.Chat.Parser(r.Prompt)
	}
	return rawText{e.Tokenizer.Stream(tokenizer.HideSpecials)}
}

// noText is for models without a vocabulary.
type noText struct{}

func (noText) Push(int) chat.Part { return chat.Part{} }
func (noText) Flush() chat.Part   { return chat.Part{} }

// rawText is everything as it comes.
type rawText struct{ s *tokenizer.Stream }

func (t rawText) Push(id int) chat.Part { return chat.Part{Content: t.s.Push(id)} }
func (t rawText) Flush() chat.Part      { return chat.Part{Content: t.s.Flush()} }
