package format

import "strings"

// Error is a fault in bytes or text that came from outside.
type Error struct {
	Path  string // file, or "layout" and the like for text given on a command line
	Field string // tensor, key, or line:column
	Got   string // what was found
	Want  string // what is allowed
	Fix   string // what the user can do about it
	Err   error  // cause, if there is one
}

// Error writes the parts that are set on one line: path: field: got …, want …; fix.
func (e *Error) Error() string {
	var b strings.Builder
	sep := ""
	for _, s := range []string{e.Path, e.Field} {
		if s != "" {
			b.WriteString(sep + s)
			sep = ": "
		}
	}
	if e.Got != "" {
		b.WriteString(sep + e.Got)
		sep = ", "
	}
	if e.Want != "" {
		b.WriteString(sep + "want " + e.Want)
		sep = ", "
	}
	if e.Err != nil {
		if e.Got != "" || e.Want != "" {
			sep = ": "
		}
		b.WriteString(sep + e.Err.Error())
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
