package speculate

import (
	"context"
	"fmt"
	"slices"

	"anelab/attention"
	"anelab/chunking"
	"anelab/chunking/run"
	"anelab/gemma4"
	"anelab/internal/format"
)

// Mode is what a verify call does to windows and caches.
type Mode string

// See the package comment.
const (
	Clean        Mode = "clean"
	Shifted      Mode = "shifted"
	Contaminated Mode = "contaminated"
)

// Modes are all of them.
var Modes = []string{string(Clean), string(Shifted), string(Contaminated)}

// Policies are the attention policies that a model for [NewChunked] is loaded with; nil where they are its own. A model that is loaded
// with others serves one sequence at a time.
func Policies(plan *chunking.Plan, mode Mode) (map[int]attention.Policy, error) {
	switch mode {
	case Clean:
		return nil, nil
	case Shifted, Contaminated:
		return run.Shiftable(plan)
	}
	return nil, unknownMode(mode)
}

func unknownMode(mode Mode) error {
	return &format.Error{Field: "verify", Got: string(mode), Fix: format.DidYouMean(string(mode), Modes)}
}

// Chunked runs the chunks of a plan through their ports, with verify functions of as many tokens as are asked for.
type Chunked struct {
	prompts   *gemma4.Model // takes in prompts
	plan      *chunking.Plan
	mode      Mode
	session   *run.Session
	functions map[int]*run.Function // by tokens
}

// NewChunked starts a sequence of the plan's context. The model m is loaded with the [Policies] of plan and mode; prompts is the
// same one with policies of its own, for prompts: m would judge them by the verify call before.
func NewChunked(prompts, m *gemma4.Model, plan *chunking.Plan, mode Mode) (*Chunked, error) {
	if !slices.Contains(Modes, string(mode)) {
		return nil, unknownMode(mode)
	}
	s, err := run.NewSession(m, plan)
	if err != nil {
		return nil, err
	}
	return &Chunked{prompts: prompts, plan: plan, mode: mode, session: s, functions: map[int]*run.Function{}}, nil
}

// Start prefills by the whole model and fills the caches from it, as the upstream runtime does from its prefill programs.
func (c *Chunked) Start(ctx context.Context, prompt []int) (int, error) {
	st, err := c.prompts.NewState(c.plan.Context)
	if err != nil {
		return 0, err
	}
	logits, err := st.Prefill(ctx, prompt)
	if err != nil {
		return 0, err
	}
	return gemma4.Argmax(logits), c.session.Import(st)
}

// Step is a decode call.
func (c *Chunked) Step(ctx context.Context, token int) (int, error) {
	t, err := c.session.Step(ctx, token)
	return t.ID, err
}

// Verify is a call of the verify function; a single token is decoded.
func (c *Chunked) Verify(ctx context.Context, tokens []int) ([]int, error) {
	f := c.functions[len(tokens)]
	if f == nil {
		window := run.ShiftedWindow
		if c.mode == Clean {
			window = run.WholeWindow
		}
		var err error
		if f, err = run.VerifyOf(c.plan, len(tokens), window); err != nil {
			return nil, fmt.Errorf("verify of %d tokens: %w", len(tokens), err)
		}
		c.functions[len(tokens)] = f
	}
	return c.session.Verify(ctx, f, tokens)
}

// Accept commits rows: the first n, or in a contaminated cache all of them, whatever n is.
func (c *Chunked) Accept(n int) error {
	if c.mode == Contaminated {
		return c.session.WriteThrough(n)
	}
	return c.session.Accept(n)
}

// Room is what is left of the plan's context.
func (c *Chunked) Room() int { return c.plan.Context - c.session.Next() }
