package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"anelab/gemma4"
	"anelab/internal/format"
)

// params are the parameters that both kinds of requests share.
type params struct {
	Model            string          `json:"model"`
	Stream           bool            `json:"stream"`
	StreamOptions    *streamOptions  `json:"stream_options"`
	MaxTokens        *int            `json:"max_tokens"`
	Temperature      *float64        `json:"temperature"`
	TopP             *float64        `json:"top_p"`
	TopK             int             `json:"top_k"`
	MinP             float64         `json:"min_p"`
	Repetition       *float64        `json:"repetition_penalty"`
	Frequency        float64         `json:"frequency_penalty"`
	Presence         float64         `json:"presence_penalty"`
	Seed             *int64          `json:"seed"`
	Stop             json.RawMessage `json:"stop"`
	N                *int            `json:"n"`
	LogitBias        map[string]any  `json:"logit_bias"`
	User             json.RawMessage `json:"user"`
	Metadata         json.RawMessage `json:"metadata"`
	Store            json.RawMessage `json:"store"`
	ServiceTier      json.RawMessage `json:"service_tier"`
	SafetyIdentifier json.RawMessage `json:"safety_identifier"`
	PromptCacheKey   json.RawMessage `json:"prompt_cache_key"`
}

type streamOptions struct {
	IncludeUsage       bool `json:"include_usage"`
	IncludeObfuscation bool `json:"include_obfuscation"`
}

// decode reads the body of a request into v, whose fields are all that is known. Null stands for a parameter that is not there.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, v any, known []string) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &fault{Status: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("content type %q: want application/json", r.Header.Get("Content-Type"))}
	}
	body, err := s.body(w, r)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &fault{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: fmt.Sprintf("the body is larger than %d bytes", s.limits.BodyBytes)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &fault{Status: http.StatusRequestTimeout, Code: "timeout", Message: "the body did not come in time"}
	case err != nil:
		return bad("", "the body could not be read: "+err.Error())
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return bad("", "the body is no JSON object: "+err.Error())
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !slices.Contains(known, name) && !bytes.Equal(all[name], []byte("null")) {
			return &fault{Status: http.StatusBadRequest, Param: name, Code: "unknown_parameter",
				Message: fmt.Sprintf("unknown parameter %q; %s", name, format.DidYouMean(name, known))}
		}
	}
	if err := json.Unmarshal(body, v); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			field := strings.TrimPrefix(kind.Field, "params.") // the struct that both kinds of requests embed
			param, _, _ := strings.Cut(field, ".")
			return bad(param, fmt.Sprintf("%s is a %s, want a %s", field, kind.Value, kind.Type))
		}
		return bad("", err.Error())
	}
	return nil
}

// body reads the request, in a limited time: the deadline ends with the body, because the server goes on listening for a client that
// leaves.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.limits.ReadTimeout)) // not every connection knows deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.BodyBytes))
	if err != nil {
		w.Header().Set("Connection", "close") // or the server would wait for the rest before it answers
		return nil, err
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// sampling is what the parameters ask for, with OpenAI's defaults. Without a seed every request is another.
func (p *params) sampling(fresh func() uint64) (gemma4.Sampling, error) {
	s := gemma4.Sampling{Temperature: 1, TopP: 1, TopK: p.TopK, MinP: p.MinP, Repetition: 1, Frequency: p.Frequency, Presence: p.Presence}
	for _, f := range []struct {
		from *float64
		to   *float64
	}{{p.Temperature, &s.Temperature}, {p.TopP, &s.TopP}, {p.Repetition, &s.Repetition}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if p.Seed != nil {
		s.Seed = uint64(*p.Seed)
	} else {
		s.Seed = fresh()
	}
	return s, s.Check()
}

// mostStops is OpenAI's limit.
const mostStops = 4

// stops reads a text, or up to four.
func (p *params) stops() ([]string, error) {
	if len(p.Stop) == 0 || string(p.Stop) == "null" {
		return nil, nil
	}
	var one string
	var all []string
	if json.Unmarshal(p.Stop, &one) == nil {
		all = []string{one}
	} else if err := json.Unmarshal(p.Stop, &all); err != nil {
		return nil, bad("stop", "stop is neither a text nor a list of texts")
	}
	if len(all) > mostStops || slices.Contains(all, "") {
		return nil, bad("stop", fmt.Sprintf("stop: want up to %d texts, none of them empty", mostStops))
	}
	return all, nil
}

// refuseUnsupported names what would change the answer and is not done.
func (p *params) refuseUnsupported() error {
	switch {
	case p.N != nil && *p.N != 1:
		return bad("n", fmt.Sprintf("n is %d: one answer is made for a request; send it again", *p.N))
	case len(p.LogitBias) > 0:
		return bad("logit_bias", "logit_bias is not supported")
	case p.StreamOptions != nil && !p.Stream:
		return bad("stream_options", "stream_options without stream")
	}
	return nil
}

// usage counts tokens.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}
