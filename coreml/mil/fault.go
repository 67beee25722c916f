package mil

import (
	"errors"
	"strings"
)

// What can be wrong with a program. A [Fault] unwraps to one of these.
var (
	ErrStructure    = errors.New("the program lacks a part")
	ErrName         = errors.New("not an identifier")
	ErrSpecVersion  = errors.New("specification version not supported")
	ErrOpsetTooNew  = errors.New("opset newer than the specification version")
	ErrUnknownOp    = errors.New("unknown op")
	ErrOpTooNew     = errors.New("op newer than the opset")
	ErrOperand      = errors.New("no such operand")
	ErrMissing      = errors.New("required operand missing")
	ErrNotConst     = errors.New("operand must be constant")
	ErrUndefined    = errors.New("undefined name")
	ErrOrder        = errors.New("used before its definition")
	ErrCycle        = errors.New("ops depend on each other in a circle")
	ErrDefinedTwice = errors.New("defined twice")
	ErrType         = errors.New("type mismatch")
	ErrShape        = errors.New("shape mismatch")
	ErrDeclared     = errors.New("declared type differs from the type of the result")
	ErrOutput       = errors.New("output that nothing defines")
	ErrValue        = errors.New("contents do not fit the type")
	ErrDescription  = errors.New("description and program disagree")
)

// Fault is one thing wrong with a program.
type Fault struct {
	Rule     error  // one of the Err variables
	Function string // name
	Op       string // type of the op
	Name     string // of the op: its first output
	Operand  string // parameter, output or attribute
	Got      string
	Want     string
	Fix      string
}

// Where is the place of the fault: main/linear_0 (linear)/weight.
func (f *Fault) Where() string {
	var parts []string
	if f.Function != "" {
		parts = append(parts, f.Function)
	}
	switch {
	case f.Name != "" && f.Op != "":
		parts = append(parts, f.Name+" ("+f.Op+")")
	case f.Op != "" || f.Name != "":
		parts = append(parts, f.Op+f.Name)
	}
	if f.Operand != "" {
		parts = append(parts, f.Operand)
	}
	return strings.Join(parts, "/")
}

// Error says where, what was found, what is allowed, and what to do.
func (f *Fault) Error() string {
	s := f.Rule.Error()
	if w := f.Where(); w != "" {
		s = w + ": " + s
	}
	if f.Got != "" {
		s += ": " + f.Got
	}
	if f.Want != "" {
		s += ", want " + f.Want
	}
	if f.Fix != "" {
		s += "; " + f.Fix
	}
	return s
}

// Unwrap returns the rule that was broken.
func (f *Fault) Unwrap() error { return f.Rule }
