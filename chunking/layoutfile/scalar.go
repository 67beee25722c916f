package layoutfile

import (
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"anelab/internal/format"
)

// into reads a scalar with the parser of its text form.
func into[T any](parse func(string) (T, error), dst *T) func(ast.Node) error {
	return func(n ast.Node) error {
		s, err := text(n)
		if err != nil {
			return err
		}
		v, err := parse(s)
		if _, known := err.(*format.Error); err != nil && !known {
			err = &format.Error{Got: strconv.Quote(s), Want: "true or false"}
		}
		*dst = v
		return err
	}
}

// text is what a scalar says, as it was written: 4 and "4" are the same, and 0x10 is not a number that layouts know.
func text(n ast.Node) (string, error) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return n.GetToken().Value, nil
	}
	return "", &format.Error{Got: kindOf(n), Want: "one value"}
}

// number reads plain decimal digits that fit every use of them.
func number(n ast.Node) (int, error) {
	s, err := text(n)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil || s != strconv.FormatInt(v, 10) {
		return 0, &format.Error{Got: strconv.Quote(s), Want: "a whole number"}
	}
	return int(v), nil
}

// kindOf names a node in a message.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "fields"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return strconv.Quote(n.GetToken().Value)
	}
	return "a YAML feature that layouts do not use (" + n.Type().String() + ")"
}
