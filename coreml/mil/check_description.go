package mil

import (
	"fmt"
	"slices"
	"strings"
)

// CheckDescription looks for the first thing in which a description and a program disagree: functions, names of ports and states,
// element types and shapes. The error is a *[Fault].
func CheckDescription(p *Program, d *Description) error {
	if d == nil {
		d = &Description{}
	}
	for _, f := range d.Functions {
		if p.Function(f.Name) == nil {
			return &Fault{Rule: ErrDescription, Function: f.Name, Got: "described, but not in the program"}
		}
	}
	if len(d.Functions) > 0 && p.Function(d.DefaultFunction) == nil {
		return &Fault{Rule: ErrDescription, Operand: "defaultFunctionName", Got: quoted(d.DefaultFunction), Want: "one of " + strings.Join(functionNames(p), ", ")}
	}
	for _, fn := range p.Functions {
		face := d.Of(fn.Name)
		if face == nil {
			return &Fault{Rule: ErrDescription, Function: fn.Name, Got: "in the program, but not described"}
		}
		if fault := checkInterface(fn, face); fault != nil {
			fault.Rule, fault.Function = ErrDescription, fn.Name
			return fault
		}
	}
	return nil
}

func checkInterface(fn *Function, face *Interface) *Fault {
	var inputs, states []Variable
	for _, in := range fn.Inputs {
		if in.Type.Kind == State {
			states = append(states, in.Variable)
		} else {
			inputs = append(inputs, in.Variable)
		}
	}
	outputs, err := fn.Results()
	if err != nil {
		return faultOf(err)
	}
	for _, c := range []struct {
		what     string
		ports    []Feature
		declared []Variable
	}{{"input", face.Inputs, inputs}, {"state", face.States, states}, {"output", face.Outputs, outputs}} {
		if fault := checkPorts(c.what, c.ports, c.declared); fault != nil {
			return fault
		}
	}
	return nil
}

// checkPorts wants the same names on both sides, and types that agree.
func checkPorts(what string, ports []Feature, declared []Variable) *Fault {
	for _, v := range declared {
		i := slices.IndexFunc(ports, func(f Feature) bool { return f.Name == v.Name })
		if i < 0 {
			return &Fault{Operand: v.Name, Got: fmt.Sprintf("%s of the function that the description does not list", what),
				Fix: fmt.Sprintf("the description's %ss are: %s", what, featureNames(ports))}
		}
		if fault := checkPort(ports[i], v.Type); fault != nil {
			return fault
		}
	}
	for _, f := range ports {
		if !slices.ContainsFunc(declared, func(v Variable) bool { return v.Name == f.Name }) {
			return &Fault{Operand: f.Name, Got: fmt.Sprintf("%s of the description that the function does not have", what)}
		}
	}
	return nil
}

func featureNames(ports []Feature) string {
	if len(ports) == 0 {
		return "none"
	}
	var names []string
	for _, f := range ports {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// checkPort compares element types and, unless the port is flexible, shapes. Ports that are no arrays stand for tensors in ways of
// their own.
func checkPort(f Feature, t Type) *Fault {
	tensor, ok := t.AsTensor()
	if f.Kind == OtherFeature || !ok {
		return nil
	}
	if f.Array.DType != tensor.DType {
		return &Fault{Operand: f.Name, Got: f.Array.DType.String() + " in the description", Want: tensor.DType.String() + ", as in the function"}
	}
	if len(f.Array.Shape) > 0 && len(tensor.Shape) > 0 && !CompatibleShapes(f.Array.Shape, tensor.Shape) && f.Array.Flexible == nil {
		return &Fault{Operand: f.Name, Got: ShapeString(f.Array.Shape) + " in the description", Want: ShapeString(tensor.Shape) + ", as in the function"}
	}
	return nil
}
