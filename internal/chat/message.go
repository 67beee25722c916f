package chat

import (
	"fmt"

	"anelab/internal/format"
)

// Role is who speaks.
type Role string

// Roles. Model is Gemma's own word for the assistant, Developer another word for the system.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	Model     Role = "model"
	Tool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role      Role
	Content   string
	Reasoning string // of the assistant
	ToolCalls []ToolCall
	// Of a tool: which call it answers, by id or by the function's name.
	ToolCallID, Name string
}

// ToolCall is a call that the assistant asked for. Arguments is the text of a JSON object.
type ToolCall struct{ ID, Name, Arguments string }

// isAssistant accepts both words.
func (m *Message) isAssistant() bool { return m.Role == Assistant || m.Role == Model }

func (m *Message) isSystem() bool { return m.Role == System || m.Role == Developer }

// check refuses what has no place in a conversation, by the index of the message.
func check(messages []Message) error {
	if len(messages) == 0 {
		return &format.Error{Field: "messages", Got: "none", Want: "at least one"}
	}
	for i := range messages {
		m := &messages[i]
		fault := func(field, got, want, fix string) error {
			return &format.Error{Field: fmt.Sprintf("messages[%d].%s", i, field), Got: got, Want: want, Fix: fix}
		}
		switch {
		case m.isSystem():
			if i > 0 {
				return fault("role", fmt.Sprintf("%q", m.Role), "it first, or not at all", "Gemma knows one system turn, at the start")
			}
		case m.Role == Tool:
			if !answersCalls(messages[:i]) {
				return fault("role", `"tool"`, "it after an assistant message with tool_calls", "")
			}
		case m.Role != User && !m.isAssistant():
			return fault("role", fmt.Sprintf("%q", m.Role), "system, developer, user, assistant or tool", "")
		}
		if len(m.ToolCalls) > 0 && !m.isAssistant() {
			return fault("tool_calls", fmt.Sprintf("calls of the %s", m.Role), "calls of the assistant", "")
		}
	}
	return nil
}

// answersCalls reports whether a tool may speak after these messages.
func answersCalls(before []Message) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].Role != Tool {
			return len(before[i].ToolCalls) > 0
		}
	}
	return false
}
