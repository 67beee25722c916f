package device

import (
	"time"

	"anelab/internal/format"
)

// Timing is how long one call took. Predict is the message to Core ML and nothing else; Copy is what it took to bring in inputs and to
// take out outputs.
type Timing struct {
	PredictSeconds float64
	CopySeconds    float64
}

// Prediction is what a call yields.
type Prediction struct {
	Outputs map[string]*Tensor
	Timing
}

// Bound is the buffers of a call. Outputs may be left out; Core ML then allocates them, and [Model.Run] hands them over as tensors.
type Bound struct {
	Inputs  map[string]*Buffer
	Outputs map[string]*Buffer
	State   *State // of functions with states
}

// Predict runs a function on tensors. The state is nil for functions without states; what a call leaves in it the next one finds.
func (m *Model) Predict(name string, inputs map[string]*Tensor, s *State) (*Prediction, error) {
	f, err := m.function(name)
	if err != nil {
		return nil, err
	}
	if err := f.checkTensors(inputs); err != nil {
		return nil, err
	}
	start := time.Now()
	b := Bound{Inputs: map[string]*Buffer{}, State: s}
	defer func() {
		for _, buffer := range b.Inputs {
			buffer.Close()
		}
	}()
	for port, t := range inputs {
		buffer, err := m.NewBuffer(Memory, t.DType, t.Shape...)
		if err != nil {
			return nil, f.at(port, err)
		}
		b.Inputs[port] = buffer
		if err := buffer.Write(t); err != nil {
			return nil, f.at(port, err)
		}
	}
	filled := time.Since(start).Seconds()
	p, err := m.Run(name, b)
	if err != nil {
		return nil, err
	}
	p.CopySeconds += filled
	return p, nil
}

// at names the port of an error about a buffer.
func (f *faces) at(port string, err error) error {
	return &format.Error{Path: f.path, Field: f.function + "/" + port, Err: err}
}

// checkTensors holds tensors against the inputs.
func (f *function) checkTensors(inputs map[string]*Tensor) error {
	given := map[string]typed{}
	for name, t := range inputs {
		if t == nil {
			continue
		}
		given[name] = typed{t.DType, t.Shape}
	}
	if err := f.checkInputs(given); err != nil {
		return err
	}
	for name, t := range inputs {
		if t == nil || !t.sound() {
			return f.fault(name, ErrData, "", "as many elements as the shape has", "")
		}
	}
	return nil
}

func (f *function) checkInputs(given map[string]typed) error {
	if err := f.check(f.inputs, given); err != nil {
		return err
	}
	return f.missing(given)
}

// Run runs a function on buffers. Outputs that have a buffer are in it afterwards; the others are in the result.
func (m *Model) Run(name string, b Bound) (*Prediction, error) {
	f, err := m.function(name)
	if err != nil {
		return nil, err
	}
	if err := f.checkInputs(types(b.Inputs)); err != nil {
		return nil, err
	}
	if err := f.check(f.outputs, types(b.Outputs)); err != nil {
		return nil, err
	}
	unlock := lockAll(buffersOf(b))
	defer unlock()
	if b.State != nil {
		b.State.mu.Lock()
		defer b.State.mu.Unlock()
	}
	if err := f.checkState(b.State); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.model == 0 {
		return nil, &format.Error{Path: m.Path, Field: name, Err: ErrClosed}
	}
	p := &Prediction{Outputs: map[string]*Tensor{}}
	return p, m.machine.scope(func() error { return f.run(b, p) })
}

func types(buffers map[string]*Buffer) map[string]typed {
	given := map[string]typed{}
	for name, b := range buffers {
		given[name] = typed{b.DType, b.Shape}
	}
	return given
}

func buffersOf(b Bound) []*Buffer {
	var list []*Buffer
	for _, group := range []map[string]*Buffer{b.Inputs, b.Outputs} {
		for _, buffer := range group {
			list = append(list, buffer)
		}
	}
	return list
}

// run is one call, in a scope, with everything that it uses locked.
func (f *function) run(b Bound, p *Prediction) error {
	for _, buffer := range buffersOf(b) {
		if buffer.array == 0 {
			return &format.Error{Path: f.path, Field: f.function, Err: ErrClosed, Got: "a buffer"}
		}
	}
	rt := f.machine
	features, err := f.features(b.Inputs)
	if err != nil {
		return err
	}
	defer rt.release(features)
	options := f.options(b.Outputs)
	defer rt.release(options)
	start := time.Now()
	result, fault := f.send(features, options, b.State)
	p.PredictSeconds = time.Since(start).Seconds()
	if result == 0 {
		return rt.refused(ErrPredict, f.path, f.function, fault)
	}
	start = time.Now()
	err = f.collect(result, b.Outputs, p.Outputs)
	p.CopySeconds = time.Since(start).Seconds()
	return err
}

// send is the message that is timed.
func (f *function) send(features, options id, s *State) (result, fault id) {
	if s == nil {
		return f.machine.sendFault(f.model, "predictionFromFeatures:options:error:", features, options)
	}
	return f.machine.sendFault(f.model, "predictionFromFeatures:usingState:options:error:", features, s.handle, options)
}

// features is an MLDictionaryFeatureProvider of the inputs; it is ours.
func (f *function) features(inputs map[string]*Buffer) (id, error) {
	rt := f.machine
	values := map[string]id{}
	for name, b := range inputs {
		values[name] = rt.send(rt.class("MLFeatureValue"), "featureValueWithMultiArray:", b.array)
	}
	features, fault := rt.sendFault(rt.send(rt.class("MLDictionaryFeatureProvider"), "alloc"), "initWithDictionary:error:", rt.named(values))
	if features == 0 {
		return 0, rt.refused(ErrPredict, f.path, f.function, fault)
	}
	return features, nil
}

// options is MLPredictionOptions with the buffers that Core ML may write its outputs to; it is ours.
func (f *function) options(outputs map[string]*Buffer) id {
	rt := f.machine
	options := rt.create("MLPredictionOptions")
	if len(outputs) > 0 && rt.responds(options, "setOutputBackings:") {
		backings := map[string]id{}
		for name, b := range outputs {
			backings[name] = b.array
		}
		rt.send(options, "setOutputBackings:", rt.named(backings))
	}
	return options
}

// collect takes the outputs. Core ML does not say whether it has used a backing: if what it returns is another array, that is copied.
func (f *function) collect(result id, buffers map[string]*Buffer, outputs map[string]*Tensor) error {
	rt := f.machine
	for _, port := range f.outputs {
		array := rt.send(rt.send(result, "featureValueForName:", rt.text(port.Name)), "multiArrayValue")
		b := buffers[port.Name]
		if b != nil && array == b.array {
			continue
		}
		if array == 0 {
			return f.fault(port.Name, ErrPredict, "no output", port.String(), "")
		}
		t, err := rt.read(array)
		if err == nil && b != nil {
			err = rt.write(b.array, t)
		}
		if err != nil {
			return f.fault(port.Name, ErrPredict, err.Error(), "", "")
		}
		if b == nil {
			outputs[port.Name] = t
		}
	}
	return nil
}
