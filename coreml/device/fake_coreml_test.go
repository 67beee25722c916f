package device

import (
	"context"
	"os"

	"anelab/coreml/interp"
	"anelab/coreml/mil"
	"anelab/coreml/mlpackage"
)

// The part of Core ML that the fake has. Programs run in the interpreter with fp16 results, so that real numbers pass through.

// array is the contents of an MLMultiArray.
type array struct {
	layout
	memory []byte
	inUse  int // predictions under way
}

// loaded is the contents of an MLModel.
type loaded struct {
	model    *interp.Model
	function *mil.Function
	about    *mil.Interface
}

// newArray is an array of rows padded as the fake's system pads them.
func (f *fake) newArray(d mil.DType, shape []int) *array {
	a := &array{layout: layout{dtype: d, shape: shape, strides: make([]int, len(shape))}}
	stride := 1
	for i := len(shape) - 1; i >= 0; i-- {
		a.strides[i] = stride
		stride *= shape[i]
		if i == len(shape)-1 && f.padding > 0 {
			stride = (stride + f.padding - 1) / f.padding * f.padding
		}
	}
	need, _ := a.bytes()
	a.memory = make([]byte, need)
	for i := range a.memory {
		a.memory[i] = 0xA5 // memory of Core ML is not cleared
	}
	return a
}

// lend calls a block with the memory of an array, which is at another address every time.
func (f *fake) lend(block id, a *array, more ...uintptr) {
	if a.inUse > 0 {
		f.note("an array touched while a prediction runs")
	}
	f.next += 16
	address := uintptr(f.next)
	f.lent[address] = a.memory
	f.objects[block].value.(func(...uintptr))(append([]uintptr{address, uintptr(len(a.memory))}, more...)...)
	delete(f.lent, address)
}

func (f *fake) array(x id) *array { return f.objects[x].value.(*array) }

func init() {
	for name, m := range map[string]func(f *fake, self id, o *object, args []id) id{
		"MLMultiArray initWithPixelBuffer:shape:": func(f *fake, self id, o *object, args []id) id {
			shape, size := f.ints(args[1]), f.objects[args[0]].value.([2]int)
			if size[0] != shape[len(shape)-1] || size[0]*size[1] != count(shape) {
				f.note("pixel buffer %v for shape %v", size, shape)
			}
			f.retain(args[0])
			o.holds, o.value = append(o.holds, args[0]), f.newArray(mil.Float16, shape)
			return self
		},
		"MLMultiArray dataType": func(_ *fake, _ id, o *object, _ []id) id { return arrayType(o.value.(*array).dtype) },
		"MLMultiArray shape":    func(f *fake, _ id, o *object, _ []id) id { return f.numbers(o.value.(*array).shape) },
		"MLMultiArray strides":  func(f *fake, _ id, o *object, _ []id) id { return f.numbers(o.value.(*array).strides) },
		"MLMultiArray getMutableBytesWithHandler:": func(f *fake, _ id, o *object, args []id) id {
			a := o.value.(*array)
			f.lend(args[0], a, uintptr(f.numbers(a.strides)))
			return 0
		},
		"MLMultiArray getBytesWithHandler:": func(f *fake, _ id, o *object, args []id) id { f.lend(args[0], o.value.(*array)); return 0 },

		"+MLFeatureValue featureValueWithMultiArray:": func(f *fake, _ id, _ *object, args []id) id { return f.borrow("MLFeatureValue", args[0], args[0]) },
		"MLFeatureValue multiArrayValue":              func(_ *fake, _ id, o *object, _ []id) id { return o.value.(id) },
		"Result featureValueForName:": func(f *fake, _ id, o *object, args []id) id {
			return o.value.(map[string]id)[f.objects[args[0]].value.(string)]
		},
		"MLModelConfiguration setComputeUnits:": func(_ *fake, _ id, _ *object, _ []id) id { return 0 },
		"MLModelConfiguration setFunctionName:": func(f *fake, _ id, o *object, args []id) id { o.value = f.objects[args[0]].value; return 0 },
		"MLPredictionOptions setOutputBackings:": func(f *fake, _ id, o *object, args []id) id {
			f.retain(args[0])
			o.holds, o.value = append(o.holds, args[0]), f.objects[args[0]].value
			return 0
		},
		"MLModel modelDescription": func(f *fake, self id, _ *object, _ []id) id { return f.borrow("MLModelDescription", self) },
		"MLModelDescription inputDescriptionsByName": func(f *fake, _ id, o *object, _ []id) id {
			return f.features(f.objects[o.value.(id)].value.(loaded).about.Inputs)
		},
		"MLModelDescription outputDescriptionsByName": func(f *fake, _ id, o *object, _ []id) id {
			return f.features(f.objects[o.value.(id)].value.(loaded).about.Outputs)
		},
		"MLModelDescription stateDescriptionsByName": func(f *fake, _ id, o *object, _ []id) id {
			return f.features(f.objects[o.value.(id)].value.(loaded).about.States)
		},
		"MLFeatureDescription type": func(_ *fake, _ id, o *object, _ []id) id {
			if o.value.(mil.Feature).Kind == mil.StatePort {
				return featureState
			}
			return featureArray
		},
		"MLFeatureDescription isOptional": func(_ *fake, _ id, o *object, _ []id) id {
			if o.value.(mil.Feature).Optional {
				return 1
			}
			return 0xff00
		},
		"MLFeatureDescription multiArrayConstraint": func(f *fake, _ id, o *object, _ []id) id {
			return f.borrow("MLMultiArrayConstraint", o.value.(mil.Feature))
		},
		"MLFeatureDescription stateConstraint": func(f *fake, _ id, o *object, _ []id) id { return f.borrow("MLStateConstraint", o.value.(mil.Feature)) },
		"MLMultiArrayConstraint dataType":      func(_ *fake, _ id, o *object, _ []id) id { return arrayType(o.value.(mil.Feature).Array.DType) },
		"MLMultiArrayConstraint shape":         func(f *fake, _ id, o *object, _ []id) id { return f.numbers(narrow(o.value.(mil.Feature).Array.Shape)) },
		"MLStateConstraint dataType":           func(_ *fake, _ id, o *object, _ []id) id { return arrayType(o.value.(mil.Feature).Array.DType) },
		"MLStateConstraint bufferShape":        func(f *fake, _ id, o *object, _ []id) id { return f.numbers(narrow(o.value.(mil.Feature).Array.Shape)) },
		"MLMultiArrayConstraint shapeConstraint": func(f *fake, _ id, o *object, _ []id) id {
			return f.borrow("MLMultiArrayShapeConstraint", o.value.(mil.Feature).Array.Flexible)
		},
		"MLMultiArrayShapeConstraint type": func(_ *fake, _ id, o *object, _ []id) id {
			if flexible := o.value.(*mil.Flexible); flexible != nil && len(flexible.Enumerated) == 0 {
				return rangeOfShapes
			}
			return enumeratedShapes
		},
		"MLMultiArrayShapeConstraint enumeratedShapes": func(f *fake, _ id, o *object, _ []id) id {
			if flexible := o.value.(*mil.Flexible); flexible != nil {
				return f.numbers(make([]int, len(flexible.Enumerated)))
			}
			return f.numbers([]int{0})
		},
		"MLModel newState": func(f *fake, _ id, o *object, _ []id) id {
			l := o.value.(loaded)
			states := interp.State{}
			for _, s := range l.about.States {
				states[s.Name] = interp.NewTensor(s.Array.DType, narrow(s.Array.Shape)...)
			}
			return f.make("MLState", states)
		},
		"MLState getMultiArrayForStateNamed:handler:": func(f *fake, self id, o *object, args []id) id {
			t := o.value.(interp.State)[f.objects[args[0]].value.(string)]
			if t == nil {
				f.note("exception: no state of this name")
				return 0
			}
			if f.running[self] > 0 {
				f.note("a state touched while a prediction runs")
			}
			a := f.newArray(t.DType, t.Shape)
			a.encode(a.memory, (*Tensor)(t))
			x := f.make("MLMultiArray", a)
			f.objects[args[1]].value.(func(...uintptr))(uintptr(x))
			*t = interp.Tensor(*a.decode(a.memory))
			f.drop(x)
			return 0
		},
	} {
		methods[name] = answering(m)
	}
	methods["MLMultiArray initWithShape:dataType:error:"] = func(f *fake, self id, o *object, args []id) (id, id) {
		o.value = f.newArray(arrayTypes[args[1]], f.ints(args[0]))
		return self, 0
	}
	methods["MLDictionaryFeatureProvider initWithDictionary:error:"] = func(f *fake, self id, o *object, args []id) (id, id) {
		f.retain(args[0])
		o.holds, o.value = append(o.holds, args[0]), f.objects[args[0]].value
		return self, 0
	}
	methods["+MLModel compileModelAtURL:error:"] = func(f *fake, _ id, _ *object, args []id) (id, id) {
		return f.borrow("NSURL", f.tempModel(f.objects[args[0]].value.(string))), 0
	}
	methods["+MLModel modelWithContentsOfURL:configuration:error:"] = (*fake).load
	methods["MLModel predictionFromFeatures:options:error:"] = func(f *fake, self id, _ *object, args []id) (id, id) {
		return f.predict(self, args[0], 0, args[1])
	}
	methods["MLModel predictionFromFeatures:usingState:options:error:"] = func(f *fake, self id, _ *object, args []id) (id, id) {
		return f.predict(self, args[0], args[1], args[2])
	}
}

func narrow(shape []int64) []int {
	list := make([]int, len(shape))
	for i, n := range shape {
		list[i] = int(n)
	}
	return list
}

func (f *fake) features(list []mil.Feature) id {
	values := map[string]id{}
	var all []id
	for _, feature := range list {
		values[feature.Name] = f.borrow("MLFeatureDescription", feature)
		all = append(all, values[feature.Name])
	}
	return f.borrow("NSMutableDictionary", values, all...)
}

func (f *fake) load(_ id, _ *object, args []id) (id, id) {
	source, err := os.ReadFile(f.objects[args[0]].value.(string) + "/source")
	if err != nil {
		return 0, f.fault(err.Error())
	}
	pkg, err := mlpackage.Open(string(source))
	if err != nil {
		return 0, f.fault(err.Error())
	}
	f.t.Cleanup(func() { pkg.Close() })
	name, named := f.objects[args[1]].value.(string)
	if named != (len(pkg.Description.Functions) > 0) {
		return 0, f.fault(".functionName property must be nil unless the model type is ML Program")
	}
	if !named {
		name = mil.MainFunction
	}
	model, err := interp.New(pkg.Program, interp.Options{Precision: interp.FP16, Threads: 1})
	if err != nil {
		return 0, f.fault(err.Error())
	}
	return f.borrow("MLModel", loaded{model: model, function: pkg.Program.Function(name), about: pkg.Description.Of(name)}), 0
}

// predict runs the program. While it waits, nobody may touch its arrays or its state, and nobody else may run the model.
func (f *fake) predict(self, features, state, options id) (id, id) {
	l := f.objects[self].value.(loaded)
	backings, _ := f.objects[options].value.(map[string]id)
	inputs, used := map[string]*interp.Tensor{}, []*array{}
	for name, value := range f.objects[features].value.(map[string]id) {
		used = append(used, f.array(f.objects[value].value.(id)))
		inputs[name] = (*interp.Tensor)(used[len(used)-1].decode(used[len(used)-1].memory))
	}
	for _, x := range backings {
		used = append(used, f.array(x))
	}
	f.wait(self, state, used)
	call := interp.Call{}
	if state != 0 {
		call.State = f.objects[state].value.(interp.State)
	}
	outputs, err := l.model.Run(context.Background(), l.function.Name, inputs, call)
	if err != nil {
		return 0, f.fault(err.Error())
	}
	values, all := map[string]id{}, []id{}
	for name, t := range outputs {
		x := backings[name]
		if x == 0 || f.ignoring {
			x = f.autorelease(f.make("MLMultiArray", f.newArray(t.DType, t.Shape)))
		}
		f.array(x).encode(f.array(x).memory, (*Tensor)(t))
		values[name] = f.borrow("MLFeatureValue", x, x)
		all = append(all, values[name])
	}
	return f.borrow("Result", values, all...), 0
}

// wait marks what a prediction uses, for as long as the test holds it.
func (f *fake) wait(model, state id, used []*array) {
	for _, x := range []id{model, state} {
		if x != 0 && f.running[x] > 0 {
			f.note("two predictions at a time")
		}
		f.running[x]++
	}
	for _, a := range used {
		a.inUse++
	}
	f.mu.Unlock()
	if f.started != nil {
		f.started <- struct{}{}
	}
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	for _, a := range used {
		a.inUse--
	}
	f.running[model]--
	f.running[state]--
}
