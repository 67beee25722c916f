package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"anelab/cmd/simulate/internal/talk"
	"anelab/internal/chat"
)

// chatParams are the parameters of a conversation.
type chatParams struct {
	params
	Messages           []chatMessage   `json:"messages"`
	MaxCompletion      *int            `json:"max_completion_tokens"`
	LogProbs           bool            `json:"logprobs"`
	TopLogProbs        *int            `json:"top_logprobs"`
	ReasoningEffort    string          `json:"reasoning_effort"`
	ChatTemplateKwargs *templateKwargs `json:"chat_template_kwargs"`
	Tools              []any           `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	ParallelToolCalls  json.RawMessage `json:"parallel_tool_calls"`
	ResponseFormat     *responseFormat `json:"response_format"`
	Modalities         []string        `json:"modalities"`
}

type templateKwargs struct {
	EnableThinking bool `json:"enable_thinking"`
}

type responseFormat struct {
	Type string `json:"type"`
}

type chatMessage struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Name             string          `json:"name"`
	Reasoning        *string         `json:"reasoning"`
	ReasoningContent *string         `json:"reasoning_content"`
	ToolCallID       string          `json:"tool_call_id"`
	ToolCalls        []chatToolCall  `json:"tool_calls"`
}

type chatToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// mostTop is OpenAI's limit of alternatives.
const mostTop = 20

// chat reads a conversation.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) (*job, error) {
	p := &chatParams{}
	if err := s.decode(w, r, p, fieldsOf(p)); err != nil {
		return nil, err
	}
	if err := p.refuse(); err != nil {
		return nil, err
	}
	if s.engine.Chat == nil {
		_, err := chat.Detect(s.engine.Tokenizer)
		return nil, err
	}
	messages, err := p.messages()
	if err != nil {
		return nil, err
	}
	j := &job{p: &p.params, id: newID("chatcmpl-"), form: &chatForm{s: s, logProbs: p.LogProbs}}
	j.request = talk.Request{Style: talk.Chat, LogProbs: p.LogProbs}
	if p.TopLogProbs != nil {
		j.request.Alternatives = *p.TopLogProbs
	}
	if j.request.Prompt, err = s.engine.Chat.Prompt(messages, p.thinking()); err != nil {
		return nil, err
	}
	most := p.MaxTokens
	if p.MaxCompletion != nil {
		most = p.MaxCompletion
	}
	return j, s.fill(j, most)
}

// thinking is asked for in one of the two ways that clients have.
func (p *chatParams) thinking() chat.Thinking {
	effort := p.ReasoningEffort != "" && p.ReasoningEffort != "none" && p.ReasoningEffort != "minimal"
	if effort || p.ChatTemplateKwargs != nil && p.ChatTemplateKwargs.EnableThinking {
		return chat.WithThinking
	}
	return chat.NoThinking
}

// refuse names what would change the answer and is not done.
func (p *chatParams) refuse() error {
	switch {
	case len(p.Tools) > 0:
		return bad("tools", "tools are not supported: the model's calls are not parsed")
	case len(p.ToolChoice) > 0 && string(p.ToolChoice) != "null" && string(p.ToolChoice) != `"none"` && string(p.ToolChoice) != `"auto"`:
		return bad("tool_choice", "tool_choice without tools")
	case p.ResponseFormat != nil && p.ResponseFormat.Type != "text":
		return bad("response_format", fmt.Sprintf("response_format %q is not supported, want \"text\"", p.ResponseFormat.Type))
	case len(p.Modalities) > 1 || len(p.Modalities) == 1 && p.Modalities[0] != "text":
		return bad("modalities", "only text is supported")
	case p.TopLogProbs != nil && !p.LogProbs:
		return bad("top_logprobs", "top_logprobs without logprobs")
	case p.TopLogProbs != nil && (*p.TopLogProbs < 0 || *p.TopLogProbs > mostTop):
		return bad("top_logprobs", fmt.Sprintf("top_logprobs is %d, want 0 to %d", *p.TopLogProbs, mostTop))
	}
	return nil
}

// messages are the conversation in the words of package chat.
func (p *chatParams) messages() ([]chat.Message, error) {
	var all []chat.Message
	for i := range p.Messages {
		m := &p.Messages[i]
		content, err := textOf(m.Content)
		if err != nil {
			return nil, bad("messages", fmt.Sprintf("messages[%d].content: %v", i, err))
		}
		out := chat.Message{Role: chat.Role(m.Role), Content: content, Name: m.Name, ToolCallID: m.ToolCallID}
		for _, r := range []*string{m.Reasoning, m.ReasoningContent} {
			if r != nil && out.Reasoning == "" {
				out.Reasoning = *r
			}
		}
		for _, c := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, chat.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		all = append(all, out)
	}
	return all, nil
}

// textOf reads content: a text, a list of parts that are text, or nothing.
func textOf(content json.RawMessage) (string, error) {
	if len(content) == 0 || string(content) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", fmt.Errorf("want a text, or a list of parts")
	}
	var b strings.Builder
	for i, part := range parts {
		if part.Type != "text" {
			return "", fmt.Errorf("part %d is of type %q, want \"text\": the model here only reads", i, part.Type)
		}
		b.WriteString(part.Text)
	}
	return b.String(), nil
}

// chatForm writes an answer of a conversation.
type chatForm struct {
	s        *Server
	logProbs bool
	part     chat.Part
	probs    []any
}

func (f *chatForm) object(how streaming) string {
	if how == inEvents {
		return "chat.completion.chunk"
	}
	return "chat.completion"
}

func (f *chatForm) choice(delta map[string]any, finish any) map[string]any {
	return map[string]any{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": nil}
}

func (f *chatForm) opening() any {
	return f.choice(map[string]any{"role": "assistant", "content": ""}, nil)
}

func (f *chatForm) add(t talk.Token) any {
	f.part.Content += t.Part.Content
	f.part.Reasoning += t.Part.Reasoning
	var probs any
	if f.logProbs && t.ID >= 0 {
		entry := f.s.logProb(t)
		f.probs, probs = append(f.probs, entry), map[string]any{"content": []any{entry}, "refusal": nil}
	}
	delta := map[string]any{}
	if t.Part.Content != "" {
		delta["content"] = t.Part.Content
	}
	if t.Part.Reasoning != "" {
		delta["reasoning_content"] = t.Part.Reasoning
	}
	if len(delta) == 0 && probs == nil {
		return nil
	}
	c := f.choice(delta, nil)
	c["logprobs"] = probs
	return c
}

func (f *chatForm) closing(finish talk.Finish) any { return f.choice(map[string]any{}, finish) }

func (f *chatForm) whole(finish talk.Finish) any {
	message := map[string]any{"role": "assistant", "content": f.part.Content, "refusal": nil}
	if f.part.Reasoning != "" {
		message["reasoning_content"] = f.part.Reasoning
	}
	var probs any
	if f.logProbs {
		probs = map[string]any{"content": append([]any{}, f.probs...), "refusal": nil}
	}
	return map[string]any{"index": 0, "message": message, "finish_reason": finish, "logprobs": probs}
}

// logProb is a token with its probability, and others beside it.
func (s *Server) logProb(t talk.Token) map[string]any {
	entry := s.piece(t.ID, t.LogProb)
	top := []any{}
	for _, a := range t.Top {
		top = append(top, s.piece(a.ID, a.LogProb))
	}
	entry["top_logprobs"] = top
	return entry
}

// piece names a token by its text; the bytes tell more where that is no text.
func (s *Server) piece(id int, p float64) map[string]any {
	raw := []byte(s.engine.Tokenizer.Bytes(id))
	ints := make([]int, len(raw))
	for i, b := range raw {
		ints[i] = int(b)
	}
	text := string(raw)
	if !utf8.ValidString(text) {
		text = s.engine.Tokenizer.Piece(id)
	}
	return map[string]any{"token": text, "logprob": p, "bytes": ints}
}
