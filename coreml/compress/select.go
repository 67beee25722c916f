package compress

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"anelab/coreml/census"
	"anelab/coreml/mil"
)

// DefaultMinElements is the size up to which converters leave a constant alone.
const DefaultMinElements = 2048

// Selection says which weights are meant.
type Selection struct {
	MinElements int64    // weights of this many elements and fewer stay; 0 = [DefaultMinElements], −1 = compress all
	Skip        []string // patterns (path.Match) of names that stay, of the constants or of the ops that read them
	Only        []string // patterns; if there are any, all other names stay
}

// Weight is a floating constant and what is to become of it.
type Weight struct {
	census.Weight
	Function string
	Axis     int    // dimension of the output channels
	Kept     string // why it stays as it is; "" if it is compressed

	opset mil.Opset
}

// products are the ops whose weights are compressed, with the operand that is one.
var products = map[string][]string{"conv": {"weight"}, "conv_transpose": {"weight"}, "linear": {"weight"}, "matmul": {"x", "y"}}

// Select lists the floating constants of a program, in order. The error is a pattern that is none.
func Select(p *mil.Program, s Selection) ([]Weight, error) {
	for _, pattern := range slices.Concat(s.Skip, s.Only) {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	if s.MinElements == 0 {
		s.MinElements = DefaultMinElements
	}
	var all []Weight
	for _, f := range p.Functions {
		j := judge{s, switches(f)}
		for _, w := range census.Weights(f) {
			if !w.Type.DType.IsFloat() {
				continue
			}
			one := Weight{Weight: w, Function: f.Name, opset: f.Opset}
			one.Axis, one.Kept = j.judge(&w)
			all = append(all, one)
		}
	}
	return all, nil
}

// judge knows one function.
type judge struct {
	Selection
	on map[string]bool // constants that are true
}

// switches finds the constants that are true, for operands that ops give by name.
func switches(f *mil.Function) map[string]bool {
	on := map[string]bool{}
	for op := range f.Body.All() {
		if v := op.Attribute("val"); op.Type == "const" && v != nil && v.Type.DType == mil.Bool && v.Type.IsScalar() {
			n, _ := v.Int()
			on[op.Name()] = n != 0
		}
	}
	return on
}

// judge finds the axis of a weight, or the reason to leave it.
func (s *judge) judge(w *census.Weight) (axis int, kept string) {
	switch {
	case w.Form != census.Dense:
		return 0, "is compressed already"
	case w.Type.DType != mil.Float16 && w.Type.DType != mil.Float32:
		return 0, w.Type.DType.String() + " has no compressed form"
	case len(w.Type.Shape) < 2:
		return 0, "has one dimension"
	case w.Elements() <= s.MinElements:
		return 0, fmt.Sprintf("has at most %d elements", s.MinElements)
	case s.named(w, s.Skip):
		return 0, "skipped by name"
	case len(s.Only) > 0 && !s.named(w, s.Only):
		return 0, "not among the names asked for"
	}
	return s.channelAxis(w)
}

// named reports whether a pattern matches the constant or an op that reads it.
func (s *Selection) named(w *census.Weight, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if ok, _ := path.Match(pattern, w.Name); ok {
			return true
		}
		return slices.ContainsFunc(w.Readers, func(op *mil.Op) bool {
			ok, _ := path.Match(pattern, op.Name())
			return ok
		})
	})
}

// channelAxis is the dimension of the output channels, on which all readers must agree.
func (s *judge) channelAxis(w *census.Weight) (axis int, kept string) {
	if len(w.Readers) == 0 {
		return 0, "nothing reads it"
	}
	var others []string
	axis = -1
	for _, op := range w.Readers {
		a, ok := s.axisOf(op, w)
		switch {
		case !ok:
			others = append(others, op.Type+" "+op.Name())
		case axis >= 0 && a != axis:
			return 0, "its readers have their channels in different dimensions"
		default:
			axis = a
		}
	}
	if len(others) > 0 {
		return 0, "is read by " + strings.Join(others[:min(2, len(others))], " and ")
	}
	return axis, ""
}

// axisOf is the dimension of the output channels of a product's weight; ok is false for other ops and operands.
func (s *judge) axisOf(op *mil.Op, w *census.Weight) (axis int, ok bool) {
	rank := len(w.Type.Shape)
	for name, param := range mil.Uses(op) {
		if name != w.Name {
			continue
		}
		if !slices.Contains(products[op.Type], param) {
			return 0, false
		}
		switch op.Type {
		case "conv_transpose":
			axis = 1
		case "matmul":
			axis = rank - 1
			if s.flag(op, "transpose_"+param) == (param == "y") {
				axis = rank - 2
			}
		}
		ok = true
	}
	return axis, ok
}

// flag is an optional operand of kind bool.
func (s *judge) flag(op *mil.Op, param string) bool {
	bound := op.Input(param)
	if len(bound) == 0 {
		return false
	}
	if bound[0].Value == nil {
		return s.on[bound[0].Name]
	}
	n, _ := bound[0].Value.Int()
	return n != 0
}
