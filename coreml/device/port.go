package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"anelab/coreml/mil"
	"anelab/internal/format"
)

// Port is an input, output or state of a function, as the loaded model describes it.
type Port struct {
	Name     string
	DType    mil.DType
	Shape    []int // of flexible ports the default
	Flexible Flexible
	Optional mil.Optional // of inputs: may be left out
}

// Flexible says that a port takes other shapes of the same rank too.
type Flexible bool

// MLFeatureType and MLMultiArrayShapeConstraintType, as far as they matter here.
const (
	featureArray = 5
	featureState = 8

	enumeratedShapes = 2
	rangeOfShapes    = 3
)

// String is the port as people write it: x fp16[1, 64].
func (p Port) String() string { return p.Name + " " + typeText(p.DType, p.Shape) }

func typeText(d mil.DType, shape []int) string {
	return d.String() + strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}

// ports reads a dictionary of feature descriptions, sorted by name. Ports that are no arrays are left out: no tensor fits them.
func (m machine) ports(descriptions id) []Port {
	var list []Port
	for name, feature := range m.entries(descriptions) {
		switch m.send(feature, "type") {
		case featureArray:
			p := m.arrayPort(name, m.send(feature, "multiArrayConstraint"))
			p.Optional = m.send(feature, "isOptional")&0xff != 0
			list = append(list, p)
		case featureState:
			c := m.send(feature, "stateConstraint")
			list = append(list, Port{Name: name, DType: arrayTypes[m.send(c, "dataType")], Shape: m.ints(m.send(c, "bufferShape"))})
		}
	}
	slices.SortFunc(list, func(a, b Port) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (m machine) arrayPort(name string, constraint id) Port {
	p := Port{Name: name, DType: arrayTypes[m.send(constraint, "dataType")], Shape: m.ints(m.send(constraint, "shape"))}
	shapes := m.send(constraint, "shapeConstraint")
	switch m.send(shapes, "type") {
	case enumeratedShapes:
		p.Flexible = m.send(m.send(shapes, "enumeratedShapes"), "count") > 1
	case rangeOfShapes:
		p.Flexible = true
	}
	return p
}

// takes holds the type of an array against the port.
func (p Port) takes(d mil.DType, shape []int) (rule error) {
	switch {
	case d != p.DType:
		return ErrType
	case bool(p.Flexible) && len(shape) == len(p.Shape) || slices.Equal(shape, p.Shape):
		return nil
	}
	return ErrShape
}

// faces is the ports of a loaded function.
type faces struct {
	path, function          string
	inputs, outputs, states []Port
}

func (f *faces) fault(port string, rule error, got, want, fix string) error {
	return &format.Error{Path: f.path, Field: f.function + "/" + port, Got: got, Want: want, Err: rule, Fix: fix}
}

// typed is what a port is given.
type typed struct {
	dtype mil.DType
	shape []int
}

// check holds what is given against the ports: names that do not exist, types, shapes. Absent ones are reported by [faces.missing].
func (f *faces) check(ports []Port, given map[string]typed) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(ports, func(p Port) bool { return p.Name == name })
		if i < 0 {
			return f.fault(name, ErrUnknownPort, "", names(ports), format.DidYouMean(name, nameList(ports)))
		}
		g := given[name]
		if rule := ports[i].takes(g.dtype, g.shape); rule != nil {
			return f.fault(name, rule, typeText(g.dtype, g.shape), typeText(ports[i].DType, ports[i].Shape), "")
		}
	}
	return nil
}

// missing reports the first input that is not given.
func (f *faces) missing(given map[string]typed) error {
	for _, p := range f.inputs {
		if _, ok := given[p.Name]; !ok && !bool(p.Optional) {
			return f.fault(p.Name, ErrMissingInput, "", p.String(), "")
		}
	}
	return nil
}

func nameList(ports []Port) []string {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = p.Name
	}
	return list
}

func names(ports []Port) string { return strings.Join(nameList(ports), ", ") }
