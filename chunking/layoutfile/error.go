package layoutfile

import (
	"fmt"
	"strings"
	"unicode"

	"anelab/chunking"
	"anelab/internal/format"
)

// Error is a fault in a layout file, with its place. [format.Error] is behind it for errors.As.
type Error struct {
	Line, Column int           // 1-based, in characters
	Rule         chunking.Rule // the rule of the model that is broken; empty when the file itself is at fault
	Fault        format.Error  // Field "line:column"

	lines []string
}

// Error writes path:line:column: what is wrong.
func (e *Error) Error() string {
	f := e.Fault
	f.Path, f.Field = f.Path+":"+f.Field, ""
	return f.Error()
}

// Unwrap returns the fault.
func (e *Error) Unwrap() error { return &e.Fault }

// Excerpt is the line at fault after the one before it, and a caret under the place.
func (e *Error) Excerpt() string {
	const margin = "> %3d | "
	const most = 100 // characters of a line; a caret further right would help nobody
	var b strings.Builder
	if e.Line > 1 && e.Line-2 < len(e.lines) {
		fmt.Fprintf(&b, "  %3d | %s\n", e.Line-1, printable(e.lines[e.Line-2], most))
	}
	if e.Line-1 < len(e.lines) {
		fmt.Fprintf(&b, margin+"%s\n", e.Line, printable(e.lines[e.Line-1], most))
	}
	fmt.Fprintf(&b, "%*s", len(fmt.Sprintf(margin, e.Line))+min(e.Column, most+1), "^")
	return b.String()
}

// printable keeps the number of characters, so that columns still fit.
func printable(line string, most int) string {
	r := []rune(line)
	line = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, string(r[:min(len(r), most)]))
	return strings.TrimRight(line, " ")
}
