package miltext

import (
	"errors"
	"fmt"
	"strings"

	"anelab/internal/format"
)

// What can be wrong with a text.
var (
	ErrSyntax   = errors.New("not MIL")
	ErrLiteral  = errors.New("a literal that does not fit its type")
	ErrTooDeep  = errors.New("nested too deeply")
	ErrTooLarge = errors.New("the structure is too large for its text")
)

// kind is the kind of a token.
type kind uint8

const (
	end kind = iota
	word
	number
	quotation
	mark // one of ( ) [ ] { } < > = , ; ? or ->
)

func (k kind) String() string {
	return [...]string{"the end", "a name", "a number", "a string", "a sign"}[k]
}

// token is a piece of the text.
type token struct {
	kind kind
	text string // of a string: what is between the quotes, as written
	at   int
}

// lexer cuts a text into tokens. It holds one, the next.
type lexer struct {
	path string
	text string
	at   int
	tok  token
	err  error
	left int64 // memory that parsing may still take
}

// fail notes the first fault, at an offset.
func (l *lexer) fail(at int, cause error, got, want string) {
	if l.err != nil {
		return
	}
	before := l.text[:at]
	line := strings.Count(before, "\n") + 1
	column := at - strings.LastIndexByte(before, '\n')
	l.err = &format.Error{Path: l.path, Field: fmt.Sprintf("%d:%d", line, column), Got: got, Want: want, Err: cause}
	l.tok = token{at: at}
}

// next moves to the next token.
func (l *lexer) next() {
	if l.err != nil {
		return
	}
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
	start := l.at
	if start == len(l.text) {
		l.tok = token{at: start}
		return
	}
	switch c := l.text[start]; {
	case isLetter(c):
		l.take(word, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '@' || c == '.' })
	case isDigit(c), c == '-' && start+1 < len(l.text) && (isDigit(l.text[start+1]) || isLetter(l.text[start+1])):
		l.at++
		l.take(number, l.inNumber)
		l.tok = token{number, l.text[start:l.at], start}
	case c == '"':
		l.quotation()
	case strings.HasPrefix(l.text[start:], "->"):
		l.at += 2
		l.tok = token{mark, "->", start}
	case strings.IndexByte("()[]{}<>=,;?", c) >= 0:
		l.at++
		l.tok = token{mark, l.text[start:l.at], start}
	default:
		l.fail(start, ErrSyntax, fmt.Sprintf("the character %q", c), "")
	}
}

func (l *lexer) take(k kind, more func(byte) bool) {
	start := l.at
	for l.at < len(l.text) && more(l.text[l.at]) {
		l.at++
	}
	l.tok = token{k, l.text[start:l.at], start}
}

// inNumber admits what numbers are made of: a sign only behind an exponent.
func (l *lexer) inNumber(c byte) bool {
	if c == '+' || c == '-' {
		before := l.text[l.at-1] | 0x20
		return before == 'p' || before == 'e'
	}
	return isLetter(c) || isDigit(c) || c == '.'
}

func (l *lexer) quotation() {
	start := l.at
	for i := start + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '\\':
			i++
		case '"':
			l.at = i + 1
			l.tok = token{quotation, l.text[start+1 : i], start}
			return
		}
	}
	l.fail(start, ErrSyntax, "a string without an end", "")
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// is reports whether the next token is a sign.
func (l *lexer) is(sign string) bool { return l.tok.kind == mark && l.tok.text == sign && l.err == nil }

// skip takes a sign if it is next.
func (l *lexer) skip(sign string) bool {
	if !l.is(sign) {
		return false
	}
	l.next()
	return true
}

// want takes a sign that must be next.
func (l *lexer) want(sign string) bool {
	if l.skip(sign) {
		return true
	}
	l.unexpected("\"" + sign + "\"")
	return false
}

// name takes a name, or a certain word.
func (l *lexer) name(certain string) string {
	t := l.tok
	if t.kind != word || certain != "" && t.text != certain {
		if certain == "" {
			certain = "a name"
		}
		l.unexpected(certain)
		return ""
	}
	l.next()
	return t.text
}

func (l *lexer) unexpected(want string) {
	got := l.tok.kind.String()
	if l.tok.text != "" {
		got = "\"" + clip(l.tok.text) + "\""
	}
	l.fail(l.tok.at, ErrSyntax, got, want)
}

// clip shortens what goes into a message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// charge counts memory that is about to be allocated.
func (l *lexer) charge(n int) bool {
	l.left -= int64(n)
	if l.left < 0 {
		l.fail(l.tok.at, ErrTooLarge, "more parts than a text of this size can have", "")
	}
	return l.err == nil
}

// unescape is the contents of a string.
func (l *lexer) unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 || !l.charge(len(s)) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			switch c = s[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
