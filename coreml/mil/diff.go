package mil

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Equal reports whether two values are of the same type and hold the same. Blobs are the same if they are in the same place.
func (v *Value) Equal(o *Value) bool {
	if v == nil || o == nil {
		return v == o
	}
	return v.Type.Equal(o.Type) && sameContent(v.Content, o.Content)
}

func sameContent(a, b Content) bool {
	switch a := a.(type) {
	case Raw:
		b, ok := b.(Raw)
		return ok && a == b
	case Strings:
		b, ok := b.(Strings)
		return ok && slices.Equal(a, b)
	case Items:
		b, ok := b.(Items)
		return ok && slices.EqualFunc(a, b, (*Value).Equal)
	case Pairs:
		b, ok := b.(Pairs)
		return ok && slices.EqualFunc(a, b, func(x, y Pair) bool { return x.Key.Equal(y.Key) && x.Value.Equal(y.Value) })
	case *Blob:
		b, ok := b.(*Blob)
		return ok && a.File == b.File && a.Offset == b.Offset
	case Data:
		b, ok := b.(Data)
		return ok && sameBytes(a, b)
	}
	return a == nil && b == nil
}

func sameBytes(a, b Data) bool {
	x, errX := a.Bytes()
	y, errY := b.Bytes()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Diff describes the first difference in what two programs execute, "" if there is none: functions, inputs (in any order), opsets, ops
// in order, names, types, values, places of blobs. What programs say about how they were built is not compared.
func Diff(a, b *Program) string {
	if x, y := functionNames(a), functionNames(b); !slices.Equal(x, y) {
		return fmt.Sprintf("functions %s and %s", strings.Join(x, ", "), strings.Join(y, ", "))
	}
	for _, f := range a.Functions {
		if d := diffFunctions(f, b.Function(f.Name)); d != "" {
			return f.Name + ": " + d
		}
	}
	return ""
}

func functionNames(p *Program) []string {
	var names []string
	for _, f := range p.Functions {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

func diffFunctions(a, b *Function) string {
	if a.Opset != b.Opset {
		return fmt.Sprintf("opset %s and %s", a.Opset, b.Opset)
	}
	if d := diffVariables("inputs", inputVariables(a), inputVariables(b)); d != "" {
		return d
	}
	return diffBlocks(a.Body, b.Body)
}

func inputVariables(f *Function) []Variable {
	var list []Variable
	for _, in := range f.Inputs {
		list = append(list, in.Variable)
	}
	slices.SortFunc(list, func(x, y Variable) int { return strings.Compare(x.Name, y.Name) })
	return list
}

func diffVariables(what string, a, b []Variable) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d %s", len(a), len(b), what)
	}
	for i := range a {
		if a[i].Name != b[i].Name || !a[i].Type.Equal(b[i].Type) {
			return fmt.Sprintf("%s: %s %s and %s %s", what, a[i].Type, a[i].Name, b[i].Type, b[i].Name)
		}
	}
	return ""
}

func diffBlocks(a, b *Block) string {
	if d := diffVariables("block inputs", a.Inputs, b.Inputs); d != "" {
		return d
	}
	for i := range min(len(a.Ops), len(b.Ops)) {
		if d := diffOps(a.Ops[i], b.Ops[i]); d != "" {
			return fmt.Sprintf("op %d, %s: %s", i, a.Ops[i].Name(), d)
		}
	}
	switch {
	case len(a.Ops) != len(b.Ops):
		return fmt.Sprintf("%d and %d ops", len(a.Ops), len(b.Ops))
	case !slices.Equal(a.Outputs, b.Outputs):
		return fmt.Sprintf("outputs %s and %s", strings.Join(a.Outputs, ", "), strings.Join(b.Outputs, ", "))
	}
	return ""
}

func diffOps(a, b *Op) string {
	if a.Type != b.Type {
		return fmt.Sprintf("%s and %s", a.Type, b.Type)
	}
	if d := diffVariables("outputs", a.Outputs, b.Outputs); d != "" {
		return d
	}
	if d := diffOperands(a, b); d != "" {
		return d
	}
	if len(a.Blocks) != len(b.Blocks) {
		return fmt.Sprintf("%d and %d blocks", len(a.Blocks), len(b.Blocks))
	}
	for i := range a.Blocks {
		if d := diffBlocks(a.Blocks[i], b.Blocks[i]); d != "" {
			return fmt.Sprintf("block %d: %s", i, d)
		}
	}
	return ""
}

func diffOperands(a, b *Op) string {
	if len(a.Inputs) != len(b.Inputs) || len(a.Attributes) != len(b.Attributes) {
		return fmt.Sprintf("%d and %d operands, %d and %d attributes", len(a.Inputs), len(b.Inputs), len(a.Attributes), len(b.Attributes))
	}
	same := func(x, y Binding) bool { return x.Name == y.Name && x.Value.Equal(y.Value) }
	for i, x := range a.Inputs {
		if y := b.Inputs[i]; x.Name != y.Name || !slices.EqualFunc(x.Bindings, y.Bindings, same) {
			return fmt.Sprintf("operands %s and %s", x.Name, y.Name)
		}
	}
	for i, x := range a.Attributes {
		if y := b.Attributes[i]; x.Name != y.Name || !x.Value.Equal(y.Value) {
			return fmt.Sprintf("attributes %s and %s", x.Name, y.Name)
		}
	}
	return ""
}
