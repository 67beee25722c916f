package miltext

import (
	"fmt"
	"strings"
	"unsafe"

	"anelab/coreml/mil"
)

// Dialect is the version that a text begins with.
type Dialect string

// The dialects.
const (
	Dialect10 Dialect = "1.0" // every scalar is written as a tensor of rank 0
	Dialect13 Dialect = "1.3"
)

// DialectOf is the dialect that compilers use for a program.
func DialectOf(p *mil.Program) Dialect {
	newest := mil.Opset(p.SpecVersion)
	for _, f := range p.Functions {
		newest = max(newest, f.Opset)
	}
	if newest >= mil.CoreML8 {
		return Dialect13
	}
	return Dialect10
}

const (
	spareMemory  = 1 << 20 // allowed beyond four times the text
	sizeOp       = int(unsafe.Sizeof(mil.Op{})) * 5 / 4
	sizeFunction = int(unsafe.Sizeof(mil.Function{})+unsafe.Sizeof(mil.Block{})) * 5 / 4
)

// Parse reads a text; path is for messages. The result is not checked ([mil.Check]), and its weights files are not opened. Strings in
// the program are parts of the text.
func Parse(path, text string) (*mil.Program, Dialect, error) {
	p := &parser{lexer{path: path, text: text, left: 4*int64(len(text)) + spareMemory}}
	p.next()
	program, dialect := p.program()
	if p.err != nil {
		return nil, "", p.err
	}
	program.Sort()
	return program, dialect, nil
}

// parser reads declarations.
type parser struct{ lexer }

// grow appends to a list that doubles, charging for each new place.
func grow[T any](p *parser, list []T, x T) []T {
	if len(list) == cap(list) {
		room := max(1, 2*len(list))
		if size := room * int(unsafe.Sizeof(x)); !p.charge(size + size/4) { // allocations are rounded up
			return list
		}
		list = append(make([]T, 0, room), list...)
	}
	return append(list, x)
}

// program: program(1.3) [attributes] { func … }
func (p *parser) program() (*mil.Program, Dialect) {
	p.name("program")
	p.want("(")
	dialect := Dialect(p.tok.text)
	if p.tok.kind != number || dialect != Dialect10 && !strings.HasPrefix(string(dialect), "1.") {
		p.unexpected("version 1.0 to 1.3")
	}
	p.next()
	p.want(")")
	program := &mil.Program{Attributes: p.attributes()}
	p.want("{")
	for p.err == nil && !p.is("}") {
		if p.charge(sizeFunction) {
			program.Functions = grow(p, program.Functions, p.function())
		}
	}
	p.want("}")
	if p.tok.kind != end {
		p.unexpected("nothing after the program")
	}
	if dialect != Dialect10 {
		dialect = Dialect13
	}
	return program, dialect
}

// attributes: [name = value, …], or nothing.
func (p *parser) attributes() []mil.Attribute {
	if !p.skip("[") {
		return nil
	}
	var list []mil.Attribute
	for p.err == nil && !p.is("]") {
		if len(list) > 0 && !p.want(",") {
			break
		}
		a := mil.Attribute{Name: p.name("")}
		p.want("=")
		a.Value = p.value(0)
		list = grow(p, list, a)
	}
	p.want("]")
	return list
}

// function: func name<opset>(type input, …) [attributes] { ops } -> (outputs);
func (p *parser) function() *mil.Function {
	p.name("func")
	f := &mil.Function{Name: p.name(""), Body: &mil.Block{}}
	p.want("<")
	f.Opset = p.opset()
	p.want(">")
	p.want("(")
	for p.err == nil && !p.is(")") {
		if len(f.Inputs) > 0 && !p.want(",") {
			break
		}
		t := p.typ(0)
		f.Inputs = grow(p, f.Inputs, mil.Input{Variable: mil.Variable{Name: p.name(""), Type: t}})
	}
	p.want(")")
	f.Attributes = p.attributes()
	p.want("{")
	for p.err == nil && !p.is("}") {
		f.Body.Ops = grow(p, f.Body.Ops, p.op())
	}
	p.want("}")
	p.want("->")
	p.want("(")
	for p.err == nil && !p.is(")") {
		if len(f.Body.Outputs) > 0 && !p.want(",") {
			break
		}
		f.Body.Outputs = grow(p, f.Body.Outputs, p.name(""))
	}
	p.want(")")
	p.want(";")
	return f
}

func (p *parser) opset() mil.Opset {
	at := p.tok.at
	name := p.name("")
	o, ok := mil.ParseOpset(name)
	if !ok {
		p.fail(at, ErrSyntax, "opset "+clip(name), "ios15 to ios18, or ios26")
	}
	return o
}

// op: [type output, … =] name[<opset>](operands)[attributes];
func (p *parser) op() *mil.Op {
	if !p.charge(sizeOp) {
		return nil
	}
	o := &mil.Op{}
	if p.typeAhead() {
		for p.err == nil {
			t := p.typ(0)
			o.Outputs = grow(p, o.Outputs, mil.Variable{Name: p.name(""), Type: t})
			if !p.skip(",") {
				break
			}
		}
		p.want("=")
	}
	o.Type = p.name("")
	if p.skip("<") {
		o.Opset = p.opset()
		p.want(">")
	}
	p.want("(")
	for p.err == nil && !p.is(")") {
		if len(o.Inputs) > 0 && !p.want(",") {
			break
		}
		o.Inputs = grow(p, o.Inputs, p.argument())
	}
	p.want(")")
	o.Attributes = p.attributes()
	if p.is("{") {
		p.fail(p.tok.at, ErrSyntax, "a nested block", "an op without blocks")
	}
	p.want(";")
	return o
}

// typeAhead reports whether a type is next, not the name of an op: a type is followed by a name, or is one with brackets.
func (p *parser) typeAhead() bool {
	look := p.lexer
	look.left = 0
	first := look.tok
	look.next()
	if look.tok.kind == word {
		return true
	}
	_, bracketed := bracketed[first.text]
	return bracketed && look.is("<")
}

// argument: name = binding, or name = (binding, …).
func (p *parser) argument() mil.Argument {
	arg := mil.Argument{Name: p.name("")}
	p.want("=")
	if !p.skip("(") {
		arg.Bindings = grow(p, arg.Bindings, p.binding())
		return arg
	}
	for p.err == nil && !p.is(")") {
		if len(arg.Bindings) > 0 && !p.want(",") {
			break
		}
		arg.Bindings = grow(p, arg.Bindings, p.binding())
	}
	p.want(")")
	return arg
}

// binding: the name of a result, or a value, which begins with its type.
func (p *parser) binding() mil.Binding {
	look := p.lexer
	look.next()
	if look.is("(") || look.is("<") {
		return mil.Literal(p.value(0))
	}
	return mil.Ref(p.name(""))
}

// bracketed are the words that begin a type with brackets.
var bracketed = map[string]mil.Kind{"tensor": mil.Tensor, "list": mil.List, "tuple": mil.Tuple, "dict": mil.Dictionary, "state": mil.State, "tensor_buffer": mil.Buffer}

const maxDepth = 32

// typ: fp16, tensor<fp16, [1, ?]>, list<T, 5>, tuple<T, …>, dict<K, V>, state<T>, tensor_buffer<…>.
func (p *parser) typ(depth int) mil.Type {
	at := p.tok.at
	name := p.name("")
	if depth > maxDepth {
		p.fail(at, ErrTooDeep, "", fmt.Sprintf("at most %d levels", maxDepth))
		return mil.Type{}
	}
	k, ok := bracketed[name]
	if !ok {
		return mil.TensorOf(p.element(at, name))
	}
	t := mil.Type{Kind: k}
	p.want("<")
	switch k {
	case mil.Tensor:
		at := p.tok.at
		t.DType = p.element(at, p.name(""))
		p.want(",")
		t.Shape = p.dims()
	case mil.Buffer:
		p.buffer(&t)
	default:
		p.components(&t, depth)
	}
	p.want(">")
	return t
}

func (p *parser) element(at int, name string) mil.DType {
	d, ok := mil.ParseDType(name)
	if !ok {
		p.fail(at, ErrSyntax, "type "+clip(name), "fp16, int32, bool, string, …")
	}
	return d
}

// components: the types inside, and the length of a list.
func (p *parser) components(t *mil.Type, depth int) {
	if !p.charge(int(unsafe.Sizeof(mil.Components{}))) {
		return
	}
	t.Inner = &mil.Components{}
	at := p.tok.at
	for p.err == nil {
		t.Inner.Types = grow(p, t.Inner.Types, p.typ(depth+1))
		if !p.skip(",") {
			break
		}
		if t.Kind == mil.List {
			t.Inner.Length = p.dim()
			break
		}
	}
	want, n := map[mil.Kind]int{mil.List: 1, mil.State: 1, mil.Dictionary: 2}[t.Kind], len(t.Inner.Types)
	if want > 0 && n != want {
		p.fail(at, ErrSyntax, fmt.Sprintf("%d types in a %s", n, t.Kind), fmt.Sprint(want))
	}
}

// dims: [1, ?, 64].
func (p *parser) dims() []int64 {
	var shape []int64
	p.want("[")
	for p.err == nil && !p.is("]") {
		if len(shape) > 0 && !p.want(",") {
			break
		}
		shape = grow(p, shape, p.dim())
	}
	p.want("]")
	return shape
}

func (p *parser) dim() int64 {
	if p.skip("?") {
		return mil.Unknown
	}
	n, ok := parseInt(mil.Int64, p.tok.text)
	if p.tok.kind != number || !ok || n < 0 {
		p.unexpected("a size or ?")
	}
	p.next()
	return n
}

// buffer: fp16, shape=[…], strides=[…], interleave_factors=[…].
func (p *parser) buffer(t *mil.Type) {
	if !p.charge(int(unsafe.Sizeof(mil.Components{}))) {
		return
	}
	t.Inner = &mil.Components{}
	at := p.tok.at
	t.DType = p.element(at, p.name(""))
	for p.skip(",") {
		at := p.tok.at
		key := p.name("")
		p.want("=")
		list := p.dims()
		switch key {
		case "shape":
			t.Shape = list
		case "strides":
			t.Inner.Strides = list
		case "interleave_factors":
			t.Inner.Interleave = list
		default:
			p.fail(at, ErrSyntax, clip(key), "shape, strides or interleave_factors")
		}
	}
}
