package miltext

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"anelab/coreml/mil"
)

// ErrNoText says that a program holds something of which no text form is known.
var ErrNoText = errors.New("no text form is known")

// Print writes a program as a compiler does. Constants that are in no weights file are written out.
func Print(w io.Writer, p *mil.Program, d Dialect) error {
	pr := &printer{w: bufio.NewWriter(w), dialect: d}
	pr.put("program(", string(d), ")\n")
	if len(p.Attributes) > 0 {
		pr.attributes(p.Attributes)
		pr.put("\n")
	}
	pr.put("{\n")
	functions := slices.Clone(p.Functions)
	slices.SortFunc(functions, func(a, b *mil.Function) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range functions {
		pr.function(f)
	}
	pr.put("}")
	if pr.err == nil {
		pr.err = pr.w.Flush()
	}
	return pr.err
}

// printer writes declarations.
type printer struct {
	w       *bufio.Writer
	dialect Dialect
	err     error
}

// put writes; faults of the writer come out when it is flushed.
func (p *printer) put(parts ...string) {
	for _, s := range parts {
		_, _ = p.w.WriteString(s)
	}
}

func (p *printer) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrNoText, what)
	}
}

func (p *printer) function(f *mil.Function) {
	p.put("    func ", f.Name, "<", f.Opset.Text(), ">(")
	inputs := slices.Clone(f.Inputs)
	slices.SortStableFunc(inputs, func(a, b mil.Input) int { return strings.Compare(a.Name, b.Name) })
	for i, in := range inputs {
		p.comma(i)
		p.typ(in.Type)
		p.put(" ", in.Name)
	}
	p.put(") ")
	if len(f.Attributes) > 0 {
		p.attributes(f.Attributes)
		p.put(" ")
	}
	p.put("{\n")
	for _, op := range f.Body.Ops {
		p.put("            ")
		p.op(op)
		p.put("\n")
	}
	p.put("        } -> (", strings.Join(f.Body.Outputs, ", "), ");\n")
}

// comma separates entries of a list.
func (p *printer) comma(i int) {
	if i > 0 {
		p.put(", ")
	}
}

func (p *printer) op(o *mil.Op) {
	if len(o.Blocks) > 0 {
		p.fail("op " + o.Name() + " (" + o.Type + ") has nested blocks")
	}
	for i, out := range o.Outputs {
		p.comma(i)
		p.typ(out.Type)
		p.put(" ", out.Name)
	}
	if len(o.Outputs) > 0 {
		p.put(" = ")
	}
	p.put(o.Type)
	if o.Opset != mil.NoOpset {
		p.put("<", o.Opset.Text(), ">")
	}
	p.put("(")
	inputs := slices.Clone(o.Inputs)
	slices.SortStableFunc(inputs, func(a, b mil.Argument) int { return strings.Compare(a.Name, b.Name) })
	for i, arg := range inputs {
		p.comma(i)
		p.put(arg.Name, " = ")
		p.bindings(arg.Bindings)
	}
	p.put(")")
	p.attributes(o.Attributes)
	p.put(";")
}

func (p *printer) bindings(list []mil.Binding) {
	if len(list) != 1 {
		p.put("(")
		defer p.put(")")
	}
	for i, b := range list {
		p.comma(i)
		if b.Value == nil {
			p.put(b.Name)
			continue
		}
		p.value(b.Value)
	}
}

func (p *printer) attributes(list []mil.Attribute) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b mil.Attribute) int { return cmp.Compare(a.Name, b.Name) })
	p.put("[")
	for i, a := range list {
		p.comma(i)
		p.put(a.Name, " = ")
		p.value(a.Value)
	}
	p.put("]")
}

func (p *printer) typ(t mil.Type) {
	switch t.Kind {
	case mil.Tensor:
		if len(t.Shape) == 0 && p.dialect != Dialect10 {
			p.put(t.DType.String())
			return
		}
		p.put("tensor<", t.DType.String(), ", ", mil.ShapeString(t.Shape), ">")
	case mil.Buffer:
		p.put("tensor_buffer<", t.DType.String(), ", shape=", mil.ShapeString(t.Shape), ", strides=", mil.ShapeString(t.Inner.Strides),
			", interleave_factors=", mil.ShapeString(t.Inner.Interleave), ">")
	case mil.List:
		p.put("list<")
		p.typ(t.Elem(0))
		p.put(", ", strings.Trim(mil.ShapeString([]int64{t.Length()}), "[]"), ">")
	case mil.State, mil.Tuple, mil.Dictionary:
		p.put(t.Kind.String(), "<")
		for i, e := range t.Inner.Types {
			p.comma(i)
			p.typ(e)
		}
		p.put(">")
	default:
		p.fail("a type that says nothing")
	}
}
