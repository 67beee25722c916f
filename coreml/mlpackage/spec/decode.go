package spec

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"anelab/coreml/mil"
)

// Sizes of what is counted against the budget.
const (
	sizeFunction = int(unsafe.Sizeof(mil.Function{}) + unsafe.Sizeof(mil.Block{}) + 8)
	sizeInput    = int(unsafe.Sizeof(mil.Input{}))
	sizeBlock    = int(unsafe.Sizeof(mil.Block{})) + 8
	sizeOp       = int(unsafe.Sizeof(mil.Op{})) + 8
	sizeVariable = int(unsafe.Sizeof(mil.Variable{}))
	sizeArgument = int(unsafe.Sizeof(mil.Argument{}))
	sizeBinding  = int(unsafe.Sizeof(mil.Binding{}))
	sizeAttr     = int(unsafe.Sizeof(mil.Attribute{}))
	sizeValue    = int(unsafe.Sizeof(mil.Value{}))
	sizeType     = int(unsafe.Sizeof(mil.Type{}))
	sizeInner    = int(unsafe.Sizeof(mil.Components{}))
	sizeString   = 16
	sizeBlob     = int(unsafe.Sizeof(mil.Blob{}))
)

// room allocates a list for the occurrences of a field, charged by the size of an element.
func room[T any](in *message, num, size int) []T {
	n := in.count(num)
	if n == 0 || !in.charge(n*size) {
		return nil
	}
	return make([]T, 0, n)
}

func (d *decoder) program(in *message) *mil.Program {
	p := &mil.Program{Functions: room[*mil.Function](in, 2, sizeFunction), Attributes: room[mil.Attribute](in, 4, sizeAttr)}
	version := int64(0)
	for in.next() {
		switch in.num {
		case 1:
			version = in.integer()
		case 2:
			key, value := d.entry(in)
			p.Functions = append(p.Functions, d.function(&value, key))
			in.merge(&value)
		case 4:
			p.Attributes = d.attribute(in, p.Attributes)
		default:
			d.keep(in, p)
		}
	}
	if version != 1 {
		in.fail(ErrMalformed, fmt.Sprintf("program version %d, not 1", version))
	}
	sortFunctions(in, p.Functions)
	sortAttributes(in, p.Attributes)
	d.merge(in)
	return p
}

// entry is a map entry: its key, and its value as a message that is yet to be read.
func (d *decoder) entry(in *message) (key string, value message) {
	value = in.part("map value", "")
	e := in.inner("map entry")
	for e.next() {
		switch e.num {
		case 1:
			key = e.text()
		case 2:
			value = e.inner("map value")
		default:
			e.fail(ErrMalformed, fmt.Sprintf("field %d in a map entry", e.num))
		}
	}
	in.merge(&e)
	value.err = in.err
	return key, value
}

func (d *decoder) function(in *message, name string) *mil.Function {
	in.name = "Function " + name
	f := &mil.Function{Name: name, Inputs: room[mil.Input](in, 1, sizeInput), Attributes: room[mil.Attribute](in, 4, sizeAttr)}
	opset := ""
	for in.next() {
		if in.num == 2 {
			opset = in.text()
		}
	}
	f.Opset, _ = mil.ParseOpset(opset)
	if f.Opset == mil.NoOpset {
		in.fail(ErrOpset, fmt.Sprintf("%q, known: %s", opset, strings.Join(mil.OpsetNames(), ", ")))
	}
	in.at = 0
	for in.next() {
		switch in.num {
		case 1:
			f.Inputs = append(f.Inputs, mil.Input{})
			d.variable(in, &f.Inputs[len(f.Inputs)-1].Variable)
		case 2:
		case 3:
			d.specialization(in, f, opset)
		case 4:
			f.Attributes = d.attribute(in, f.Attributes)
		default:
			d.keep(in, f)
		}
	}
	sortAttributes(in, f.Attributes)
	if f.Body == nil {
		in.fail(ErrNoBlock, opset)
	}
	return f
}

// specialization reads the block of the function's opset; blocks for other opsets are kept unread.
func (d *decoder) specialization(in *message, f *mil.Function, opset string) {
	key, value := d.entry(in)
	if key != opset {
		d.keep(in, f)
		return
	}
	if f.Body != nil {
		in.fail(ErrTwice, "block "+key)
	}
	f.Body = d.block(&value)
	in.merge(&value)
}

func (d *decoder) block(in *message) *mil.Block {
	in.name = "Block"
	b := &mil.Block{Inputs: room[mil.Variable](in, 1, sizeVariable), Outputs: room[string](in, 2, sizeString),
		Ops: room[*mil.Op](in, 3, sizeOp), Attributes: room[mil.Attribute](in, 4, sizeAttr)}
	for in.next() {
		switch in.num {
		case 1:
			b.Inputs = append(b.Inputs, mil.Variable{})
			d.variable(in, &b.Inputs[len(b.Inputs)-1])
		case 2:
			b.Outputs = append(b.Outputs, in.text())
		case 3:
			op := in.inner("Operation")
			b.Ops = append(b.Ops, d.op(&op))
			in.merge(&op)
		case 4:
			b.Attributes = d.attribute(in, b.Attributes)
		default:
			d.keep(in, b)
		}
	}
	sortAttributes(in, b.Attributes)
	return b
}

func (d *decoder) op(in *message) *mil.Op {
	o := &mil.Op{Inputs: room[mil.Argument](in, 2, sizeArgument), Outputs: room[mil.Variable](in, 3, sizeVariable),
		Blocks: room[*mil.Block](in, 4, sizeBlock), Attributes: room[mil.Attribute](in, 5, sizeAttr)}
	for in.next() {
		switch in.num {
		case 1:
			o.Type = in.text()
			in.name = "Operation " + o.Type
		case 2:
			d.argument(in, o)
		case 3:
			o.Outputs = append(o.Outputs, mil.Variable{})
			d.variable(in, &o.Outputs[len(o.Outputs)-1])
		case 4:
			inner := in.inner("Block")
			if in.charge(sizeBlock) {
				o.Blocks = append(o.Blocks, d.block(&inner))
			}
			in.merge(&inner)
		case 5:
			o.Attributes = d.attribute(in, o.Attributes)
		default:
			d.keep(in, o)
		}
	}
	sortArguments(in, o.Inputs)
	sortAttributes(in, o.Attributes)
	if o.Type == "" {
		in.fail(ErrMalformed, "an operation without a type")
	}
	return o
}

func (d *decoder) argument(in *message, o *mil.Op) {
	name, value := d.entry(in)
	value.name = "Argument " + name
	arg := mil.Argument{Name: name, Bindings: room[mil.Binding](&value, 1, sizeBinding)}
	for value.next() {
		arg.Bindings = append(arg.Bindings, d.binding(&value))
	}
	in.merge(&value)
	o.Inputs = append(o.Inputs, arg)
}

// binding: 1 name or 2 value.
func (d *decoder) binding(in *message) (b mil.Binding) {
	if in.num != 1 {
		in.fail(ErrMalformed, fmt.Sprintf("field %d", in.num))
		return b
	}
	x := in.inner("Binding")
	for x.next() {
		switch x.num {
		case 1:
			b.Name = x.text()
		case 2:
			b.Value = d.value(&x)
		default:
			x.fail(ErrMalformed, fmt.Sprintf("field %d", x.num))
		}
	}
	in.merge(&x)
	if (b.Name == "") == (b.Value == nil) {
		in.fail(ErrMalformed, "a binding of neither a name nor a value, or of both")
	}
	return b
}

func (d *decoder) attribute(in *message, list []mil.Attribute) []mil.Attribute {
	name, inner := d.entry(in)
	inner.name = "Value " + name
	v := d.valueOf(&inner)
	in.merge(&inner)
	return append(list, mil.Attribute{Name: name, Value: v})
}

// variable reads the NamedValueType in the current field into place, so that kept fields find it.
func (d *decoder) variable(outer *message, v *mil.Variable) {
	in := outer.inner("NamedValueType")
	for in.next() {
		switch in.num {
		case 1:
			v.Name = in.text()
			in.name = "NamedValueType " + v.Name
		case 2:
			d.typeInto(&in, &v.Type)
		default:
			d.keep(&in, v)
		}
	}
	if v.Type.Kind == 0 {
		in.fail(ErrMalformed, "no type")
	}
	outer.merge(&in)
}

// sortFunctions puts functions in order of name and refuses a name given twice; likewise the others.
func sortFunctions(in *message, list []*mil.Function) {
	slices.SortFunc(list, func(a, b *mil.Function) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		in.twice("function", list[i-1].Name, list[i].Name)
	}
}

func sortArguments(in *message, list []mil.Argument) {
	slices.SortFunc(list, func(a, b mil.Argument) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		in.twice("operand", list[i-1].Name, list[i].Name)
	}
}

func sortAttributes(in *message, list []mil.Attribute) {
	slices.SortFunc(list, func(a, b mil.Attribute) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		in.twice("attribute", list[i-1].Name, list[i].Name)
	}
}

func (m *message) twice(what, a, b string) {
	if a == b {
		m.fail(ErrTwice, what+" "+a)
	}
}
