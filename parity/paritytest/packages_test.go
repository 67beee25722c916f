package paritytest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/chunking/emit"
	"anelab/coreml/device"
	"anelab/coreml/interp"
	"anelab/coreml/mlpackage"
	"anelab/gemma4"
	"anelab/internal/checkpoint/converted"
	"anelab/parity"
)

// chain is packages of our own emitter for the small model, written and read back.
type chain struct {
	packages parity.Packages
	paths    []string
}

// newChain emits the chunks of a layout and opens them for the interpreter.
func newChain(t *testing.T, m *gemma4.Model, src gemma4.Source, layout string, o emit.Options) chain {
	cm, err := chunking.NewModel(m.Config)
	require.NoError(t, err)
	l, err := chunking.Parse(layout, cm)
	require.NoError(t, err)
	plan, err := l.Plan(cm)
	require.NoError(t, err)
	chunks, err := emit.Emit(t.Context(), plan, src, o)
	require.NoError(t, err)
	c, dir := chain{packages: parity.Packages{Label: "packages", Model: m}}, t.TempDir()
	for _, chunk := range chunks {
		path := filepath.Join(dir, chunk.Name+".mlpackage")
		require.NoError(t, mlpackage.Write(t.Context(), path, chunk.Package, nil))
		c.paths = append(c.paths, path)
	}
	weights, err := converted.Open(m.Config, src, c.paths...)
	require.NoError(t, err)
	t.Cleanup(func() { weights.Close() })
	for _, one := range weights.Chunks {
		program, err := interp.New(one.Program, interp.Options{Precision: interp.ANE, Path: one.Path})
		require.NoError(t, err)
		p := parity.PackageChunk{MIL: parity.MIL{Label: one.Name(), Model: program, Function: one.Function.Name}, Lo: one.Lo, Hi: one.Hi, Taps: map[string]parity.PackageTap{}}
		for name, tap := range one.Taps() {
			p.Taps[name] = parity.PackageTap{Point: tap.Point, Layer: tap.Layer}
		}
		c.packages.Chunks = append(c.packages.Chunks, p)
	}
	return c
}

// graphPoints are what every graph has a tensor for.
var graphPoints = []gemma4.Point{gemma4.PointEmbeds, gemma4.PointPLE, gemma4.PointAttnOut, gemma4.PointFFNOut, gemma4.PointPLEOut, gemma4.PointHidden,
	gemma4.PointFinalNorm, gemma4.PointLogitsPre, gemma4.PointLogits}

// invariant: the packages that a layout is, written to disk and run op by op, are the whole model, with caches as ports and as states.
func TestMIL(t *testing.T) {
	for name, o := range map[string]emit.Options{"ports": {}, "states": {Caches: emit.StateCaches}} {
		t.Run(name, func(t *testing.T) {
			RunAll(t, Subject{Batches: []int{1}, Modes: []string{"ane"}, Points: graphPoints, New: func(m *gemma4.Model, src gemma4.Source) (parity.Backend, error) {
				return newChain(t, m, src, "L0-2 w=f16 | L3-4 w=f16 | L5-9+head w=f16 context=64", o).packages, nil
			}})
		})
	}
}

// borderPoints are what a device yields: what leaves a chunk.
var borderPoints = []gemma4.Point{gemma4.PointEmbeds, gemma4.PointPLE, gemma4.PointFinalNorm}

// On a Mac, Core ML itself passes the suite but for its own rounding; elsewhere it says what to do.
func TestDevice(t *testing.T) {
	if err := device.Available(); err != nil {
		require.ErrorIs(t, err, device.ErrUnavailable)
		t.Skip(err)
	}
	m := TinyE2B(t, "bf16", "ane")
	src, err := opened(t, tiny(t, "bf16"))
	require.NoError(t, err)
	c := newChain(t, m, src, "L0-4 w=f16 | L5-9+head w=f16 context=64", emit.Options{})
	on, stop, err := parity.OpenOnDevice(c.packages, c.paths, device.CPUAndANE)
	require.NoError(t, err)
	defer stop()
	loose := parity.Tolerance{PeakRel: 0.05, MaxRelRMS: 0.01, MinCosine: 0.9999}
	Run(t, on, parity.Reference{Model: m}, Golden(t, "decode_bf16.safetensors").Cases()[0].ParityCase(), parity.Settings{Tolerances: parity.Tolerances{Default: loose}})
}

// predictor stands in for Core ML: it has the interpreter run what it is given.
type predictor struct{ parity.MIL }

func (p predictor) NewState(string) (*device.State, error) { return nil, device.ErrState }

func (p predictor) Predict(function string, inputs map[string]*device.Tensor, _ *device.State) (*device.Prediction, error) {
	given := map[string]*interp.Tensor{}
	for name, t := range inputs {
		given[name] = (*interp.Tensor)(t)
	}
	out, err := p.Model.Run(context.Background(), function, given, interp.Call{})
	if err != nil {
		return nil, err
	}
	results := &device.Prediction{Outputs: map[string]*device.Tensor{}}
	for name, t := range out {
		results.Outputs[name] = (*device.Tensor)(t)
	}
	return results, nil
}

// invariant: the suite on the device backend with a stand-in for Core ML: tensors go both ways, chunk by chunk.
func TestDeviceBackendWithoutDevice(t *testing.T) {
	RunAll(t, Subject{Batches: []int{1}, Modes: []string{"ane"}, Points: borderPoints, New: func(m *gemma4.Model, src gemma4.Source) (parity.Backend, error) {
		p := newChain(t, m, src, "L0-4 w=f16 | L5-9+head w=f16 context=64", emit.Options{}).packages
		for i := range p.Chunks {
			p.Chunks[i].Predictor, p.Chunks[i].Taps = predictor{p.Chunks[i].MIL}, nil
		}
		return p, nil
	}})
}

// invariant: where there is no Core ML, opening says so, whatever the packages are.
func TestNoDeviceHere(t *testing.T) {
	if device.Available() == nil {
		t.Skip("this is a Mac with Core ML")
	}
	p := parity.Packages{Chunks: []parity.PackageChunk{{}}}
	_, _, err := parity.OpenOnDevice(p, []string{"x.mlpackage"}, device.All)
	require.ErrorIs(t, err, device.ErrUnavailable)
}
