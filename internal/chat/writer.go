package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"anelab/internal/format"
)

// writer collects markers as ids and text as text. Text is encoded where a marker ends it, in one piece: encoding it in parts could give
// other ids.
type writer struct {
	f       *Format
	ids     []int
	pending strings.Builder
	inTurn  bool
	err     error
}

// open begins a turn, unless the model's own is open and goes on.
func (w *writer) open(role string) {
	if w.inTurn && role == "model" {
		return
	}
	if w.inTurn {
		w.close()
	}
	w.marker(turnOpen)
	w.text(role + "\n")
	w.inTurn = true
}

func (w *writer) close() {
	w.marker(turnClose)
	w.text("\n")
	w.inTurn = false
}

func (w *writer) text(s string) { w.pending.WriteString(s) }

func (w *writer) marker(m string) {
	w.flush()
	w.ids = append(w.ids, w.f.mark[m])
}

// require fails where the vocabulary has not got a marker.
func (w *writer) require(marker, what string) {
	if _, ok := w.f.mark[marker]; !ok && w.err == nil {
		w.err = w.f.missing(marker, what)
	}
}

func (w *writer) flush() {
	if w.pending.Len() == 0 || w.err != nil {
		return
	}
	ids, err := w.f.t.Encode(w.pending.String())
	w.pending.Reset()
	w.ids, w.err = append(w.ids, ids...), err
}

// finish puts the model's first id in front.
func (w *writer) finish() ([]int, error) {
	w.flush()
	if w.err != nil {
		return nil, w.err
	}
	return w.f.t.Prompt(w.ids), nil
}

// call writes <|tool_call>call:name{key:value,…}<tool_call|>.
func (w *writer) call(c *ToolCall, field string) {
	w.require(callOpen, "tool calls")
	w.require(quote, "tool calls")
	arguments, err := object(c.Arguments)
	if err != nil && w.err == nil {
		w.err = &format.Error{Field: field + ".arguments", Err: err, Want: "a JSON object"}
	}
	w.marker(callOpen)
	w.text("call:" + c.Name + "{")
	for i, k := range sortedKeys(arguments) {
		if i > 0 {
			w.text(",")
		}
		w.text(k + ":")
		w.value(arguments[k])
	}
	w.text("}")
	w.marker(callClose)
}

// response writes what a tool returned.
func (w *writer) response(m *Message, calls []ToolCall) {
	w.require(responseOpen, "tool responses")
	name := m.Name
	if i := slices.IndexFunc(calls, func(c ToolCall) bool { return c.ID != "" && c.ID == m.ToolCallID }); i >= 0 {
		name = calls[i].Name
	}
	if name == "" {
		name = "unknown"
	}
	w.marker(responseOpen)
	w.text("response:" + name + "{value:")
	w.value(m.Content)
	w.text("}")
	w.marker(responseClose)
}

// deepest is how far arguments may be nested.
const deepest = 64

// object parses the text of a JSON object. Numbers stay as they are written.
func object(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if depth(text) > deepest {
		return nil, fmt.Errorf("nested deeper than %d", deepest)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("text behind the object")
	}
	return v, nil
}

// depth bounds the nesting from above: brackets inside strings count, too.
func depth(text string) int {
	most, now := 0, 0
	for _, c := range text {
		switch c {
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		}
	}
	return most
}

// value writes an argument: strings between quote markers, keys bare, in the order of their lower-case forms.
func (w *writer) value(v any) {
	switch v := v.(type) {
	case string:
		w.marker(quote)
		w.text(v)
		w.marker(quote)
	case map[string]any:
		w.text("{")
		for i, k := range sortedKeys(v) {
			if i > 0 {
				w.text(",")
			}
			w.text(k + ":")
			w.value(v[k])
		}
		w.text("}")
	case []any:
		w.text("[")
		for i, x := range v {
			if i > 0 {
				w.text(",")
			}
			w.value(x)
		}
		w.text("]")
	case nil:
		w.text("None") // as the template prints it
	default:
		w.text(fmt.Sprint(v))
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if c := strings.Compare(strings.ToLower(a), strings.ToLower(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return keys
}
