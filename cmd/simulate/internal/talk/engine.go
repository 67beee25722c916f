package talk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"anelab/gemma4"
	"anelab/internal/chat"
	"anelab/internal/format"
	"anelab/internal/tokenizer"
)

// Engine is a model that can be talked to.
type Engine struct {
	Name      string
	Speaker   Speaker
	Tokenizer *tokenizer.Tokenizer // nil = ids only
	Chat      *chat.Format         // nil = no conversations
	Context   int                  // positions of a sequence
}

// Style says how ids become text.
type Style uint8

// Raw text shows what the model says; Chat takes thoughts out of it.
const (
	Raw Style = iota
	Chat
)

// Request is one generation.
type Request struct {
	Prompt   []int
	Most     int // tokens
	Style    Style
	Sampling gemma4.Sampling
	Stops    []string // texts that end the answer and are not part of it
	// LogProbs asks for the probabilities of tokens, and Alternatives for those of so many others beside them.
	LogProbs     bool
	Alternatives int
}

// Token is what one id brought. The last one of an answer has no id: it brings what was held back.
type Token struct {
	ID      int // −1 = none
	Part    chat.Part
	LogProb float64
	Top     []Alternative
}

// Finish says why an answer ended; "" = something went wrong.
type Finish string

// Reasons, in OpenAI's words.
const (
	Stopped Finish = "stop"
	Length  Finish = "length"
)

// Result is how a generation went.
type Result struct {
	Finish          Finish
	PromptTokens    int
	Tokens          int // generated, without the one that ended the answer
	Steps           int // decoded one by one
	PromptSeconds   float64
	GenerateSeconds float64 // of the steps
}

// PromptRate is tokens per second of the prompt; 0 where it took no time.
func (r *Result) PromptRate() float64 { return rate(r.PromptTokens, r.PromptSeconds) }

// GenerateRate is tokens per second of decoding one by one.
func (r *Result) GenerateRate() float64 { return rate(r.Steps, r.GenerateSeconds) }

func rate(n int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// Fits refuses a request that the context has no room for.
func (e *Engine) Fits(prompt, most int) error {
	if prompt+most <= e.Context {
		return nil
	}
	return &format.Error{Field: "context", Got: fmt.Sprintf("%d tokens of prompt and %d to generate", prompt, most), Want: fmt.Sprintf("at most %d together", e.Context),
		Fix: "shorten them or give the model a longer context; nothing is shifted out silently"}
}

// Room is how many tokens fit behind a prompt.
func (e *Engine) Room(prompt int) int { return max(e.Context-prompt, 0) }

// check refuses what cannot be computed.
func (e *Engine) check(r *Request) error {
	if len(r.Prompt) == 0 {
		return &format.Error{Field: "prompt", Got: "no tokens", Want: "at least one"}
	}
	if r.Most < 1 {
		return &format.Error{Field: "max_tokens", Got: fmt.Sprint(r.Most), Want: "at least 1"}
	}
	return e.Fits(len(r.Prompt), r.Most)
}

// Run generates until the model or a stop text ends the answer, or the tokens are used up. It hands every token to emit, whose error ends
// it, too.
func (e *Engine) Run(ctx context.Context, r Request, emit func(Token) error) (Result, error) {
	g := &generation{e: e, r: &r, emit: emit, ends: e.ends(r.Style)}
	result := &g.result
	result.PromptTokens = len(r.Prompt)
	if err := e.check(&r); err != nil {
		return *result, err
	}
	var err error
	if g.sampler, err = gemma4.NewSampler(r.Sampling); err != nil {
		return *result, err
	}
	g.sampler.Prompt(r.Prompt)
	if g.sequence, err = e.Speaker.Begin(e.Context); err != nil {
		return *result, err
	}
	g.text = e.decoder(&r)
	g.stop = newStopper(r.Stops)
	start := time.Now()
	logits, err := g.sequence.Prefill(ctx, r.Prompt)
	result.PromptSeconds = time.Since(start).Seconds()
	if err != nil {
		return *result, err
	}
	start = time.Now()
	err = g.decode(ctx, logits)
	result.GenerateSeconds = time.Since(start).Seconds()
	return *result, err
}

// ends are the ids that end an answer: those of the config, of the vocabulary and of the conversation format.
func (e *Engine) ends(style Style) []int {
	ends := slices.Clone(e.Speaker.Ends())
	if e.Tokenizer != nil {
		ends = append(ends, e.Tokenizer.Settings().EOS...)
	}
	if style == Chat && e.Chat != nil {
		ends = append(ends, e.Chat.Stops()...)
	}
	return ends
}

// generation is one request in progress.
type generation struct {
	e        *Engine
	r        *Request
	emit     func(Token) error
	ends     []int
	sampler  *gemma4.Sampler
	sequence Sequence
	text     decoder
	stop     *stopper
	result   Result
}

// decode generates from the logits behind the prompt.
func (g *generation) decode(ctx context.Context, logits []float32) error {
	for {
		id := g.sampler.Next(logits)
		if slices.Contains(g.ends, id) {
			g.result.Finish = Stopped
			break
		}
		g.result.Tokens++
		t := Token{ID: id, Part: g.text.Push(id)}
		if g.r.LogProbs {
			t.LogProb, t.Top = logProbs(logits, id, g.r.Alternatives)
		}
		var stopped bool
		t.Part.Content, stopped = g.stop.push(t.Part.Content)
		if err := g.emit(t); err != nil {
			return err
		}
		if stopped {
			g.result.Finish = Stopped
			return nil
		}
		if g.result.Tokens == g.r.Most {
			g.result.Finish = Length
			break
		}
		var err error
		if logits, err = g.sequence.Step(ctx, id); err != nil {
			return err
		}
		g.result.Steps++
	}
	return g.flush()
}

// flush hands over what was held back.
func (g *generation) flush() error {
	last := g.text.Flush()
	content, stopped := g.stop.push(last.Content)
	if stopped {
		g.result.Finish = Stopped
	} else {
		content += g.stop.flush()
	}
	last.Content = content
	if last.Empty() {
		return nil
	}
	return g.emit(Token{ID: -1, Part: last})
}
