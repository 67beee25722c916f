package interp

import (
	"errors"
	"fmt"
	"strconv"

	"anelab/coreml/mil"
	"anelab/internal/arith"
	"anelab/internal/format"
)

// impl computes one op.
type impl func(c *call)

// family is the implementations of related op types.
type family map[string]impl

// call is one op under way: what it is given, and what it has yielded so far.
type call struct {
	*running
	op      *mil.Op
	results []*value
	err     error
}

// yield adds a result.
func (c *call) yield(a *array) { c.results = append(c.results, result(a)) }

// yieldValue adds a result that may be a constant.
func (c *call) yieldValue(v *value) { c.results = append(c.results, v) }

// declared is the type that the program gives to result i.
func (c *call) declared(i int) mil.Type {
	if i < len(c.op.Outputs) {
		return c.op.Outputs[i].Type
	}
	return mil.Type{}
}

// graph is the arithmetic of the first result.
func (c *call) graph() *arith.Graph { return c.numerics.of(c.declared(0).DType) }

// fail notes the first error.
func (c *call) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// failValue notes an operand whose contents the op cannot use.
func (c *call) failValue(param, got, want string) {
	if c.err == nil {
		c.err = &format.Error{Path: c.path, Field: place(c.function.Name, c.op) + "/" + param, Got: got, Want: want, Err: ErrValue}
	}
}

// place names an op as faults of programs do: main/linear_0 (linear).
func place(function string, op *mil.Op) string {
	return (&mil.Fault{Function: function, Op: op.Type, Name: op.Name()}).Where()
}

// located adds the place to an error that has none.
func (c *call) located(err error) error { return located(c.path, place(c.function.Name, c.op), err) }

func located(path, field string, err error) error {
	var known *format.Error
	if errors.As(err, &known) {
		return err
	}
	e := &format.Error{Path: path, Field: field, Err: err}
	if f := (*mil.Fault)(nil); errors.As(err, &f) {
		e.Got, e.Want, e.Fix, e.Err = f.Got, f.Want, f.Fix, f.Rule
		switch {
		case field == "":
			e.Field = f.Where()
		case f.Operand != "":
			e.Field += "/" + f.Operand
		}
	}
	return e
}

// bindings are what the op is given for a parameter. Until specification version 8, operands of constexpr ops are attributes.
func (c *call) bindings(param string) []mil.Binding {
	if b := c.op.Input(param); b != nil {
		return b
	}
	if c.op.IsConstexpr() {
		if v := c.op.Attribute(param); v != nil {
			return []mil.Binding{mil.Literal(v)}
		}
	}
	return nil
}

// values are what a parameter stands for.
func (c *call) values(param string) []*value {
	var list []*value
	for _, b := range c.bindings(param) {
		v, err := c.bound(b)
		if err != nil {
			c.fail(err)
			continue
		}
		list = append(list, v)
	}
	return list
}

func (c *call) bound(b mil.Binding) (*value, error) {
	if b.Value != nil {
		return constant(b.Value)
	}
	if v := c.find(b.Name); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%w: %s", mil.ErrUndefined, strconv.Quote(b.Name))
}

// value is what a parameter stands for, nil if it is absent.
func (c *call) value(param string) *value {
	for _, b := range c.bindings(param) {
		v, err := c.bound(b)
		c.fail(err)
		return v
	}
	return nil
}

// array is the elements of an operand, nil if it is absent.
func (c *call) array(param string) *array {
	if v := c.value(param); v != nil {
		return c.elements(v)
	}
	return nil
}

// elements decodes a value. After a failure it is a scalar zero, so that the op can go on to its end.
func (c *call) elements(v *value) *array {
	a, err := v.dense()
	if err != nil {
		c.fail(err)
		return newArray(v.dtype)
	}
	return a
}

// arrays are the elements of an operand that takes several.
func (c *call) arrays(param string) []*array {
	var list []*array
	for _, v := range c.values(param) {
		list = append(list, c.elements(v))
	}
	return list
}

// ints are the elements of an integer operand.
func (c *call) ints(param string, absent []int) []int {
	a := c.array(param)
	if a == nil || a.ints == nil {
		return absent
	}
	list := make([]int, 0, a.count())
	for _, x := range a.flatInts() {
		list = append(list, int(x))
	}
	return list
}

// int is a scalar integer operand.
func (c *call) int(param string, absent int) int {
	if list := c.ints(param, nil); len(list) > 0 {
		return list[0]
	}
	return absent
}

// flag is a bool operand.
func (c *call) flag(param string) bool { return c.int(param, 0) != 0 }

// text is a string operand.
func (c *call) text(param, absent string) string {
	if v := c.value(param); v != nil && v.literal != nil {
		if s, ok := v.literal.Text(); ok {
			return s
		}
	}
	return absent
}

// float is a scalar floating operand.
func (c *call) float(param string, absent float64) float64 {
	if x := c.floats(param); len(x) > 0 {
		return float64(x[0])
	}
	return absent
}

// axis is an axis that may count from the end.
func (c *call) axis(param string, absent, rank int) int { return fromEnd(c.int(param, absent), rank) }

// axes is a list of axes; all if it is absent.
func (c *call) axes(param string, rank int) []int {
	list := c.ints(param, nil)
	if c.value(param) == nil {
		for i := range rank {
			list = append(list, i)
		}
	}
	for i, a := range list {
		list[i] = fromEnd(a, rank)
	}
	return list
}

func fromEnd(i, n int) int {
	if i < 0 {
		return i + n
	}
	return i
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "index":
		return strconv.Itoa(n) + " indices"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
