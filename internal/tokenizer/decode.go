package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Specials says what becomes of control pieces when decoding.
type Specials uint8

// HideSpecials leaves them out; ShowSpecials writes them as the vocabulary does.
const (
	HideSpecials Specials = iota
	ShowSpecials
)

// Decode returns the text of ids. Byte pieces that are no UTF-8 come out as U+FFFD, one per byte.
func (t *Tokenizer) Decode(ids []int, s Specials) string {
	var b strings.Builder
	stream := t.Stream(s)
	for _, id := range ids {
		b.WriteString(stream.Push(id))
	}
	b.WriteString(stream.Flush())
	return b.String()
}

// Stream decodes ids one by one into whole characters. Not safe for concurrent use.
type Stream struct {
	t        *Tokenizer
	specials Specials
	held     []byte // the beginning of a character
	begun    bool
}

// Stream begins a text.
func (t *Tokenizer) Stream(s Specials) *Stream { return &Stream{t: t, specials: s} }

// Push returns the text that one more id makes complete: "" while a character is unfinished.
func (s *Stream) Push(id int) string {
	if id < 0 || id >= s.t.Size() {
		panic("tokenizer: id outside the vocabulary")
	}
	if s.t.v.Kinds[id] == Control && s.specials == HideSpecials {
		return ""
	}
	text := s.t.text[id]
	if !s.begun && text != "" {
		s.begun = true
		if s.t.v.Settings.Prefix != NoPrefix {
			text = strings.TrimPrefix(text, " ")
		}
	}
	if len(s.held) == 0 && s.t.v.Kinds[id] != Byte {
		return text
	}
	s.held = append(s.held, text...)
	return s.release(false)
}

// Flush ends the text: an unfinished character comes out as U+FFFD.
func (s *Stream) Flush() string { return s.release(true) }

// release returns what of the held bytes is complete, or all of them at the end.
func (s *Stream) release(end bool) string {
	var b strings.Builder
	for len(s.held) > 0 && (end || utf8.FullRune(s.held)) {
		c, n := utf8.DecodeRune(s.held)
		b.WriteRune(c)
		s.held = s.held[n:]
	}
	return b.String()
}

// Bytes is the text of one id alone, control pieces as they are written; for a byte piece it may be no whole character.
func (t *Tokenizer) Bytes(id int) string {
	if id < 0 || id >= t.Size() {
		panic("tokenizer: id outside the vocabulary")
	}
	return t.text[id]
}
