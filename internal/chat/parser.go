package chat

import (
	"strings"

	"anelab/internal/tokenizer"
)

// Part is a piece of an answer: thoughts, or what is meant to be read.
type Part struct{ Reasoning, Content string }

// Empty reports whether there is nothing in it.
func (p Part) Empty() bool { return p == Part{} }

// Parser takes an answer apart while it comes. Not safe for concurrent use.
type Parser struct {
	stream      *tokenizer.Stream
	open, close int    // ids of the channel's markers; −1 = none
	thinking    bool   // inside a channel
	head        string // the channel's name, as far as it has come; it ends with the line
	named       bool   // the name is behind us
	lineOpen    bool   // but the line break that ends its line may still come
	breaks      string // line breaks held back: those before the closing marker are not part of the thought
}

// Parser begins an answer. Whether it begins inside a thought is said by the prompt: a template may open the channel and leave it to
// the model to close it.
func (f *Format) Parser(prompt []int) *Parser {
	p := &Parser{stream: f.t.Stream(tokenizer.HideSpecials), open: -1, close: -1}
	if id, ok := f.mark[channelOpen]; ok {
		p.open = id
	}
	if id, ok := f.mark[channelClose]; ok {
		p.close = id
	}
	var tail []int // of the prompt, behind the marker that opened the channel
	for i, id := range prompt {
		switch {
		case id == p.open && p.open >= 0:
			p.enter()
			tail = prompt[i+1:]
		case id == p.close, id == f.mark[turnClose]:
			p.thinking = false
		}
	}
	if p.thinking {
		p.take(f.t.Decode(tail, tokenizer.HideSpecials))
		if p.head == thought {
			p.named, p.lineOpen = true, true
		}
	}
	return p
}

// thought is the name of the channel.
const thought = "thought"

func (p *Parser) enter() {
	p.thinking, p.head, p.named, p.lineOpen, p.breaks = true, "", false, false, ""
}

// Push takes one id.
func (p *Parser) Push(id int) Part {
	switch {
	case id == p.open && p.open >= 0:
		part := p.take(p.stream.Flush())
		p.enter()
		return part
	case id == p.close && p.close >= 0 && p.thinking:
		part := p.take(p.stream.Flush())
		p.thinking = false
		return part
	}
	return p.take(p.stream.Push(id))
}

// Flush ends the answer.
func (p *Parser) Flush() Part { return p.take(p.stream.Flush()) }

// take files text under what it belongs to.
func (p *Parser) take(text string) Part {
	if !p.thinking {
		return Part{Content: text}
	}
	if !p.named {
		p.head += text
		_, rest, ended := strings.Cut(p.head, "\n")
		if !ended {
			return Part{}
		}
		p.named, text = true, rest
	}
	if p.lineOpen && text != "" {
		text, p.lineOpen = strings.TrimPrefix(text, "\n"), false
	}
	text = p.breaks + text
	kept := strings.TrimRight(text, "\n")
	p.breaks = text[len(kept):]
	return Part{Reasoning: kept}
}
