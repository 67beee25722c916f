package parity

import (
	"context"
	"fmt"

	"anelab/coreml/bundle"
	"anelab/coreml/device"
	"anelab/coreml/interp"
)

// Predictor is a model that Core ML has loaded: a [device.Model].
type Predictor interface {
	Predict(function string, inputs map[string]*device.Tensor, s *device.State) (*device.Prediction, error)
	NewState(function string) (*device.State, error)
}

// onDevice is a [bundle.Engine] of Core ML. It knows no results but the outputs.
type onDevice struct {
	Predictor
	state *device.State
}

// Run implements [bundle.Engine].
func (e *onDevice) Run(ctx context.Context, function string, inputs map[string]*interp.Tensor, _ interp.Call) (map[string]*interp.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	given := map[string]*device.Tensor{}
	for name, t := range inputs {
		given[name] = (*device.Tensor)(t)
	}
	p, err := e.Predict(function, given, e.state)
	if err != nil {
		return nil, err
	}
	outputs := map[string]*interp.Tensor{}
	for name, t := range p.Outputs {
		outputs[name] = (*interp.Tensor)(t)
	}
	return outputs, nil
}

// Close implements [bundle.Engine].
func (e *onDevice) Close() error {
	if e.state == nil {
		return nil
	}
	return e.state.Close()
}

// onDevice starts a sequence on Core ML.
func (c *PackageChunk) onDevice() (bundle.Engine, error) {
	e := &onDevice{Predictor: c.Predictor}
	if len(c.function().States()) == 0 {
		return e, nil
	}
	var err error
	if e.state, err = c.NewState(c.name()); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Label, err)
	}
	return e, nil
}

// OpenOnDevice has Core ML load every package of a chain. What it returns yields what crosses the borders of chunks; close releases the
// models. Where there is no Core ML the error wraps [device.ErrUnavailable].
func OpenOnDevice(p Packages, paths []string, units device.Units) (on Packages, close func() error, err error) {
	if len(paths) != len(p.Chunks) {
		panic("parity: OpenOnDevice: want a path per chunk")
	}
	var models []*device.Model
	close = func() error {
		var first error
		for _, m := range models {
			if err := m.Close(); err != nil && first == nil {
				first = err
			}
		}
		return first
	}
	on = Packages{Label: "Core ML on " + units.String(), Model: p.Model, Tables: p.Tables, Windows: p.Windows}
	for i, c := range p.Chunks {
		m, err := device.Open(paths[i], units)
		if err != nil {
			return on, close, fmt.Errorf("%w (closing: %v)", err, close())
		}
		models = append(models, m)
		c.Predictor, c.Taps = m, nil
		on.Chunks = append(on.Chunks, c)
	}
	return on, close, nil
}
