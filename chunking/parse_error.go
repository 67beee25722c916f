package chunking

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"anelab/internal/format"
)

// ParseError is a fault in layout text, with its place. [format.Error] is behind it for errors.As.
type ParseError struct {
	Text   string       // the whole layout
	Column int          // 1-based, in characters
	Rule   Rule         // the rule of the model that is broken; empty when the text itself is at fault
	Fault  format.Error // Path "layout", Field "column N"
}

// Error quotes the layout instead of giving the column, which only [ParseError.Excerpt] can show well.
func (e *ParseError) Error() string {
	f := e.Fault
	f.Path, f.Field = fmt.Sprintf("layout %q", clip(e.Text, 60)), ""
	return f.Error()
}

// Unwrap returns the fault.
func (e *ParseError) Unwrap() error { return &e.Fault }

// Excerpt is the text around the fault and, on a second line, a caret under it.
func (e *ParseError) Excerpt() string {
	const indent, width, before = 3, 72, 40
	line, at := []rune(oneLine(e.Text)), e.Column-1
	if len(line) > width {
		from := max(0, min(at-before, len(line)-width))
		line, at = line[from:min(from+width, len(line))], at-from
	}
	return strings.Repeat(" ", indent) + strings.TrimRight(string(line), " ") + "\n" + strings.Repeat(" ", indent+at) + "^"
}

// oneLine keeps the number of characters, so that columns still fit.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// fault places a message at a byte offset of the text.
func (p *parser) fault(at int, f format.Error) *ParseError {
	column := utf8.RuneCountInString(p.text[:at]) + 1
	f.Path, f.Field = "layout", fmt.Sprintf("column %d", column)
	return &ParseError{Text: p.text, Column: column, Fault: f}
}

// violation places a broken rule where the text breaks it.
func (p *parser) violation(v Violation) *ParseError {
	e := p.fault(p.where(v), format.Error{Got: v.Text, Fix: v.Fix})
	e.Rule = v.Rule
	return e
}

func (p *parser) where(v Violation) int {
	if v.Chunk < 0 || v.Chunk >= len(p.places) {
		if at, ok := p.settingAt[settingKey{v.Rule, v.Layer}]; ok {
			return at
		}
		return 0
	}
	at := p.places[v.Chunk]
	switch {
	case v.Rule == RuleHead && p.out.Cuts[v.Chunk].Head:
		return at.head
	case v.Rule == RuleHead:
		return at.end
	case v.Rule == RuleRange && v.Layer > p.out.Cuts[v.Chunk].Lo:
		return at.hi
	}
	return at.begin
}
