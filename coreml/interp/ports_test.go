package interp_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
	"anelab/internal/shareddata"

	"github.com/stretchr/testify/require"
)

// masked is a program with a mask port, a state and a token: what a decode chunk has.
func masked(t testing.TB) *interp.Model {
	b := newBuilder()
	b.input("x", mil.TensorOf(mil.Float16, 1, 8, 1, 32))
	b.input("causal_mask_full", mil.TensorOf(mil.Float16, 1, 1, 1, 32))
	b.input("pos", mil.TensorOf(mil.Int32, 1))
	b.input("kv", mil.StateOf(mil.TensorOf(mil.Float16, 32, 4)))
	y := b.one("add", "x", "x", "y", "causal_mask_full")
	kv := b.one("read_state", "input", "kv")
	end := b.one("add", "x", "pos", "y", ints(1))
	begin := b.one("concat", "values", []string{"pos", b.constant(ints(0))}, "axis", mil.Scalar(int32(0)), "interleave", mil.Scalar(false))
	stop := b.one("concat", "values", []string{end, b.constant(ints(4))}, "axis", mil.Scalar(int32(0)), "interleave", mil.Scalar(false))
	row := b.constant(tensor([]float32{1, 2, 3, 4}, 1, 4))
	b.op("write_state", 0, "input", "kv", "data", b.one("slice_update", "x", kv, "update", row, "begin", begin, "end", stop))
	picked := b.one("gather", "x", b.one("read_state", "input", "kv"), "indices", "pos", "axis", mil.Scalar(int32(0)))
	m, err := interp.New(b.program(y, picked), interp.Options{Precision: interp.FP16, Path: "chunk1.mlpackage"})
	require.NoError(t, err)
	return m
}

func inputs(pos int32) map[string]*interp.Tensor {
	return map[string]*interp.Tensor{"x": interp.NewTensor(mil.Float16, 1, 8, 1, 32), "causal_mask_full": interp.NewTensor(mil.Float16, 1, 1, 1, 32),
		"pos": interp.I32([]int32{pos}, 1)}
}

// hand: each mistake has an error of its own that names port, found and wanted.
func TestMistakesOfACall(t *testing.T) {
	m := masked(t)
	state, err := m.NewState("main")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change   func(in map[string]*interp.Tensor, c *interp.Call)
		cause    error
		function string
		text     []string
	}{
		"function": {nil, interp.ErrFunction, "mian", []string{`"mian"`, "want main", `did you mean "main"?`}},
		"missing":  {func(in map[string]*interp.Tensor, _ *interp.Call) { delete(in, "x") }, interp.ErrMissingInput, "", []string{"main/x", "tensor<fp16, [1, 8, 1, 32]>"}},
		"unknown":  {func(in map[string]*interp.Tensor, _ *interp.Call) { in["causal_mask"] = in["x"] }, interp.ErrUnknownInput, "", []string{"main/causal_mask"}},
		"type":     {func(in map[string]*interp.Tensor, _ *interp.Call) { in["x"].DType = mil.Float32 }, interp.ErrInputType, "", []string{"main/x", "fp32", "want fp16"}},
		"shape":    {func(in map[string]*interp.Tensor, _ *interp.Call) { in["x"] = interp.NewTensor(mil.Float16, 1, 8, 32) }, interp.ErrInputShape, "", []string{"[1, 8, 32]", "want [1, 8, 1, 32]"}},
		"data":     {func(in map[string]*interp.Tensor, _ *interp.Call) { in["x"].Floats = in["x"].Floats[:7] }, interp.ErrInputData, "", []string{"main/x", "7 floats"}},
		"no state": {func(_ map[string]*interp.Tensor, c *interp.Call) { c.State = nil }, interp.ErrState, "", []string{"main/kv", "NewState"}},
		"state": {func(_ map[string]*interp.Tensor, c *interp.Call) {
			c.State = interp.State{"kv": interp.NewTensor(mil.Float16, 31, 4)}
		}, interp.ErrInputShape, "", []string{"main/kv", "[31, 4]"}},
		"as input": {func(in map[string]*interp.Tensor, _ *interp.Call) { in["kv"] = interp.NewTensor(mil.Float16, 32, 4) }, interp.ErrUnknownInput, "", []string{"Call.State"}},
		"position": {func(in map[string]*interp.Tensor, _ *interp.Call) { in["pos"].Ints[0] = 32 }, interp.ErrValue, "", []string{"(slice_update)/begin", "[32 0]", "[32, 4]"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, call := inputs(3), interp.Call{State: state}
			if c.change != nil {
				c.change(in, &call)
			}
			function := "main"
			if c.function != "" {
				function = c.function
			}
			_, err := m.Run(context.Background(), function, in, call)
			require.ErrorIs(t, err, c.cause)
			var e *format.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "chunk1.mlpackage", e.Path)
			for _, text := range c.text {
				require.ErrorContains(t, err, text)
			}
		})
	}
	require.Equal(t, make([]float32, 128), state["kv"].Floats, "a call that fails leaves the state alone")
}

// hand: a folder with chunks of an 8K context and the masks of a 32-token one.
func TestCHK01MaskForAnotherContext(t *testing.T) {
	m, in := masked(t), inputs(0)
	state, err := m.NewState("main")
	require.NoError(t, err)
	in["causal_mask_full"] = interp.NewTensor(mil.Float16, 1, 1, 1, 8192)
	_, err = m.Run(context.Background(), "main", in, interp.Call{State: state})
	require.ErrorIs(t, err, interp.ErrContext)
	require.ErrorContains(t, err, "chunk1.mlpackage: main/causal_mask_full: [1, 1, 1, 8192], want [1, 1, 1, 32]")
	require.ErrorContains(t, err, "built for 32 positions")
	require.NotErrorIs(t, err, interp.ErrInputShape)
}

func TestStateLivesBetweenCalls(t *testing.T) { // hand
	m := masked(t)
	state, err := m.NewState("main")
	require.NoError(t, err)
	for _, pos := range []int32{0, 2, 31} {
		_, err := m.Run(context.Background(), "main", inputs(pos), interp.Call{State: state})
		require.NoError(t, err)
	}
	want := make([]float32, 128)
	for _, row := range []int{0, 2, 31} {
		copy(want[4*row:], []float32{1, 2, 3, 4})
	}
	require.Equal(t, want, state["kv"].Floats)
	copied := state.Clone()
	copied["kv"].Floats[0] = 9
	require.Equal(t, float32(1), state["kv"].Floats[0])
}

func TestFlexibleShapesAreThoseOfTheDescription(t *testing.T) { // hand
	pkg, err := mlpackage.Open(filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", "flex_range_dim.mlpackage"))
	require.NoError(t, err)
	defer pkg.Close()
	m, err := interp.New(pkg.Program, interp.Options{Precision: interp.FP16})
	require.NoError(t, err)
	in := pkg.Program.Functions[0].Inputs[0]
	require.NotNil(t, in.Flexible)
	shape := append([]int64{}, in.Flexible.Default...)
	for i, r := range in.Flexible.Ranges {
		if r.Max > r.Min {
			shape[i] = r.Max + 1
		}
	}
	dims := make([]int, len(shape))
	for i, n := range shape {
		dims[i] = int(n)
	}
	_, err = m.Run(context.Background(), "main", map[string]*interp.Tensor{in.Name: interp.NewTensor(mil.Float16, dims...)}, interp.Call{})
	require.ErrorIs(t, err, interp.ErrInputShape)
	require.ErrorContains(t, err, " to ")
}

func TestUnsupportedOpIsNamed(t *testing.T) { // hand
	b := newBuilder()
	x := b.input("x", mil.TensorOf(mil.Float16, 1, 2, 4, 4))
	y := b.one("max_pool", "x", x, "kernel_sizes", ints(2, 2), "pad_type", mil.Scalar("valid"))
	m, err := interp.New(b.program(y), interp.Options{})
	require.NoError(t, err, "functions are prepared when they are called")
	err = m.Prepare("main")
	require.ErrorIs(t, err, interp.ErrUnsupported)
	require.ErrorContains(t, err, "main/"+y+" (max_pool)")
	require.NotContains(t, interp.Supported(), "max_pool")
}

func TestBrokenProgramIsRefused(t *testing.T) { // hand
	b := newBuilder()
	x := b.input("x", mil.TensorOf(mil.Float16, 3))
	y := b.one("exp", "x", x)
	p := b.program(y)
	p.Functions[0].Body.Ops[0].Outputs[0].Type = mil.TensorOf(mil.Float16, 4)
	_, err := interp.New(p, interp.Options{Path: "p"})
	require.ErrorIs(t, err, mil.ErrDeclared)
}

func TestCancelledCall(t *testing.T) { // hand
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := masked(t)
	state, err := m.NewState("main")
	require.NoError(t, err)
	_, err = m.Run(ctx, "main", inputs(0), interp.Call{State: state})
	require.ErrorIs(t, err, context.Canceled)
}

// invariant: inputs are never written to, outputs are the caller's, and calls at the same time do not disturb each other.
func TestCallsAtTheSameTime(t *testing.T) {
	b := newBuilder()
	x := b.input("x", mil.TensorOf(mil.Float16, 64, 128))
	y := b.one("add", "x", b.one("exp", "x", b.one("mul", "x", x, "y", f16(0.5))), "y", x)
	same := b.one("identity", "x", x)
	m, err := interp.New(b.program(y, same), interp.Options{Precision: interp.ANE, Threads: 2})
	require.NoError(t, err)
	var wait sync.WaitGroup
	var failures [4]error
	for k := range 4 {
		wait.Go(func() { failures[k] = runMany(m, float32(k)/4, y, same) })
	}
	wait.Wait()
	require.NoError(t, errors.Join(failures[:]...))
}

// runMany runs the program of one number many times and checks every result.
func runMany(m *interp.Model, value float32, y, same string) error {
	floats := make([]float32, 64*128)
	for i := range floats {
		floats[i] = value
	}
	in := interp.F16(floats, 64, 128)
	for range 50 {
		out, err := m.Run(context.Background(), "main", map[string]*interp.Tensor{"x": in}, interp.Call{})
		if err != nil {
			return err
		}
		want := float64(value) + math.Exp(float64(value)/2)
		for i, got := range out[y].Floats {
			if math.Abs(float64(got)-want) > 2e-3 || in.Floats[i] != value || out[same].Floats[i] != value {
				return errors.New("calls disturb each other")
			}
		}
		clear(out[same].Floats) // the caller's own
		m.Recycle(out[y], out[same])
	}
	return nil
}

func TestTapsInProgramOrder(t *testing.T) { // hand
	b := newBuilder()
	x := b.input("x", mil.TensorOf(mil.Float16, 2, 3))
	u := b.one("transpose", "x", x, "perm", ints(1, 0))
	v := b.one("add", "x", u, "y", f16(1))
	unused := b.one("exp", "x", v)
	w := b.one("mul", "x", v, "y", f16(2))
	m, err := interp.New(b.program(w), interp.Options{Precision: interp.FP16})
	require.NoError(t, err)
	in := map[string]*interp.Tensor{"x": interp.F16([]float32{0, 1, 2, 3, 4, 5}, 2, 3)}
	var names []string
	values := map[string]*interp.Tensor{}
	tap := func(name string, v *interp.Tensor) { names, values[name] = append(names, name), v.Clone() }
	_, err = m.Run(context.Background(), "main", in, interp.Call{Tap: tap})
	require.NoError(t, err)
	require.Equal(t, []string{u, v, unused, w}, names)
	require.Equal(t, []float32{0, 3, 1, 4, 2, 5}, values[u].Floats, "views are handed out in order")
	require.Equal(t, []int{3, 2}, values[u].Shape)
	names = nil
	_, err = m.Run(context.Background(), "main", in, interp.Call{Tap: tap, Only: func(name string) interp.Wanted { return name == v }})
	require.NoError(t, err)
	require.Equal(t, []string{v}, names)
}
