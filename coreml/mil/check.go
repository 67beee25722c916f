package mil

import (
	"errors"
	"fmt"
	"strings"

	"anelab/internal/format"
)

// Check looks for the first thing that is wrong with a program: its parts and names, the order of its ops, the operands of every
// op, declared against inferred types, contents of constants. The error is a *[Fault]. Bytes of blobs are not looked at.
func Check(p *Program) error {
	if f := checkProgram(p); f != nil {
		return f
	}
	return nil
}

func checkProgram(p *Program) *Fault {
	if v := p.SpecVersion; v != 0 && (v < OldestSpec || v > NewestSpec) {
		return &Fault{Rule: ErrSpecVersion, Got: fmt.Sprint(v), Want: fmt.Sprintf("%d to %d", OldestSpec, NewestSpec)}
	}
	if len(p.Functions) == 0 {
		return &Fault{Rule: ErrStructure, Got: "no function", Want: "one at least"}
	}
	seen := map[string]bool{}
	for _, f := range p.Functions {
		if seen[f.Name] {
			return &Fault{Rule: ErrDefinedTwice, Function: f.Name}
		}
		seen[f.Name] = true
		if fault := checkFunction(p, f); fault != nil {
			fault.Function = f.Name
			return fault
		}
	}
	return nil
}

func checkFunction(p *Program, f *Function) *Fault {
	switch {
	case !IsIdentifier(f.Name):
		return &Fault{Rule: ErrName, Got: quoted(f.Name), Want: identifierRule}
	case f.Opset.Text() == "":
		return &Fault{Rule: ErrStructure, Operand: "opset", Got: f.Opset.String(), Want: "one of " + strings.Join(OpsetNames(), ", ")}
	case p.SpecVersion != 0 && int(f.Opset) > p.SpecVersion:
		return &Fault{Rule: ErrOpsetTooNew, Operand: "opset", Got: fmt.Sprintf("%s in specification version %d", f.Opset, p.SpecVersion),
			Want: fmt.Sprintf("version %d or newer", f.Opset)}
	case f.Body == nil:
		return &Fault{Rule: ErrStructure, Operand: "opset", Got: "no block for " + f.Opset.String()}
	}
	s := &scope{names: map[string]named{}}
	for _, in := range f.Inputs {
		if fault := s.define(in.Variable); fault != nil {
			return fault
		}
	}
	return checkBlock(f.Body, f.Opset, s)
}

// scope is the names defined so far in a block, and those of the blocks around it.
type scope struct {
	outer *scope
	names map[string]named
}

type named struct {
	typ   Type
	value *Value
	fixed bool
}

func (s *scope) find(name string) (named, bool) {
	for ; s != nil; s = s.outer {
		if n, ok := s.names[name]; ok {
			return n, true
		}
	}
	return named{}, false
}

// TypeOf implements Scope.
func (s *scope) TypeOf(name string) (Type, bool) {
	n, ok := s.find(name)
	return n.typ, ok
}

// Constant implements Scope.
func (s *scope) Constant(name string) *Value {
	n, _ := s.find(name)
	return n.value
}

// Fixed implements Scope.
func (s *scope) Fixed(name string) bool {
	n, _ := s.find(name)
	return n.fixed
}

func (s *scope) define(v Variable) *Fault {
	if !IsIdentifier(v.Name) {
		return &Fault{Rule: ErrName, Operand: v.Name, Got: quoted(v.Name), Want: identifierRule}
	}
	if _, twice := s.names[v.Name]; twice {
		return &Fault{Rule: ErrDefinedTwice, Operand: v.Name}
	}
	if fault := checkType(v.Type, v.Name); fault != nil {
		return fault
	}
	s.names[v.Name] = named{typ: v.Type}
	return nil
}

// checkType wants known element types and possible dimensions.
func checkType(t Type, operand string) *Fault {
	tensor, ok := t.AsTensor()
	if !ok {
		if t.Kind == 0 || t.Inner == nil || t.Kind == State {
			return &Fault{Rule: ErrStructure, Operand: operand, Got: "a type that says nothing"}
		}
		for _, e := range t.Inner.Types {
			if f := checkType(e, operand); f != nil {
				return f
			}
		}
		return nil
	}
	if !tensor.DType.Known() {
		return &Fault{Rule: ErrType, Operand: operand, Got: fmt.Sprintf("element type %d", tensor.DType), Want: "a type of the specification"}
	}
	for _, d := range tensor.Shape {
		if d < Variadic {
			return &Fault{Rule: ErrShape, Operand: operand, Got: t.String(), Want: "no negative dimension"}
		}
	}
	return nil
}

func checkBlock(b *Block, opset Opset, s *scope) *Fault {
	for _, v := range b.Inputs {
		if fault := s.define(v); fault != nil {
			return fault
		}
	}
	for i, op := range b.Ops {
		if fault := checkOp(b, i, opset, s); fault != nil {
			if fault.Op == "" {
				fault.Op, fault.Name = op.Type, op.Name()
			}
			return fault
		}
	}
	for _, name := range b.Outputs {
		if _, ok := s.find(name); !ok {
			return &Fault{Rule: ErrOutput, Operand: name, Got: quoted(name), Fix: suggest(name, s)}
		}
	}
	return nil
}

func suggest(name string, s *scope) string {
	var names []string
	for n := range s.names {
		names = append(names, n)
	}
	if near := format.Closest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

func checkOp(b *Block, i int, opset Opset, s *scope) *Fault {
	op := b.Ops[i]
	for _, arg := range op.Inputs {
		for _, bound := range arg.Bindings {
			if fault := checkBinding(b, i, bound, s); fault != nil {
				fault.Operand = arg.Name
				return fault
			}
		}
	}
	for _, a := range op.Attributes {
		if fault := checkValue(a.Value, 0); fault != nil {
			fault.Operand = a.Name
			return fault
		}
	}
	for _, inner := range op.Blocks {
		if fault := checkBlock(inner, opset, &scope{outer: s, names: map[string]named{}}); fault != nil {
			return fault
		}
	}
	types, err := Infer(op, opset, s)
	if err != nil {
		return faultOf(err)
	}
	return checkOutputs(op, types, s)
}

func faultOf(err error) *Fault {
	var f *Fault
	if !errors.As(err, &f) {
		f = &Fault{Rule: err}
	}
	return f
}

func checkBinding(b *Block, i int, bound Binding, s *scope) *Fault {
	if bound.Value != nil {
		return checkValue(bound.Value, 0)
	}
	if _, ok := s.find(bound.Name); ok {
		return nil
	}
	return undefined(b, i, bound.Name, s)
}

// checkOutputs holds declared types against inferred ones and defines the names.
func checkOutputs(op *Op, inferred []Type, s *scope) *Fault {
	if inferred != nil && len(inferred) != len(op.Outputs) {
		return &Fault{Rule: ErrDeclared, Got: fmt.Sprintf("%d outputs", len(op.Outputs)), Want: fmt.Sprintf("%d", len(inferred))}
	}
	fixed := op.Type == "const" || op.IsConstexpr()
	for i, out := range op.Outputs {
		if inferred != nil && !out.Type.Compatible(inferred[i]) {
			return &Fault{Rule: ErrDeclared, Operand: out.Name, Got: out.Type.String(), Want: inferred[i].String()}
		}
		if fault := s.define(out); fault != nil {
			return fault
		}
		known := named{typ: out.Type, fixed: fixed}
		if op.Type == "const" {
			known.value = op.Attribute("val")
		}
		s.names[out.Name] = known
	}
	return nil
}

// undefined says why a name that op i uses is not defined: later, in a circle, or not at all.
func undefined(b *Block, i int, name string, s *scope) *Fault {
	definedBy := map[string]int{}
	for j, op := range b.Ops {
		for _, out := range op.Outputs {
			definedBy[out.Name] = j
		}
	}
	at, later := definedBy[name]
	switch {
	case !later:
		return &Fault{Rule: ErrUndefined, Got: quoted(name), Fix: suggest(name, s)}
	case dependsOn(b, at, i, definedBy, map[int]bool{}):
		return &Fault{Rule: ErrCycle, Got: quoted(name) + ", which depends on the result"}
	}
	return &Fault{Rule: ErrOrder, Got: fmt.Sprintf("%s, defined by op %d of the block and used by op %d", quoted(name), at, i), Fix: "put the ops in topological order"}
}

// dependsOn reports whether op at needs a result of op target, directly or not.
func dependsOn(b *Block, at, target int, definedBy map[string]int, seen map[int]bool) bool {
	pending := []int{at}
	for len(pending) > 0 {
		at, pending = pending[len(pending)-1], pending[:len(pending)-1]
		if at == target {
			return true
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		for name := range Uses(b.Ops[at]) {
			if j, ok := definedBy[name]; ok {
				pending = append(pending, j)
			}
		}
	}
	return false
}

// maxDepth bounds values inside values.
const maxDepth = 16

// checkValue wants contents that fit the type.
func checkValue(v *Value, depth int) *Fault {
	if v == nil || v.Content == nil || depth > maxDepth {
		return &Fault{Rule: ErrValue, Got: "no contents, or too many levels"}
	}
	if f := checkType(v.Type, ""); f != nil {
		return f
	}
	switch c := v.Content.(type) {
	case Raw, Strings, Data:
		return checkTensorValue(v)
	case Items:
		return checkItems(v.Type, c, depth)
	case Pairs:
		for _, p := range c {
			for i, x := range []*Value{p.Key, p.Value} {
				if f := checkMember(x, v.Type.Elem(i), v.Type.Kind == Dictionary, depth); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

func checkItems(t Type, items Items, depth int) *Fault {
	for i, x := range items {
		member, ok := t.Elem(0), t.Kind == List
		if t.Kind == Tuple && t.Inner != nil {
			member, ok = t.Elem(i), i < len(t.Inner.Types)
		}
		if f := checkMember(x, member, ok, depth); f != nil {
			return f
		}
	}
	n := int64(len(items))
	if t.Kind == Tuple && t.Inner != nil && n != int64(len(t.Inner.Types)) || t.Kind == List && t.Length() >= 0 && n != t.Length() {
		return &Fault{Rule: ErrValue, Got: fmt.Sprintf("%d items in a value of type %s", n, t)}
	}
	return nil
}

func checkMember(v *Value, want Type, ok bool, depth int) *Fault {
	if f := checkValue(v, depth+1); f != nil {
		return f
	}
	if !ok || !v.Type.Compatible(want) {
		return &Fault{Rule: ErrValue, Got: v.Type.String() + " as a member", Want: want.String()}
	}
	return nil
}

func checkTensorValue(v *Value) *Fault {
	n, known := v.Type.Count()
	if v.Type.Kind != Tensor || !known {
		return &Fault{Rule: ErrValue, Got: "a constant of type " + v.Type.String(), Want: "a tensor of known shape"}
	}
	text, isText := v.Content.(Strings)
	switch {
	case isText != (v.Type.DType == String):
		return &Fault{Rule: ErrValue, Got: "contents of another kind than " + v.Type.String()}
	case isText && int64(len(text)) != n:
		return &Fault{Rule: ErrValue, Got: fmt.Sprintf("%d strings", len(text)), Want: fmt.Sprintf("%d for %s", n, v.Type)}
	}
	if raw, ok := v.Content.(Raw); ok && int64(len(raw)) != v.Type.DType.Bytes(n) {
		return &Fault{Rule: ErrValue, Got: fmt.Sprintf("%d bytes", len(raw)), Want: fmt.Sprintf("%d for %s", v.Type.DType.Bytes(n), v.Type)}
	}
	return nil
}

const identifierRule = "a letter or _, then letters, digits, _ and @"

// IsIdentifier reports whether a name is one that programs may use.
func IsIdentifier(name string) bool {
	for i, r := range []byte(name) {
		letter := r|0x20 >= 'a' && r|0x20 <= 'z' || r == '_'
		if !letter && (i == 0 || r != '@' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != ""
}

func quoted(s string) string { return "\"" + s + "\"" }
