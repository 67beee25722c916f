package chat

import (
	"fmt"
	"slices"
	"strings"

	"anelab/internal/format"
	"anelab/internal/tokenizer"
)

// Format is how one model writes conversations. Safe for concurrent use.
type Format struct {
	Name string // "gemma4", and where it comes from

	t    *tokenizer.Tokenizer
	mark map[string]int // id by marker
	// What the releases differ in.
	emptyThought bool // without thinking, the answer begins behind a thought that is empty
	thinkBreak   bool // a line break behind <|think|>
}

// Markers of Gemma 4.
const (
	turnOpen, turnClose         = "<|turn>", "<turn|>"
	channelOpen, channelClose   = "<|channel>", "<channel|>"
	callOpen, callClose         = "<|tool_call>", "<tool_call|>"
	responseOpen, responseClose = "<|tool_response>", "<tool_response|>"
	quote                       = `<|"|>`
	think                       = "<|think|>"
)

// needed are the markers without which there is no conversation; others are needed by who uses them.
var needed = []string{turnOpen, turnClose}

// optional are the others.
var optional = []string{channelOpen, channelClose, callOpen, callClose, responseOpen, responseClose, quote, think}

// Detect finds the format of a vocabulary and its template. A family is known by the markers that it really writes, each a single id, not by
// a token that several families share. A vocabulary without a template gets the built-in format of Gemma 4 E2B, and its name says so.
func Detect(t *tokenizer.Tokenizer) (*Format, error) {
	f := &Format{Name: "gemma4 (built in)", t: t, mark: map[string]int{}}
	for _, m := range needed {
		id, ok := t.Marker(m)
		if !ok {
			return nil, &format.Error{Path: t.Path(), Field: "vocabulary", Got: "no marker " + m, Want: "Gemma 4's markers",
				Fix: "the model has no conversation format known here: use raw text"}
		}
		f.mark[m] = id
	}
	for _, m := range optional {
		if id, ok := t.Marker(m); ok {
			f.mark[m] = id
		}
	}
	if template := t.ChatTemplate(); template != "" {
		if !strings.Contains(template, turnOpen) {
			return nil, &format.Error{Path: t.Path(), Field: "chat template", Got: "one that does not write " + turnOpen, Want: "Gemma 4's",
				Fix: "template and vocabulary are of different models: use raw text, or remove the template"}
		}
		f.Name = "gemma4 (the model's template)"
		f.emptyThought = strings.Contains(template, channelOpen+`thought\n`+channelClose)
		f.thinkBreak = strings.Contains(template, think+`\n`)
	}
	return f, nil
}

// Stops are the ids that end an answer.
func (f *Format) Stops() []int {
	stops := append([]int{f.mark[turnClose]}, f.t.Settings().EOS...)
	slices.Sort(stops)
	return slices.Compact(stops)
}

// Thinking says whether the model is asked to think before it answers.
type Thinking uint8

// Without and with thoughts.
const (
	NoThinking Thinking = iota
	WithThinking
)

// Prompt returns the ids of a conversation up to where the model's answer begins: always inside an open model turn.
func (f *Format) Prompt(messages []Message, thinking Thinking) ([]int, error) {
	if err := check(messages); err != nil {
		return nil, err
	}
	w := &writer{f: f}
	if thinking == WithThinking {
		w.require(think, "thinking")
	}
	if messages[0].isSystem() || thinking == WithThinking {
		w.system(messages, thinking)
	}
	lastUser := -1
	for i := range messages {
		if messages[i].Role == User {
			lastUser = i
		}
	}
	for i := 0; i < len(messages) && w.err == nil; i++ {
		switch m := &messages[i]; {
		case m.Role == User:
			w.open("user")
			w.text(strings.TrimSpace(m.Content))
			w.close()
		case m.isAssistant():
			i += w.assistant(messages[i:], i > lastUser)
		}
	}
	w.open("model")
	if f.emptyThought && thinking == NoThinking {
		w.require(channelOpen, "the template's empty thought")
		w.marker(channelOpen)
		w.text(thought + "\n")
		w.marker(channelClose)
	}
	return w.finish()
}

// Render is [Format.Prompt] as text, for people.
func (f *Format) Render(messages []Message, thinking Thinking) (string, error) {
	ids, err := f.Prompt(messages, thinking)
	if err != nil {
		return "", err
	}
	return f.t.Decode(ids, tokenizer.ShowSpecials), nil
}

// missing says that a marker is needed and absent.
func (f *Format) missing(marker, for_ string) error {
	return &format.Error{Path: f.t.Path(), Field: "vocabulary", Got: "no marker " + marker, Want: "it, for " + for_}
}

// system writes the first turn.
func (w *writer) system(messages []Message, thinking Thinking) {
	w.open("system")
	if thinking == WithThinking {
		w.marker(think)
		if w.f.thinkBreak {
			w.text("\n")
		}
	}
	if messages[0].isSystem() {
		w.text(strings.TrimSpace(messages[0].Content))
	}
	w.close()
}

// assistant writes a message of the model with the tools' answers behind it, and returns how many of those there are. Text
// that stands between the calls of a turn and their answers is written behind both, as the model was trained.
func (w *writer) assistant(messages []Message, current bool) (answers int) {
	m := &messages[0]
	w.open("model")
	if current && m.Reasoning != "" && len(m.ToolCalls) > 0 {
		w.require(channelOpen, "reasoning")
		w.marker(channelOpen)
		w.text(thought + "\n" + m.Reasoning + "\n")
		w.marker(channelClose)
	}
	for i := range m.ToolCalls {
		w.call(&m.ToolCalls[i], fmt.Sprintf("tool_calls[%d]", i))
	}
	for answers+1 < len(messages) && messages[answers+1].Role == Tool {
		answers++
		w.response(&messages[answers], m.ToolCalls)
	}
	content := withoutThoughts(m.Content)
	w.text(content)
	if answers == 0 || content != "" {
		w.close()
	}
	return answers
}

// withoutThoughts cuts thoughts out of an earlier answer.
func withoutThoughts(text string) string {
	var b strings.Builder
	for _, part := range strings.Split(text, channelClose) {
		before, _, _ := strings.Cut(part, channelOpen)
		b.WriteString(before)
	}
	return strings.TrimSpace(b.String())
}
