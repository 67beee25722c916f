package mil

import (
	"errors"
	"fmt"
	"strings"

	"anelab/internal/format"
)

// Scope says what the names that an op refers to stand for.
type Scope interface {
	// TypeOf is the type of a name in scope.
	TypeOf(name string) (Type, bool)
	// Constant is the value of a name that is known before the program runs, or nil.
	Constant(name string) *Value
	// Fixed reports whether a name stands for something known before the program runs: a const, or the result of a constexpr op.
	Fixed(name string) bool
}

// inferFunc yields the types of an op's outputs. nil means that they cannot be inferred and the declared ones stand; faults go to
// call.fail.
type inferFunc func(c *call) []Type

// call is one op whose outputs are being inferred.
type call struct {
	op    *Op
	scope Scope
	fault *Fault
}

// Infer yields the types of the outputs of op. A type of unknown rank, or a nil slice, means that the declared type stands. The
// error is a *[Fault].
func Infer(op *Op, opset Opset, scope Scope) ([]Type, error) {
	if op.Opset != NoOpset {
		opset = op.Opset
	}
	sig, err := Lookup(op.Type, opset)
	if err != nil {
		return nil, lookupFault(op, opset, err)
	}
	c := &call{op: op, scope: scope}
	if c.bind(sig, opset); c.fault == nil && sig.infer != nil {
		types := sig.infer(c)
		if c.fault == nil {
			return types, nil
		}
	}
	if c.fault != nil {
		return nil, c.fault
	}
	return nil, nil
}

func lookupFault(op *Op, opset Opset, err error) *Fault {
	f := &Fault{Rule: ErrUnknownOp, Op: op.Type, Name: op.Name()}
	if errors.Is(err, ErrOpTooNew) {
		f.Rule, f.Got = ErrOpTooNew, op.Type+" in a function of opset "+opset.String()
		f.Want = "opset " + signatures[op.Type][0].Since.String() + " or newer"
		return f
	}
	if near := format.Closest(op.Type, OpTypes()); near != "" {
		f.Fix = "did you mean " + near + "?"
	}
	return f
}

// fail notes the first fault.
func (c *call) fail(rule error, operand, got, want string) {
	if c.fault == nil {
		c.fault = &Fault{Rule: rule, Op: c.op.Type, Name: c.op.Name(), Operand: operand, Got: got, Want: want}
	}
}

// wrongShape notes a shape that does not go with the others.
func (c *call) wrongShape(operand, want string, args ...any) {
	c.fail(ErrShape, operand, c.typeOf(operand).String(), fmt.Sprintf(want, args...))
}

// bind holds the arguments against the signature.
func (c *call) bind(sig *Signature, opset Opset) {
	groups := map[byte]*Param{}
	for i := range sig.Params {
		p := &sig.Params[i]
		bindings := c.bindings(p.Name)
		if len(bindings) == 0 {
			if !p.Optional && p.Since <= opset {
				c.fail(ErrMissing, p.Name, "", "")
			}
			continue
		}
		if p.Since > opset {
			c.fail(ErrOpTooNew, p.Name, "operand "+p.Name+" in opset "+opset.String(), "opset "+p.Since.String()+" or newer")
		}
		if p.Arity == One && len(bindings) != 1 {
			c.fail(ErrOperand, p.Name, fmt.Sprintf("%d values", len(bindings)), "one")
		}
		for _, b := range bindings {
			c.bindOne(p, b, groups)
		}
	}
	for _, arg := range c.op.Inputs {
		if sig.Param(arg.Name) == nil {
			c.fail(ErrOperand, arg.Name, "", "")
			if near := format.Closest(arg.Name, paramNames(sig)); near != "" && c.fault.Fix == "" {
				c.fault.Fix = "did you mean " + near + "?"
			}
		}
	}
}

func paramNames(sig *Signature) []string {
	var names []string
	for _, p := range sig.Params {
		names = append(names, p.Name)
	}
	return names
}

func (c *call) bindOne(p *Param, b Binding, groups map[byte]*Param) {
	t, ok := c.typeOfBinding(b)
	if !ok {
		c.fail(ErrUndefined, p.Name, b.Name, "the name of an earlier result")
		return
	}
	if p.Kind != 0 && t.Kind != p.Kind {
		c.fail(ErrType, p.Name, t.String(), "a "+p.Kind.String())
		return
	}
	if p.Kind != Tensor {
		return
	}
	if !p.Types.Has(t.DType) {
		c.fail(ErrType, p.Name, t.String(), p.Types.String())
	}
	if bool(p.Const) && b.Value == nil && !c.scope.Fixed(b.Name) {
		c.fail(ErrNotConst, p.Name, "the result "+b.Name, "a const or a value in place")
	}
	if p.Group == 0 {
		return
	}
	first := groups[p.Group]
	if first == nil {
		groups[p.Group] = p
		return
	}
	if want := c.typeOf(first.Name).DType; want != t.DType {
		c.fail(ErrType, p.Name, t.String(), want.String()+", as "+first.Name+" has")
	}
}

// bindings are what an op is given for a parameter. Until specification version 8, operands of constexpr ops are attributes.
func (c *call) bindings(param string) []Binding {
	if b := c.op.Input(param); b != nil {
		return b
	}
	if c.op.IsConstexpr() || c.op.Type == "const" {
		if v := c.op.Attribute(param); v != nil {
			return []Binding{{Value: v}}
		}
	}
	return nil
}

func (c *call) has(param string) bool { return len(c.bindings(param)) > 0 }

func (c *call) typeOfBinding(b Binding) (Type, bool) {
	if b.Value != nil {
		return b.Value.Type, true
	}
	return c.scope.TypeOf(b.Name)
}

// typeOf is the type of a parameter's first binding, the zero Type if it is absent.
func (c *call) typeOf(param string) Type {
	for _, b := range c.bindings(param) {
		t, _ := c.typeOfBinding(b)
		return t
	}
	return Type{}
}

// shape is the shape of an operand; ok is false if its rank is not known or it is absent.
func (c *call) shape(param string) (shape []int64, ok bool) {
	t := c.typeOf(param)
	return t.Shape, t.Kind != 0 && t.Ranked()
}

// rank is the rank of an operand; it fails the call if that is outside [lo, hi], and returns false then or if it is not known.
func (c *call) rank(param string, lo, hi int) (int, bool) {
	shape, ok := c.shape(param)
	if !ok {
		return 0, false
	}
	if n := len(shape); n < lo || n > hi {
		want := fmt.Sprintf("rank %d", lo)
		if hi > lo {
			want = fmt.Sprintf("rank %d to %d", lo, hi)
		}
		c.wrongShape(param, "%s", want)
		return 0, false
	}
	return len(shape), true
}

// value is an operand that is known before the program runs, or nil.
func (c *call) value(param string) *Value {
	bound := c.bindings(param)
	switch {
	case len(bound) == 0:
		return nil
	case bound[0].Value != nil:
		return bound[0].Value
	}
	return c.scope.Constant(bound[0].Name)
}

// ints are the elements of an integer operand; ok is false if it is absent or not known.
func (c *call) ints(param string) (elements []int64, ok bool) {
	if v := c.value(param); v != nil {
		return v.Ints()
	}
	return nil, false
}

// int is an integer operand, or its default; ok is false if it is there but not known.
func (c *call) int(param string, absent int64) (n int64, ok bool) {
	if !c.has(param) {
		return absent, true
	}
	if v := c.value(param); v != nil {
		return v.Int()
	}
	return 0, false
}

// flag is a bool operand, or its default.
func (c *call) flag(param string, absent bool) bool {
	n, ok := c.int(param, 0)
	if !ok || !c.has(param) {
		return absent
	}
	return n != 0
}

// text is a string operand, or its default.
func (c *call) text(param, absent string) string {
	if v := c.value(param); v != nil {
		if s, ok := v.Text(); ok {
			return s
		}
	}
	return absent
}

// choice is a string operand that must be one of a few.
func (c *call) choice(param, absent string, allowed ...string) string {
	s := c.text(param, absent)
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	c.fail(ErrValue, param, "\""+s+"\"", strings.Join(allowed, ", "))
	return s
}

// axis resolves an axis that may count from the end; ok is false if it is not known, or wrong, in which case the call has failed.
func (c *call) axis(param string, absent int64, rank int) (axis int, ok bool) {
	n, ok := c.int(param, absent)
	if !ok {
		return 0, false
	}
	return c.resolve(param, n, rank)
}

func (c *call) resolve(param string, n int64, rank int) (axis int, ok bool) {
	if n < -int64(rank) || n >= int64(rank) {
		c.fail(ErrShape, param, fmt.Sprintf("axis %d", n), fmt.Sprintf("an axis of %d dimensions", rank))
		return 0, false
	}
	if n < 0 {
		n += int64(rank)
	}
	return int(n), true
}

// axes resolves a list of axes.
func (c *call) axes(param string, list []int64, rank int) (axes []int, ok bool) {
	for _, n := range list {
		a, ok := c.resolve(param, n, rank)
		if !ok {
			return nil, false
		}
		axes = append(axes, a)
	}
	return axes, true
}

// unranked is a tensor of which only the element type is known.
func unranked(d DType) Type { return TensorOf(d, Variadic) }

// open is a tensor of known rank and unknown sizes.
func open(d DType, rank int) Type {
	shape := make([]int64, rank)
	for i := range shape {
		shape[i] = Unknown
	}
	return TensorOf(d, shape...)
}
