package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"anelab/cmd/simulate/internal/talk"
)

// textParams are the parameters of a completion.
type textParams struct {
	params
	Prompt   json.RawMessage `json:"prompt"`
	LogProbs *int            `json:"logprobs"`
	Echo     bool            `json:"echo"`
	BestOf   *int            `json:"best_of"`
	Suffix   *string         `json:"suffix"`
}

// mostTextTop is OpenAI's limit of alternatives in a completion.
const mostTextTop = 5

// defaultTextTokens is OpenAI's length of a completion.
const defaultTextTokens = 16

// completion reads a text to go on with.
func (s *Server) completion(w http.ResponseWriter, r *http.Request) (*job, error) {
	p := &textParams{}
	if err := s.decode(w, r, p, fieldsOf(p)); err != nil {
		return nil, err
	}
	switch {
	case p.Echo:
		return nil, bad("echo", "echo is not supported")
	case p.BestOf != nil && *p.BestOf != 1:
		return nil, bad("best_of", "best_of is not supported")
	case p.Suffix != nil && *p.Suffix != "":
		return nil, bad("suffix", "suffix is not supported: the model only goes on")
	case p.LogProbs != nil && (*p.LogProbs < 0 || *p.LogProbs > mostTextTop):
		return nil, bad("logprobs", fmt.Sprintf("logprobs is %d, want 0 to %d", *p.LogProbs, mostTextTop))
	}
	j := &job{p: &p.params, id: newID("cmpl-"), form: &textForm{s: s, logProbs: p.LogProbs != nil}}
	if p.LogProbs != nil {
		j.request.LogProbs, j.request.Alternatives = true, *p.LogProbs
	}
	var err error
	if j.request.Prompt, err = s.prompt(p.Prompt); err != nil {
		return nil, err
	}
	most := p.MaxTokens
	if most == nil {
		n := max(1, min(defaultTextTokens, s.engine.Room(len(j.request.Prompt))))
		most = &n
	}
	return j, s.fill(j, most)
}

// prompt reads a text or a list of ids, or a list of one of these. Ids are taken as they are.
func (s *Server) prompt(raw json.RawMessage) ([]int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, bad("prompt", "prompt is missing")
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 && strings.ContainsAny(string(list[0][:1]), `["`) {
		raw = list[0]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		ids, err := s.engine.Tokenizer.Encode(text)
		return s.engine.Tokenizer.Prompt(ids), err
	}
	var ids []int
	if json.Unmarshal(raw, &ids) != nil || len(ids) == 0 {
		return nil, bad("prompt", "prompt: want one text, or one list of token ids")
	}
	for i, id := range ids {
		if id < 0 || id >= s.engine.Tokenizer.Size() {
			return nil, bad("prompt", fmt.Sprintf("prompt[%d] is %d, want 0 to %d", i, id, s.engine.Tokenizer.Size()-1))
		}
	}
	return ids, nil
}

// textForm writes a completion.
type textForm struct {
	s        *Server
	logProbs bool
	text     string
	probs    textProbs
}

// textProbs are OpenAI's four parallel lists.
type textProbs struct {
	Tokens  []string             `json:"tokens"`
	Probs   []float64            `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

func (f *textForm) object(streaming) string { return "text_completion" }

func (f *textForm) opening() any { return nil }

func (f *textForm) choice(text string, probs, finish any) map[string]any {
	return map[string]any{"index": 0, "text": text, "logprobs": probs, "finish_reason": finish}
}

func (f *textForm) add(t talk.Token) any {
	offset := utf8.RuneCountInString(f.text)
	f.text += t.Part.Content
	var probs any
	if f.logProbs && t.ID >= 0 {
		one := textProbs{[]string{f.s.name(t.ID)}, []float64{t.LogProb}, []map[string]float64{{}}, []int{offset}}
		for _, a := range t.Top {
			one.Top[0][f.s.name(a.ID)] = a.LogProb
		}
		f.probs = textProbs{append(f.probs.Tokens, one.Tokens...), append(f.probs.Probs, one.Probs...), append(f.probs.Top, one.Top...), append(f.probs.Offsets, offset)}
		probs = one
	}
	if t.Part.Content == "" && probs == nil {
		return nil
	}
	return f.choice(t.Part.Content, probs, nil)
}

// name is a token as text.
func (s *Server) name(id int) string { return s.piece(id, 0)["token"].(string) }

func (f *textForm) closing(finish talk.Finish) any { return f.choice("", nil, finish) }

func (f *textForm) whole(finish talk.Finish) any {
	var probs any
	if f.logProbs {
		probs = f.probs
	}
	return f.choice(f.text, probs, finish)
}

// fieldsOf are the JSON names of a struct of parameters, embedded ones included.
func fieldsOf(v any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, ok := f.Tag.Lookup("json"); ok {
			names = append(names, name)
		}
	}
	return names
}
