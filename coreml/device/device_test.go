package device

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/format"
	"anelab/internal/shareddata"
)

func fixture(t testing.TB, name string) string {
	return filepath.Join(shareddata.ModuleRoot(t), "testdata", "coreml", "ops", name+".mlpackage")
}

// inputs reads tensors of a fixture, by the rest of their names.
func inputs(t testing.TB, name, prefix string) map[string]*Tensor {
	set, err := safetensors.Open(strings.TrimSuffix(fixture(t, name), ".mlpackage") + ".safetensors")
	require.NoError(t, err)
	defer set.Close()
	found := map[string]*Tensor{}
	for _, full := range set.Names() {
		if rest, ok := strings.CutPrefix(full, prefix); ok {
			q, err := set.Tensor(full)
			require.NoError(t, err)
			x, err := interp.FromStored(q)
			require.NoError(t, err)
			found[rest] = (*Tensor)(x)
		}
	}
	require.NotEmpty(t, found)
	return found
}

func opened(t testing.TB, m machine, name string) *Model {
	model, err := open(m, fixture(t, name), CPUAndANE)
	require.NoError(t, err)
	return model
}

// hand: without a runtime every way in says what to do.
func TestUnavailable(t *testing.T) {
	if Available() == nil {
		t.Skip("Core ML is here")
	}
	_, err := Open(fixture(t, "gemma_mlp_block"), All)
	for _, err := range []error{err, Available()} {
		require.ErrorIs(t, err, ErrUnavailable)
		var e *format.Error
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.Fix)
		require.Contains(t, e.Got, runtime.GOOS)
	}
}

func TestUnits(t *testing.T) { // hand: the numbers of MLComputeUnits
	for name, want := range map[string]Units{"cpu": 0, "cpu+gpu": 1, "all": 2, "cpu+ane": 3} {
		u, err := ParseUnits(name)
		require.NoError(t, err)
		require.Equal(t, want, u)
		require.Equal(t, name, u.String())
	}
	_, err := ParseUnits("cpu+an")
	require.ErrorContains(t, err, `did you mean "cpu+ane"?`)
	require.Equal(t, "units 7", Units(7).String())
}

// oracle: outputs of the interpreter, which the fake runs; dense and padded arrays.
func TestPredict(t *testing.T) {
	for _, padding := range []int{0, 32} {
		f, rt := newFake(t)
		f.padding = padding
		m := opened(t, rt, "gemma_mlp_block")
		in := inputs(t, "gemma_mlp_block", "a/in/")
		p, err := m.Predict("main", in, nil)
		require.NoError(t, err)
		require.Positive(t, p.PredictSeconds)
		require.Positive(t, p.CopySeconds)
		require.Positive(t, m.LoadSeconds("main"))
		for name, want := range direct(t, m, "main", in, nil) {
			require.Equal(t, want, (*interp.Tensor)(p.Outputs[name]), name)
		}
		compiled := m.compiled
		require.DirExists(t, compiled)
		require.NoError(t, m.Close())
		require.NoDirExists(t, compiled)
		require.NoError(t, m.Close(), "twice")
		_, err = m.Predict("main", in, nil)
		require.ErrorIs(t, err, ErrClosed)
		f.balanced(t)
	}
}

// direct runs the package without the fake.
func direct(t testing.TB, m *Model, function string, in map[string]*Tensor, s interp.State) map[string]*interp.Tensor {
	model, err := interp.New(m.Package.Program, interp.Options{Precision: interp.FP16, Threads: 1})
	require.NoError(t, err)
	given := map[string]*interp.Tensor{}
	for name, x := range in {
		given[name] = (*interp.Tensor)(x)
	}
	out, err := model.Run(t.Context(), function, given, interp.Call{State: s})
	require.NoError(t, err)
	return out
}

// hand: the messages of a call, in order; arrays are made and written before, read after.
func TestSequence(t *testing.T) {
	f, rt := newFake(t)
	m := opened(t, rt, "lut_w4_odd_count")
	_, _, _, err := m.Ports("main")
	require.NoError(t, err)
	f.sent = nil
	_, err = m.Predict("main", inputs(t, "lut_w4_odd_count", "a/in/"), nil)
	require.NoError(t, err)
	var order []string
	for _, s := range f.sent {
		switch s {
		case "initWithShape:dataType:error:", "getMutableBytesWithHandler:", "initWithDictionary:error:", "predictionFromFeatures:options:error:", "getBytesWithHandler:":
			order = append(order, s)
		}
	}
	require.Equal(t, []string{"initWithShape:dataType:error:", "getMutableBytesWithHandler:", "getMutableBytesWithHandler:", "initWithDictionary:error:",
		"predictionFromFeatures:options:error:", "getBytesWithHandler:"}, order)
	require.NoError(t, m.Close())
	f.balanced(t)
}

// hand: functions of one package are loaded one by one, by name; a package with one function must not be given a name.
func TestMultiFunction(t *testing.T) {
	f, rt := newFake(t)
	m := opened(t, rt, "multifunction")
	require.Equal(t, []string{"decode_q1", "prefill_b4"}, m.Functions())
	for function, prefix := range map[string]string{"decode_q1": "q1/in/", "prefill_b4": "b4/in/"} {
		in := inputs(t, "multifunction", prefix)
		p, err := m.Predict(function, in, nil)
		require.NoError(t, err)
		for name, want := range direct(t, m, function, in, nil) {
			require.Equal(t, want, (*interp.Tensor)(p.Outputs[name]), name)
		}
	}
	_, err := m.Predict("decode_q2", nil, nil)
	require.ErrorIs(t, err, ErrFunction)
	require.ErrorContains(t, err, `did you mean "decode_q1"?`)
	require.NoError(t, m.Close())
	f.balanced(t)

	f, rt = newFake(t)
	f.absent["setFunctionName:"] = true
	m = opened(t, rt, "multifunction")
	_, err = m.Predict("decode_q1", inputs(t, "multifunction", "q1/in/"), nil)
	require.ErrorIs(t, err, ErrSystem)
	require.ErrorContains(t, err, "macOS 15")
	require.NoError(t, m.Close())
	f.balanced(t)
}

// oracle: six calls carry a state on as the interpreter does; it can be read and set.
func TestState(t *testing.T) {
	const name = "state_slice_update_attention"
	f, rt := newFake(t)
	m := opened(t, rt, name)
	s, err := m.NewState("main")
	require.NoError(t, err)
	require.Len(t, s.States(), 1)
	port := s.States()[0]
	want := interp.State{port.Name: interp.NewTensor(port.DType, port.Shape...)}
	for _, c := range []string{"s0", "s1", "s2", "s3", "s4", "s5"} {
		in := inputs(t, name, c+"/in/")
		p, err := m.Predict("main", in, s)
		require.NoError(t, err)
		for output, x := range direct(t, m, "main", in, want) {
			require.Equal(t, x, (*interp.Tensor)(p.Outputs[output]), c)
		}
	}
	got, err := s.Read(port.Name)
	require.NoError(t, err)
	require.Equal(t, want[port.Name], (*interp.Tensor)(got))
	require.NoError(t, s.Write(port.Name, NewTensor(port.DType, port.Shape...)))
	got, err = s.Read(port.Name)
	require.NoError(t, err)
	require.Equal(t, NewTensor(port.DType, port.Shape...), got)

	_, err = s.Read("nothing")
	require.ErrorIs(t, err, ErrUnknownPort, "Core ML throws at a state that it does not know")
	require.ErrorIs(t, s.Write(port.Name, NewTensor(mil.Float16, 2)), ErrShape)
	_, err = m.Predict("main", inputs(t, name, "s0/in/"), nil)
	require.ErrorIs(t, err, ErrState)
	require.NoError(t, s.Close())
	_, err = m.Predict("main", inputs(t, name, "s0/in/"), s)
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Read(port.Name)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, m.Close())
	f.balanced(t)

	f, rt = newFake(t)
	f.absent["newState"] = true
	m = opened(t, rt, name)
	_, err = m.NewState("main")
	require.ErrorIs(t, err, ErrSystem)
	require.NoError(t, m.Close())
	f.balanced(t)
}

// hand: buffers of both kinds, with backings that Core ML uses and with backings that it ignores.
func TestBuffers(t *testing.T) {
	for _, backing := range []Backing{Memory, Surface} {
		for _, ignored := range []bool{false, true} {
			f, rt := newFake(t)
			f.padding, f.ignoring = 64, ignored
			m := opened(t, rt, "gemma_mlp_block")
			in := inputs(t, "gemma_mlp_block", "a/in/")
			want := direct(t, m, "main", in, nil)
			b := Bound{Inputs: map[string]*Buffer{}, Outputs: map[string]*Buffer{}}
			for name, x := range in {
				var err error
				b.Inputs[name], err = m.NewBuffer(backing, x.DType, x.Shape...)
				require.NoError(t, err)
				require.NoError(t, b.Inputs[name].Write(x))
			}
			out, err := m.NewBuffer(backing, mil.Float16, want["out"].Shape...)
			require.NoError(t, err)
			b.Outputs["out"] = out
			p, err := m.Run("main", b)
			require.NoError(t, err)
			require.NotContains(t, p.Outputs, "out", "it is in its buffer")
			got, err := out.Read()
			require.NoError(t, err)
			require.Equal(t, want["out"], (*interp.Tensor)(got))
			require.Equal(t, want["softcapped"], (*interp.Tensor)(p.Outputs["softcapped"]))
			for _, x := range buffersOf(b) {
				require.NoError(t, x.Close())
			}
			_, err = m.Run("main", b)
			require.ErrorIs(t, err, ErrClosed)
			require.NoError(t, m.Close())
			f.balanced(t)
		}
	}
}

// hand: what a buffer refuses.
func TestBufferFaults(t *testing.T) {
	f, rt := newFake(t)
	for _, c := range []struct {
		backing Backing
		dtype   mil.DType
		shape   []int
		rule    error
	}{
		{Surface, mil.Float32, []int{3, 5}, ErrType}, {Surface, mil.Float16, nil, ErrType}, {Memory, mil.Bool, []int{3}, ErrType},
		{Memory, mil.Float16, []int{3, 0}, ErrShape},
	} {
		_, err := rt.newBuffer(c.backing, c.dtype, c.shape)
		require.ErrorIs(t, err, c.rule)
	}
	f.absent["CVPixelBufferCreate"] = true
	_, err := rt.newBuffer(Surface, mil.Float16, []int{3, 5})
	require.ErrorIs(t, err, ErrArray)
	require.ErrorContains(t, err, "-6661")
	b, err := rt.newBuffer(Memory, mil.Int32, []int{2, 3})
	require.NoError(t, err)
	zero, err := b.Read()
	require.NoError(t, err)
	require.Equal(t, NewTensor(mil.Int32, 2, 3), zero, "new buffers are zeros although Core ML's memory is not")
	require.ErrorIs(t, b.Write(NewTensor(mil.Float16, 2, 3)), ErrType)
	require.ErrorIs(t, b.Write(NewTensor(mil.Int32, 3, 2)), ErrShape)
	require.ErrorIs(t, b.Write(&Tensor{DType: mil.Int32, Shape: []int{2, 3}, Ints: make([]int32, 5)}), ErrData)
	require.NoError(t, b.Close())
	_, err = b.Read()
	require.ErrorIs(t, err, ErrClosed)
	f.balanced(t)
}

// hand: what a call refuses before anything is sent.
func TestCallFaults(t *testing.T) {
	f, rt := newFake(t)
	m := opened(t, rt, "lut_w4_odd_count")
	good := inputs(t, "lut_w4_odd_count", "a/in/")
	port := good["x"]
	require.NotNil(t, port)
	for _, c := range []struct {
		change func(map[string]*Tensor)
		rule   error
	}{
		{func(in map[string]*Tensor) { delete(in, "x") }, ErrMissingInput},
		{func(in map[string]*Tensor) { in["x"] = nil }, ErrMissingInput},
		{func(in map[string]*Tensor) { in["z"] = port }, ErrUnknownPort},
		{func(in map[string]*Tensor) { in["x"] = NewTensor(mil.Int32, port.Shape...) }, ErrType},
		{func(in map[string]*Tensor) { in["x"] = NewTensor(port.DType, append([]int{2}, port.Shape...)...) }, ErrShape},
		{func(in map[string]*Tensor) { in["x"] = &Tensor{DType: port.DType, Shape: port.Shape} }, ErrData},
	} {
		in := map[string]*Tensor{"x": port}
		c.change(in)
		f.sent = nil
		_, err := m.Predict("main", in, nil)
		require.ErrorIs(t, err, c.rule)
		require.NotContains(t, f.sent, "predictionFromFeatures:options:error:")
	}
	require.NoError(t, m.Close())
	f.balanced(t)
	optional := faces{inputs: []Port{{Name: "bias", Optional: true}}}
	require.NoError(t, optional.missing(nil), "what may be left out")
}

// hand: what Core ML refuses comes out with its text, the text underneath, its code, and what to do; nothing leaks on the way.
func TestFailures(t *testing.T) {
	text := "Failed to build the model execution plan using a model architecture file 'model.mil' with error code: -14."
	for selector, rule := range map[string]error{
		"compileModelAtURL:error:": ErrCompile, "modelWithContentsOfURL:configuration:error:": ErrLoad,
		"initWithShape:dataType:error:": ErrArray, "initWithDictionary:error:": ErrPredict, "predictionFromFeatures:options:error:": ErrPredict,
	} {
		f, rt := newFake(t)
		f.failing[selector] = text
		m, err := open(rt, fixture(t, "lut_w4_odd_count"), All)
		if err == nil {
			_, err = m.Predict("main", inputs(t, "lut_w4_odd_count", "a/in/"), nil)
			require.NoError(t, m.Close())
		}
		require.ErrorIs(t, err, rule, selector)
		require.ErrorContains(t, err, "load with units cpu")
		var failed *Failure
		require.ErrorAs(t, err, &failed)
		require.Equal(t, &Failure{"com.apple.CoreML", -14, text + ": underneath " + text}, failed)
		f.balanced(t)
	}
	_, err := open(machine{}, filepath.Join(t.TempDir(), "none.mlpackage"), All)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// invariant: while a prediction runs, its buffers and its state are left alone and the function is not called again; those who want
// them wait, and get them afterwards.
func TestNobodyTouchesWhatRuns(t *testing.T) {
	if !threadsKnown {
		t.Skip("the fake cannot tell threads apart here")
	}
	const name = "state_slice_update_attention"
	f, rt := newFake(t)
	f.hold, f.started = make(chan struct{}), make(chan struct{}, 8)
	m := opened(t, rt, name)
	s, err := m.NewState("main")
	require.NoError(t, err)
	in := inputs(t, name, "s0/in/")
	b := Bound{Inputs: map[string]*Buffer{}, State: s}
	for port, x := range in {
		b.Inputs[port], err = m.NewBuffer(Memory, x.DType, x.Shape...)
		require.NoError(t, err)
		require.NoError(t, b.Inputs[port].Write(x))
	}
	var done, wanting sync.WaitGroup
	done.Go(func() { _, err := m.Run("main", b); require.NoError(t, err) })
	<-f.started
	finished := make(chan string, 16)
	for port, x := range in {
		wanting.Go(func() { require.NoError(t, b.Inputs[port].Write(x)); finished <- "write" })
		wanting.Go(func() { _, err := b.Inputs[port].Read(); require.NoError(t, err); finished <- "read" })
	}
	wanting.Go(func() { _, err := s.Read(s.states[0].Name); require.NoError(t, err); finished <- "state" })
	wanting.Go(func() { _, err := m.Run("main", b); require.NoError(t, err); finished <- "run" })
	select {
	case who := <-finished:
		t.Fatalf("%s did not wait", who)
	case <-time.After(20 * time.Millisecond):
	}
	close(f.hold)
	done.Wait()
	wanting.Wait()
	for _, x := range buffersOf(b) {
		require.NoError(t, x.Close())
	}
	require.NoError(t, s.Close())
	require.NoError(t, m.Close())
	f.balanced(t)
}

// invariant: calls that share buffers in different orders do not block each other.
func TestSharedBuffersDoNotDeadlock(t *testing.T) {
	if !threadsKnown {
		t.Skip("the fake cannot tell threads apart here")
	}
	f, rt := newFake(t)
	var shared []*Buffer
	for range 5 {
		b, err := rt.newBuffer(Memory, mil.Float16, []int{3})
		require.NoError(t, err)
		shared = append(shared, b)
	}
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			mine := []*Buffer{shared[i%5], shared[(3*i+1)%5], shared[(2*i+2)%5], shared[i%5]}
			lockAll(mine)()
		})
	}
	calls.Wait()
	for _, b := range shared {
		require.NoError(t, b.Close())
	}
	f.balanced(t)
}

// hand: the placement of every op, and systems or models that have none.
func TestPlan(t *testing.T) {
	if !threadsKnown {
		t.Skip("the fake cannot tell threads apart here")
	}
	f, rt := newFake(t)
	m := opened(t, rt, "gemma_mlp_block")
	plan, err := m.Plan("main")
	require.NoError(t, err)
	require.Len(t, plan, len(m.Package.Program.Functions[0].Body.Ops))
	convs := 0
	for i, op := range m.Package.Program.Functions[0].Body.Ops {
		require.Equal(t, op.Type, plan[i].Op)
		require.Equal(t, op.Outputs[0].Name, plan[i].Output)
		switch op.Type {
		case "conv":
			convs++
			require.Equal(t, Placement{"conv", op.Outputs[0].Name, ANE, []Processor{CPU, ANE}, 0.25}, plan[i])
		case "const":
			require.Equal(t, Unplaced, plan[i].Processor)
			require.Zero(t, plan[i].Weight)
		}
	}
	require.Positive(t, convs)
	require.Equal(t, convs, plan.Count(ANE))
	require.Equal(t, plan.Placed()-convs, len(plan.Off(ANE)))
	f.failing["plan"] = "no plan today"
	_, err = m.Plan("main")
	require.ErrorIs(t, err, ErrPlan)
	require.ErrorContains(t, err, "no plan today")
	f.absent["MLComputePlan"] = true
	_, err = m.Plan("main")
	require.ErrorIs(t, err, ErrSystem)
	require.NoError(t, m.Close())
	f.balanced(t)
}

// hand: elements at their strides, for every type of array.
func TestLayout(t *testing.T) {
	for _, d := range []mil.DType{mil.Float16, mil.Float32, mil.Float64, mil.Int32, mil.Int8} {
		in := NewTensor(d, 2, 3)
		for i := range 6 {
			if d.IsFloat() {
				in.Floats[i] = float32(i) - 2.5
			} else {
				in.Ints[i] = int32(i) - 4
			}
		}
		l := layout{dtype: d, shape: []int{2, 3}, strides: []int{7, 2}}
		need, err := l.bytes()
		require.NoError(t, err)
		require.Equal(t, (7+4+1)*d.Bits()/8, need)
		memory := make([]byte, need)
		l.encode(memory, in)
		require.Equal(t, in, l.decode(memory))
		size := d.Bits() / 8
		require.NotEqual(t, make([]byte, size), memory[7*size:8*size], "row 1 starts at element 7")
		require.Equal(t, make([]byte, size), memory[size:2*size], "between elements nothing is written")
	}
	_, err := layout{shape: []int{2}, strides: []int{-1}}.bytes()
	require.Error(t, err)
	_, err = layout{shape: []int{2}, strides: nil}.bytes()
	require.Error(t, err)
	require.False(t, (&Tensor{DType: mil.Float16, Shape: []int{math.MaxInt32, math.MaxInt32}}).sound())
}

// invariant: Failure texts that people have met lead to what they did about them.
func TestRemedies(t *testing.T) {
	for _, r := range remedies {
		require.Equal(t, r.fix, remedy("before "+r.text+" after"))
	}
	require.Empty(t, remedy("something new"))
	require.False(t, errors.Is(ErrLoad, ErrCompile))
}
