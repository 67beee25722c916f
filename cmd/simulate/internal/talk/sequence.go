package talk

import (
	"context"

	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
	"anelab/internal/chat"
	"anelab/internal/tokenizer"
)

// sequence is one sequence in progress; logits [V] are valid until the next call.
type sequence interface {
	Prefill(ctx context.Context, tokens []int) ([]float32, error)
	Step(ctx context.Context, token int) ([]float32, error)
}

// sequence begins one.
func (e *Engine) sequence() (sequence, error) {
	if e.Plan == nil {
		return e.Model.NewState(e.Context)
	}
	s, err := run.NewSession(e.Model, e.Plan)
	if err != nil {
		return nil, err
	}
	c := &chunked{model: e.Model, plan: e.Plan, session: s}
	s.Listen(c.note)
	return c, nil
}

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
