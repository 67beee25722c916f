package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// stage is one step of a tokenizer.json's normaliser, pre-tokeniser or decoder.
type stage struct {
	Type           string  `json:"type"`
	Normalizers    []stage `json:"normalizers"`
	PreTokenizers  []stage `json:"pretokenizers"`
	Decoders       []stage `json:"decoders"`
	Prepend        string  `json:"prepend"`
	Content        *string `json:"content"`
	Pattern        pattern `json:"pattern"`
	Behavior       string  `json:"behavior"`
	Invert         bool    `json:"invert"`
	Replacement    string  `json:"replacement"`
	PrependScheme  string  `json:"prepend_scheme"`
	AddPrefixSpace *bool   `json:"add_prefix_space"`
	Split          *bool   `json:"split"`
	Start          int     `json:"start"`
	Stop           int     `json:"stop"`
}

type pattern struct {
	String string `json:"String"`
	Regex  string `json:"Regex"`
}

// mostStages bounds a sequence, and sequences in it.
const mostStages = 16

// stages returns the steps of a part in order; null has none.
func (v *Vocabulary) stages(part string, data json.RawMessage) ([]stage, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	var s stage
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, v.fault(part, err.Error(), "an object with a type", "")
	}
	queue := []stage{s}
	var flat []stage
	for len(queue) > 0 {
		s, queue = queue[0], queue[1:]
		if s.Type != "Sequence" {
			flat = append(flat, s)
			continue
		}
		inner := append(append(s.Normalizers, s.PreTokenizers...), s.Decoders...)
		if queue = append(inner, queue...); len(queue)+len(flat) > mostStages {
			return nil, v.fault(part, "a long sequence", fmt.Sprintf("at most %d steps", mostStages), "")
		}
	}
	return flat, nil
}

// readNormalizer accepts what changes spaces and refuses what changes letters.
func (v *Vocabulary) readNormalizer(f *file) error {
	all, err := v.stages("normalizer", f.Normalizer)
	if err != nil {
		return err
	}
	marked := false
	for _, s := range all {
		switch {
		case s.Type == "Replace" && s.Pattern.String == " " && s.Content != nil && *s.Content == string(space):
			marked = true
		case s.Type == "Replace" && s.Pattern.Regex == " {2,}" && s.Content != nil && (*s.Content == " " || *s.Content == string(space)):
			v.Settings.CollapseSpaces = true
		case s.Type == "Prepend" && s.Prepend == string(space):
			v.Settings.Prefix = PrefixAlways
		case s.Type == "Strip" && v.Settings.CollapseSpaces:
		default:
			return v.fault("normalizer", describe(s), `Replace " " by "▁" and the like`, "no letter is normalised silently; is this file of another model?")
		}
	}
	pre, err := v.stages("pre_tokenizer", f.PreTokenizer)
	if err != nil {
		return err
	}
	for _, s := range pre {
		marked = marked || s.Type == "Metaspace"
	}
	if !marked {
		return v.fault("normalizer", "nothing that writes a space as ▁", `Replace " " by "▁"`, "is this file of another model?")
	}
	return nil
}

// readPreTokenizer accepts splits that cut nothing: after the normaliser there is no space left to split at.
func (v *Vocabulary) readPreTokenizer(f *file) error {
	all, err := v.stages("pre_tokenizer", f.PreTokenizer)
	if err != nil {
		return err
	}
	for _, s := range all {
		switch {
		case s.Type == "Split" && s.Pattern.String == " " && !s.Invert:
		case s.Type == "Metaspace" && s.Replacement == string(space) && s.Split != nil && !*s.Split:
			v.readMetaspace(s)
		default:
			return v.fault("pre_tokenizer", describe(s), `Split at " ", or Metaspace without split`, "Gemma splits at no words; is this file of another model?")
		}
	}
	return nil
}

// readMetaspace takes the dummy prefix from either of the two fields that have held it.
func (v *Vocabulary) readMetaspace(s stage) {
	switch {
	case s.PrependScheme == "always", s.PrependScheme == "" && s.AddPrefixSpace != nil && *s.AddPrefixSpace:
		v.Settings.Prefix = PrefixAlways
	case s.PrependScheme == "first":
		v.Settings.Prefix = PrefixStart
	}
}

// readDecoder refuses decoders that would write other text than [Tokenizer.Decode] does.
func (v *Vocabulary) readDecoder(f *file) error {
	all, err := v.stages("decoder", f.Decoder)
	if err != nil {
		return err
	}
	for _, s := range all {
		switch {
		case s.Type == "ByteFallback", s.Type == "Fuse", s.Type == "Metaspace":
		case s.Type == "Replace" && s.Pattern.String == string(space) && s.Content != nil && *s.Content == " ":
		case s.Type == "Strip" && s.Content != nil && *s.Content == " " && s.Start <= 1 && s.Stop == 0:
		default:
			return v.fault("decoder", describe(s), `Replace "▁" by " ", ByteFallback, Fuse`, "is this file of another model?")
		}
	}
	return nil
}

// describe names a step in a message.
func describe(s stage) string {
	text := s.Type
	if text == "" {
		text = "a step without a type"
	}
	if p := s.Pattern.String + s.Pattern.Regex; p != "" {
		text += fmt.Sprintf(" of %q", clip(p))
	}
	if s.Behavior != "" {
		text += " " + strings.ToLower(s.Behavior)
	}
	return text
}
