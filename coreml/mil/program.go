package mil

import (
	"slices"
	"strings"
)

// Program is everything that is executed.
type Program struct {
	SpecVersion int         // version of the model specification, which bounds the opsets; 0 if not known
	Functions   []*Function // sorted by name
	Attributes  []Attribute // buildInfo of compiled programs
}

// Function is one entry point of a program.
type Function struct {
	Name       string
	Opset      Opset
	Inputs     []Input // tensors, and states that live between calls
	Body       *Block
	Attributes []Attribute
}

// Input is what a function is given.
type Input struct {
	Variable
	Flexible *Flexible // the shapes it may take, if more than one
}

// Flexible lists the shapes that an input may take. Enumerated or Ranges is set, not both.
type Flexible struct {
	Default    []int64   // the shape used if nothing is said
	Enumerated [][]int64 // complete shapes
	Ranges     []Range   // one for each dimension
}

// Range bounds one dimension, both ends included; Max is [Unknown] if there is no upper end.
type Range struct{ Min, Max int64 }

// Allows reports whether shape is one of the shapes.
func (f *Flexible) Allows(shape []int64) bool {
	if slices.Equal(shape, f.Default) {
		return true
	}
	if len(f.Ranges) > 0 {
		return len(shape) == len(f.Ranges) && inRanges(shape, f.Ranges)
	}
	return slices.ContainsFunc(f.Enumerated, func(s []int64) bool { return slices.Equal(s, shape) })
}

func inRanges(shape []int64, ranges []Range) bool {
	for i, r := range ranges {
		if shape[i] < r.Min || r.Max >= 0 && shape[i] > r.Max {
			return false
		}
	}
	return true
}

// Block is a sequence of ops with a scope of its own.
type Block struct {
	Inputs     []Variable // of nested blocks: what the enclosing op passes in
	Ops        []*Op      // in execution order
	Outputs    []string   // names of the results
	Attributes []Attribute
}

// Op is one operation.
type Op struct {
	Type       string
	Opset      Opset       // where a text gives one for this op alone
	Inputs     []Argument  // sorted by name
	Outputs    []Variable  // none for ops that only have an effect
	Blocks     []*Block    // bodies of loops and branches
	Attributes []Attribute // sorted by name
}

// Variable is a name with a type.
type Variable struct {
	Name string
	Type Type
}

// Argument is what an op is given for one parameter: one binding, or several for parameters that take a tuple.
type Argument struct {
	Name     string
	Bindings []Binding
}

// Binding is the name of an earlier result, or a value given in place.
type Binding struct {
	Name  string
	Value *Value // nil if Name is set
}

// Attribute is a named constant.
type Attribute struct {
	Name  string
	Value *Value
}

// Ref binds a name.
func Ref(name string) Binding { return Binding{Name: name} }

// Literal binds a value.
func Literal(v *Value) Binding { return Binding{Value: v} }

// Arg is the argument of one parameter.
func Arg(name string, bindings ...Binding) Argument { return Argument{Name: name, Bindings: bindings} }

// Function finds a function by name; nil if there is none.
func (p *Program) Function(name string) *Function {
	for _, f := range p.Functions {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Input finds an input by name; nil if there is none.
func (f *Function) Input(name string) *Input {
	for i := range f.Inputs {
		if f.Inputs[i].Name == name {
			return &f.Inputs[i]
		}
	}
	return nil
}

// States are the inputs that are states.
func (f *Function) States() []Variable {
	var states []Variable
	for _, in := range f.Inputs {
		if in.Type.Kind == State {
			states = append(states, in.Variable)
		}
	}
	return states
}

// Input returns what is bound to a parameter, nil if nothing is.
func (o *Op) Input(param string) []Binding {
	for i := range o.Inputs {
		if o.Inputs[i].Name == param {
			return o.Inputs[i].Bindings
		}
	}
	return nil
}

// Attribute returns an attribute of o, nil if it has none of that name.
func (o *Op) Attribute(name string) *Value { return find(o.Attributes, name) }

// Attribute returns an attribute of f, nil if it has none of that name.
func (f *Function) Attribute(name string) *Value { return find(f.Attributes, name) }

// Attribute returns an attribute of p, nil if it has none of that name.
func (p *Program) Attribute(name string) *Value { return find(p.Attributes, name) }

func find(list []Attribute, name string) *Value {
	for _, a := range list {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

// Name is what messages call an op: the name of its first output, or its name attribute.
func (o *Op) Name() string {
	if len(o.Outputs) > 0 {
		return o.Outputs[0].Name
	}
	if v := o.Attribute("name"); v != nil {
		if s, ok := v.Text(); ok {
			return s
		}
	}
	return ""
}

// IsConstexpr reports whether o describes a compressed constant.
func (o *Op) IsConstexpr() bool { return strings.HasPrefix(o.Type, "constexpr_") }

// Sort puts functions, inputs of ops and attributes in order of name, as codecs and comparisons expect them.
func (p *Program) Sort() {
	slices.SortStableFunc(p.Functions, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	sortAttributes(p.Attributes)
	for _, f := range p.Functions {
		sortAttributes(f.Attributes)
		if f.Body != nil {
			f.Body.sort()
		}
	}
}

func (b *Block) sort() {
	sortAttributes(b.Attributes)
	for _, op := range b.Ops {
		slices.SortStableFunc(op.Inputs, func(x, y Argument) int { return strings.Compare(x.Name, y.Name) })
		sortAttributes(op.Attributes)
		for _, inner := range op.Blocks {
			inner.sort()
		}
	}
}

func sortAttributes(list []Attribute) {
	slices.SortStableFunc(list, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
}
