package layoutfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"anelab/chunking"
	"anelab/internal/format"
)

// What the YAML parser is asked to look at: its time grows with the square of the nesting.
const (
	maxBytes   = 1 << 16
	maxNesting = 32
)

// Read reads a layout in YAML or JSON for a model. path is used in errors only. As with [chunking.Parse] the result can be
// planned; what cannot is refused with an [Error].
func Read(path string, data []byte, m *chunking.Model) (chunking.Layout, error) {
	r := &reader{path: path, lines: strings.Split(string(data), "\n"), model: m, settings: map[setting]ast.Node{}}
	if err := r.checkSize(data); err != nil {
		return chunking.Layout{}, err
	}
	root, err := r.parse(data)
	if err != nil {
		return chunking.Layout{}, err
	}
	if err := r.document(root); err != nil {
		return chunking.Layout{}, err
	}
	if v := r.out.Violations(m); len(v) > 0 {
		return chunking.Layout{}, r.violation(root, v[0])
	}
	return r.out, nil
}

// reader turns nodes into a layout and remembers where everything was said.
type reader struct {
	path  string
	lines []string
	model *chunking.Model
	out   chunking.Layout

	cuts     []ast.Node           // of each chunk
	settings map[setting]ast.Node // what a violation without a chunk is about
}

// setting finds the node of a setting.
type setting struct {
	rule  chunking.Rule
	layer int // of an attention policy; else −1
}

func (r *reader) checkSize(data []byte) error {
	if len(data) > maxBytes {
		return r.faultAt(1, 1, format.Error{Got: fmt.Sprintf("%d bytes", len(data)), Want: fmt.Sprintf("at most %d", maxBytes), Fix: "is this a layout?"})
	}
	depth := 0
	for i, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxNesting {
			line := bytes.Count(data[:i], []byte("\n")) + 1
			return r.faultAt(line, i-bytes.LastIndexByte(data[:i], '\n'), format.Error{Got: "brackets nested too deep", Fix: "is this a layout?"})
		}
	}
	return nil
}

// parse returns the single document of the file. The parser is not ours: should it panic on what it is given, that is a
// fault of the file too.
func (r *reader) parse(data []byte) (root ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, r.faultAt(1, 1, format.Error{Got: "no YAML", Err: fmt.Errorf("parser: %v", p)})
		}
	}()
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" ")) // JSON may be indented with tabs, YAML may not
	}
	file, err := parser.ParseBytes(data, 0)
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax):
		return nil, r.faultAtToken(syntax.GetToken(), format.Error{Got: syntax.GetMessage()})
	case err != nil:
		return nil, r.faultAt(1, 1, format.Error{Err: err})
	case len(file.Docs) > 1 && file.Docs[1].Body != nil:
		return nil, r.fault(file.Docs[1].Body, format.Error{Got: "a second document", Want: "one layout per file"})
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, r.faultAt(1, 1, format.Error{Got: "nothing", Want: "fields of a layout, such as chunks or preset"})
	}
	return file.Docs[0].Body, nil
}

// violation places a broken rule where the file breaks it.
func (r *reader) violation(root ast.Node, v chunking.Violation) error {
	n := root
	if v.Chunk >= 0 && v.Chunk < len(r.cuts) {
		n = r.cuts[v.Chunk]
	} else if s, ok := r.settings[setting{v.Rule, v.Layer}]; ok {
		n = s
	}
	return r.broken(n, v)
}

// broken is a fault that has the name of a rule.
func (r *reader) broken(n ast.Node, v chunking.Violation) error {
	e := r.fault(n, format.Error{Got: v.Text, Fix: v.Fix})
	e.Rule = v.Rule
	return e
}

func (r *reader) fault(n ast.Node, f format.Error) *Error { return r.faultAtToken(start(n), f) }

// start is the first token of a node: a mapping's own token is its first colon.
func start(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return start(n.Values[0])
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

func (r *reader) faultAtToken(t *token.Token, f format.Error) *Error {
	if t == nil || t.Position == nil {
		return r.faultAt(1, 1, f)
	}
	return r.faultAt(t.Position.Line, t.Position.Column, f)
}

func (r *reader) faultAt(line, column int, f format.Error) *Error {
	f.Path, f.Field = r.path, fmt.Sprintf("%d:%d", line, column)
	return &Error{Line: line, Column: column, Fault: f, lines: r.lines}
}
