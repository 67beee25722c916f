package interp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// What can be wrong with a call.
var (
	ErrFunction     = errors.New("no such function")
	ErrUnsupported  = errors.New("op not supported by the interpreter")
	ErrMissingInput = errors.New("input missing")
	ErrUnknownInput = errors.New("no such input")
	ErrInputType    = errors.New("wrong element type")
	ErrInputShape   = errors.New("wrong shape")
	ErrContext      = errors.New("mask for another context")
	ErrInputData    = errors.New("elements do not fit the shape")
	ErrState        = errors.New("state missing or of another form")
	ErrValue        = errors.New("operand with contents that the op cannot use")
)

// take checks the inputs of a call and names them.
func (r *running) take(inputs map[string]*Tensor) error {
	for _, in := range r.function.Inputs {
		if in.Type.Kind == mil.State {
			continue
		}
		t := inputs[in.Name]
		if err := r.checkPort(in, t, ErrMissingInput); err != nil {
			return err
		}
		a := ofTensor(t)
		r.given[a.base()] = true
		r.names[in.Name] = result(a)
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if in := r.function.Input(name); in == nil || in.Type.Kind == mil.State {
			return r.portFault(name, ErrUnknownInput, "", strings.Join(r.inputNames(), ", "), unknownFix(name, in, r.inputNames()))
		}
	}
	return nil
}

func unknownFix(name string, in *mil.Input, names []string) string {
	if in != nil {
		return "it is a state: pass it as Call.State"
	}
	return format.DidYouMean(name, names)
}

func (r *running) inputNames() []string {
	var names []string
	for _, in := range r.function.Inputs {
		if in.Type.Kind != mil.State {
			names = append(names, in.Name)
		}
	}
	return names
}

func (r *running) portFault(port string, cause error, got, want, fix string) error {
	return &format.Error{Path: r.path, Field: r.function.Name + "/" + port, Got: got, Want: want, Fix: fix, Err: cause}
}

// checkPort holds a tensor against an input or state.
func (r *running) checkPort(in mil.Input, t *Tensor, missing error) error {
	want, _ := in.Type.AsTensor()
	switch {
	case t == nil:
		return r.portFault(in.Name, missing, "", want.String(), "")
	case t.DType != want.DType:
		return r.portFault(in.Name, ErrInputType, t.DType.String(), want.DType.String(), "convert the tensor; nothing is converted silently")
	case !t.sound():
		got := fmt.Sprintf("%d floats and %d ints for shape %v", len(t.Floats), len(t.Ints), t.Shape)
		return r.portFault(in.Name, ErrInputData, got, "as many elements as the shape has", "")
	case !mil.CompatibleShapes(want.Shape, sizes(t.Shape)):
		return r.wrongShape(in, want.Shape, t.Shape)
	case in.Flexible != nil && !in.Flexible.Allows(sizes(t.Shape)):
		return r.portFault(in.Name, ErrInputShape, mil.ShapeString(sizes(t.Shape)), allowed(in.Flexible), "")
	}
	return nil
}

// wrongShape says more about a mask that differs in one dimension only: it was made for a chunk of another context.
func (r *running) wrongShape(in mil.Input, want []int64, got []int) error {
	gotText, wantText := mil.ShapeString(sizes(got)), mil.ShapeString(want)
	differ, at := 0, 0
	if len(got) == len(want) {
		for i, n := range want {
			if n >= 0 && n != int64(got[i]) {
				differ, at = differ+1, i
			}
		}
	}
	if differ != 1 || !strings.Contains(in.Name, "mask") {
		return r.portFault(in.Name, ErrInputShape, gotText, wantText, "")
	}
	fix := "this function was built for " + strconv.FormatInt(want[at], 10) + " positions: make the mask that long, or open the chunk built for " + strconv.Itoa(got[at])
	return r.portFault(in.Name, ErrContext, gotText, wantText, fix)
}

// allowed lists the shapes of a flexible port.
func allowed(f *mil.Flexible) string {
	var parts []string
	for _, s := range f.Enumerated {
		parts = append(parts, mil.ShapeString(s))
	}
	if len(parts) > 0 {
		return strings.Join(parts, " or ")
	}
	for _, d := range f.Ranges {
		switch {
		case d.Min == d.Max:
			parts = append(parts, strconv.FormatInt(d.Min, 10))
		case d.Max < 0:
			parts = append(parts, fmt.Sprintf("%d or more", d.Min))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", d.Min, d.Max))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
