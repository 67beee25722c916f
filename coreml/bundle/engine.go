package bundle

import (
	"context"
	"slices"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
)

// Engine runs the calls that one sequence makes of a chunk. What states hold stays with it, whichever function wrote it.
type Engine interface {
	Run(ctx context.Context, function string, inputs map[string]*interp.Tensor, c interp.Call) (map[string]*interp.Tensor, error)
	Close() error
}

// interpreted is an engine of the interpreter.
type interpreted struct {
	model *interp.Model
	state interp.State
}

// Run implements [Engine].
func (e *interpreted) Run(ctx context.Context, function string, inputs map[string]*interp.Tensor, c interp.Call) (map[string]*interp.Tensor, error) {
	if err := e.prepare(function); err != nil {
		return nil, err
	}
	c.State = e.state
	return e.model.Run(ctx, function, inputs, c)
}

// prepare adds the states that no function has used before: zeros.
func (e *interpreted) prepare(function string) error {
	f := e.model.Program.Function(function)
	if f == nil || !slices.ContainsFunc(f.States(), func(v mil.Variable) bool { return e.state[v.Name] == nil }) {
		return nil // the call itself says that there is no such function
	}
	zeros, err := e.model.NewState(function)
	for name, t := range zeros {
		if e.state[name] == nil {
			e.state[name] = t
		}
	}
	return err
}

// Close implements [Engine].
func (e *interpreted) Close() error { return nil }

// start begins a sequence on a chunk.
func (c *Chunk) start() (Engine, error) {
	if c.Start != nil {
		return c.Start()
	}
	return &interpreted{c.Model, interp.State{}}, nil
}
