package spec

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"anelab/coreml/mil"
)

const (
	sizeFeature  = int(unsafe.Sizeof(mil.Feature{}))
	sizeArray    = int(unsafe.Sizeof(mil.ArrayFeature{}) + unsafe.Sizeof(mil.Flexible{}))
	sizeDescribe = int(unsafe.Sizeof(mil.FunctionDescription{}))
	sizeRange    = int(unsafe.Sizeof(mil.Range{}))
	sizeShape    = int(unsafe.Sizeof([]int64{}))
	sizeUser     = int(unsafe.Sizeof(mil.UserDefined{}))
)

// DecodeDescription reads a ModelDescription by itself, as compiled models hold it.
func DecodeDescription(path, data string) (*mil.Description, error) {
	d := &decoder{message: newMessage(path, "ModelDescription", data), kept: &Kept{data: data}}
	description := d.description(d.message)
	if d.err != nil {
		return nil, d.err
	}
	return description, nil
}

// arrayTypes are the element types of ports: kind<<16 | bits.
var arrayTypes = map[int64]mil.DType{65552: mil.Float16, 65568: mil.Float32, 65600: mil.Float64, 131104: mil.Int32, 131080: mil.Int8}

func (d *decoder) description(in *message) *mil.Description {
	m := &mil.Description{
		Interface:      mil.Interface{Inputs: room[mil.Feature](in, 1, sizeFeature), Outputs: room[mil.Feature](in, 10, sizeFeature), States: room[mil.Feature](in, 13, sizeFeature)},
		Functions:      room[mil.FunctionDescription](in, 20, sizeDescribe),
		TrainingInputs: room[mil.Feature](in, 50, sizeFeature),
	}
	for in.next() {
		switch in.num {
		case 1:
			m.Inputs = d.feature(in, m.Inputs)
		case 10:
			m.Outputs = d.feature(in, m.Outputs)
		case 13:
			m.States = d.feature(in, m.States)
		case 11:
			m.PredictedFeature = in.text()
		case 12:
			m.PredictedProbs = in.text()
		case 20:
			m.Functions = append(m.Functions, mil.FunctionDescription{})
			d.functionDescription(in, &m.Functions[len(m.Functions)-1])
		case 21:
			m.DefaultFunction = in.text()
		case 50:
			m.TrainingInputs = d.feature(in, m.TrainingInputs)
		case 100:
			d.metadata(in, &m.Metadata)
		default:
			d.keep(in, m)
		}
	}
	return m
}

// functionDescription: 1 name, 2 input, 3 output, 4 predictedFeatureName, 5 predictedProbabilitiesName, 6 state.
func (d *decoder) functionDescription(outer *message, f *mil.FunctionDescription) {
	in := outer.inner("FunctionDescription")
	f.Inputs, f.Outputs, f.States = room[mil.Feature](&in, 2, sizeFeature), room[mil.Feature](&in, 3, sizeFeature), room[mil.Feature](&in, 6, sizeFeature)
	for in.next() {
		switch in.num {
		case 1:
			f.Name = in.text()
		case 2:
			f.Inputs = d.feature(&in, f.Inputs)
		case 3:
			f.Outputs = d.feature(&in, f.Outputs)
		case 4:
			f.PredictedFeature = in.text()
		case 5:
			f.PredictedProbs = in.text()
		case 6:
			f.States = d.feature(&in, f.States)
		default:
			d.keep(&in, f)
		}
	}
	outer.merge(&in)
}

// feature: 1 name, 2 shortDescription, 3 type.
func (d *decoder) feature(outer *message, list []mil.Feature) []mil.Feature {
	in := outer.inner("FeatureDescription")
	list = append(list, mil.Feature{})
	f := &list[len(list)-1]
	for in.next() {
		switch in.num {
		case 1:
			f.Name = in.text()
		case 2:
			f.Doc = in.text()
		case 3:
			d.featureType(&in, f)
		default:
			d.keep(&in, f)
		}
	}
	outer.merge(&in)
	return list
}

// featureType: 5 multiArray, 8 state {1 arrayType}, 1000 isOptional; other members of the oneof are kept encoded.
func (d *decoder) featureType(outer *message, f *mil.Feature) {
	in := outer.inner("FeatureType " + f.Name)
	other := 0
	for in.next() {
		switch in.num {
		case 1000:
			f.Optional = in.integer() != 0
		case 5:
			f.Kind = mil.ArrayPort
			array := in.inner("ArrayFeatureType " + f.Name)
			f.Array = d.array(&array)
			in.merge(&array)
		case 8:
			f.Kind = mil.StatePort
			d.stateType(&in, f)
		default:
			other += len(in.raw)
			if in.charge(other) {
				f.Other += in.raw
			}
		}
	}
	outer.merge(&in)
}

func (d *decoder) stateType(outer *message, f *mil.Feature) {
	in := outer.inner("StateFeatureType " + f.Name)
	for in.next() {
		if in.num != 1 {
			in.fail(ErrMalformed, fmt.Sprintf("field %d", in.num))
			break
		}
		array := in.inner("ArrayFeatureType " + f.Name)
		f.Array = d.array(&array)
		in.merge(&array)
	}
	if f.Array == nil {
		in.fail(ErrMalformed, "a state without a type")
	}
	outer.merge(&in)
}

// array: 1 shape, 2 dataType, 21 enumeratedShapes, 31 shapeRange.
func (d *decoder) array(in *message) *mil.ArrayFeature {
	if !in.charge(sizeArray) {
		return nil
	}
	a := &mil.ArrayFeature{}
	for in.next() {
		switch in.num {
		case 1:
			a.Shape = d.dims(in, a.Shape)
		case 2:
			n := in.integer()
			if a.DType = arrayTypes[n]; a.DType == mil.NoType {
				in.fail(ErrMalformed, fmt.Sprintf("element type %d of an array", n))
			}
		case 21, 31:
			d.flexible(in, a)
		default:
			d.keep(in, a)
		}
	}
	if a.Flexible != nil {
		a.Flexible.Default = a.Shape
	}
	return a
}

// dims appends the entries of a repeated number.
func (d *decoder) dims(in *message, list []int64) []int64 {
	n := 0
	look := *in
	look.numbers(func(uint64) { n++ })
	if !in.charge(8 * (n + len(list))) {
		return list
	}
	list = slices.Grow(list, n)
	in.numbers(func(x uint64) { list = append(list, int64(x)) })
	return list
}

// flexible reads enumeratedShapes {1 shapes {1 shape}} or shapeRange {1 sizeRanges {1 lowerBound, 2 upperBound}}.
func (d *decoder) flexible(outer *message, a *mil.ArrayFeature) {
	before, enumerated := d.unknown, outer.num == 21
	whole := span{outer.base + outer.at - len(outer.raw), outer.base + outer.at}
	a.Flexible = &mil.Flexible{}
	in := outer.inner("flexible shapes")
	if enumerated {
		a.Flexible.Enumerated = room[[]int64](&in, 1, sizeShape)
	} else {
		a.Flexible.Ranges = room[mil.Range](&in, 1, sizeRange)
	}
	for in.next() {
		switch {
		case in.num != 1:
			d.unknown++
		case enumerated:
			a.Flexible.Enumerated = append(a.Flexible.Enumerated, d.shape(&in))
		default:
			a.Flexible.Ranges = append(a.Flexible.Ranges, d.sizeRange(&in))
		}
	}
	outer.merge(&in)
	if d.unknown > before {
		outer.charge(d.kept.add(a.Flexible, whole))
	}
}

func (d *decoder) shape(outer *message) (shape []int64) {
	in := outer.inner("shape")
	for in.next() {
		if in.num == 1 {
			shape = d.dims(&in, shape)
		} else {
			d.unknown++
		}
	}
	outer.merge(&in)
	return shape
}

func (d *decoder) sizeRange(outer *message) (r mil.Range) {
	in := outer.inner("range")
	for in.next() {
		switch in.num {
		case 1:
			r.Min = in.integer()
		case 2:
			r.Max = in.integer()
		default:
			d.unknown++
		}
	}
	outer.merge(&in)
	return r
}

// metadata: 1 shortDescription, 2 versionString, 3 author, 4 license, 100 userDefined.
func (d *decoder) metadata(outer *message, m *mil.Metadata) {
	in := outer.inner("Metadata")
	m.UserDefined = room[mil.UserDefined](&in, 100, sizeUser)
	for in.next() {
		switch in.num {
		case 1:
			m.Doc = in.text()
		case 2:
			m.Version = in.text()
		case 3:
			m.Author = in.text()
		case 4:
			m.License = in.text()
		case 100:
			m.UserDefined = append(m.UserDefined, d.userDefined(&in))
		default:
			d.keep(&in, m)
		}
	}
	slices.SortFunc(m.UserDefined, func(a, b mil.UserDefined) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(m.UserDefined); i++ {
		in.twice("userDefined", m.UserDefined[i-1].Key, m.UserDefined[i].Key)
	}
	outer.merge(&in)
}

func (d *decoder) userDefined(outer *message) (u mil.UserDefined) {
	in := outer.inner("userDefined")
	for in.next() {
		switch in.num {
		case 1:
			u.Key = in.text()
		case 2:
			u.Value = in.text()
		default:
			in.fail(ErrMalformed, fmt.Sprintf("field %d in a map entry", in.num))
		}
	}
	outer.merge(&in)
	return u
}
