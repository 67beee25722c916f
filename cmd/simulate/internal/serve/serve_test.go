package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/talk"
	"anelab/internal/chat"
)

// text is the text of a completion.
func text(t testing.TB, r *response) string {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.body)
	var d struct{ Choices []struct{ Text string } }
	require.NoError(t, json.Unmarshal([]byte(r.body), &d))
	require.Len(t, d.Choices, 1)
	return d.Choices[0].Text
}

func TestMalformedRequestsGetAReason(t *testing.T) { // hand
	const ask = `{"model":"tiny","messages":[{"role":"user","content":"a"}]`
	s := start(t, quick(), nil)
	for name, c := range map[string]struct {
		path, body string
		status     int
		param      string
		want       string
	}{
		"no JSON":                {"chat/completions", `{"model`, 400, "", "no JSON object"},
		"a list":                 {"chat/completions", `[]`, 400, "", "no JSON object"},
		"nothing":                {"chat/completions", ``, 400, "", "no JSON object"},
		"a typo":                 {"chat/completions", ask + `,"temprature":1}`, 400, "temprature", `did you mean "temperature"?`},
		"null is not there":      {"chat/completions", ask + `,"temprature":null,"max_tokens":1}`, 200, "", ""},
		"another model":          {"chat/completions", `{"model":"gpt-5","messages":[{"role":"user","content":"a"}]}`, 404, "model", `this server has "tiny"`},
		"no model":               {"chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, 404, "model", `no model ""`},
		"no messages":            {"chat/completions", `{"model":"tiny"}`, 400, "messages", "at least one"},
		"messages are a text":    {"chat/completions", `{"model":"tiny","messages":"hi"}`, 400, "messages", "string"},
		"a role nobody has":      {"chat/completions", `{"model":"tiny","messages":[{"role":"wizard","content":"a"}]}`, 400, "messages", `messages[0].role: "wizard"`},
		"a late system":          {"chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}`, 400, "messages", "messages[1].role"},
		"content is a number":    {"chat/completions", `{"model":"tiny","messages":[{"role":"user","content":7}]}`, 400, "messages", "messages[0].content"},
		"an image":               {"chat/completions", `{"model":"tiny","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, 400, "messages", `type "image_url"`},
		"temperature below 0":    {"chat/completions", ask + `,"temperature":-0.1}`, 400, "temperature", "at least 0"},
		"temperature is a text":  {"chat/completions", ask + `,"temperature":"hot"}`, 400, "temperature", "string"},
		"temperature overflows":  {"chat/completions", ask + `,"temperature":1e999}`, 400, "temperature", "number 1e999"},
		"top_p above 1":          {"chat/completions", ask + `,"top_p":1.5}`, 400, "top_p", "0 to 1"},
		"top_k below 0":          {"chat/completions", ask + `,"top_k":-1}`, 400, "top_k", "at least 0"},
		"max_tokens 0":           {"chat/completions", ask + `,"max_tokens":0}`, 400, "max_tokens", "at least 1"},
		"seed is a fraction":     {"chat/completions", ask + `,"seed":1.5}`, 400, "seed", "number 1.5"},
		"more than the context":  {"chat/completions", ask + `,"max_tokens":256}`, 400, "messages", "at most 256 together"},
		"a prompt too long":      {"completions", `{"model":"tiny","prompt":"` + strings.Repeat("ä", 300) + `"}`, 400, "messages", "context"},
		"five stops":             {"chat/completions", ask + `,"stop":["a","b","c","d","e"]}`, 400, "stop", "up to 4"},
		"an empty stop":          {"chat/completions", ask + `,"stop":""}`, 400, "stop", "none of them empty"},
		"a stop that is none":    {"chat/completions", ask + `,"stop":7}`, 400, "stop", "neither"},
		"two answers":            {"chat/completions", ask + `,"n":2}`, 400, "n", "one answer"},
		"tools":                  {"chat/completions", ask + `,"tools":[{"type":"function"}]}`, 400, "tools", "not supported"},
		"JSON as a format":       {"chat/completions", ask + `,"response_format":{"type":"json_object"}}`, 400, "response_format", "json_object"},
		"logit_bias":             {"chat/completions", ask + `,"logit_bias":{"5":1}}`, 400, "logit_bias", "not supported"},
		"top_logprobs alone":     {"chat/completions", ask + `,"top_logprobs":3}`, 400, "top_logprobs", "without logprobs"},
		"21 alternatives":        {"chat/completions", ask + `,"logprobs":true,"top_logprobs":21}`, 400, "top_logprobs", "0 to 20"},
		"stream_options alone":   {"chat/completions", ask + `,"stream_options":{"include_usage":true}}`, 400, "stream_options", "without stream"},
		"no prompt":              {"completions", `{"model":"tiny"}`, 400, "prompt", "missing"},
		"two prompts":            {"completions", `{"model":"tiny","prompt":["a","b"]}`, 400, "prompt", "one text"},
		"a prompt in too deep":   {"completions", `{"model":"tiny","prompt":[[["a"]]]}`, 400, "prompt", "one text"},
		"no ids":                 {"completions", `{"model":"tiny","prompt":[]}`, 400, "prompt", "one text"},
		"an id of no row":        {"completions", `{"model":"tiny","prompt":[2,320]}`, 400, "prompt", "prompt[1] is 320"},
		"an id below 0":          {"completions", `{"model":"tiny","prompt":[-1]}`, 400, "prompt", "prompt[0] is -1"},
		"echo":                   {"completions", `{"model":"tiny","prompt":"a","echo":true}`, 400, "echo", "not supported"},
		"six alternatives":       {"completions", `{"model":"tiny","prompt":"a","logprobs":6}`, 400, "logprobs", "0 to 5"},
		"a stream is refused so": {"completions", `{"model":"tiny","prompt":"a","stream":true,"max_tokens":0}`, 400, "max_tokens", "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.post(t, "/v1/"+c.path, c.body)
			require.Equal(t, c.status, r.status, r.body)
			if c.status == http.StatusOK {
				return
			}
			require.Equal(t, "application/json", r.header.Get("Content-Type"))
			message, kind, param, _ := r.error(t)
			require.Equal(t, "invalid_request_error", kind)
			require.Equal(t, c.param, param)
			require.Contains(t, message, c.want)
		})
	}
	busy, waiting := s.loop.load()
	require.Zero(t, busy+waiting)
}

func TestInvalidUTF8IsReplacedByJSON(t *testing.T) { // hand: encoding/json makes U+FFFD of it, which is text
	s := start(t, quick(), nil)
	require.Equal(t, http.StatusOK, s.post(t, "/v1/completions", "{\"model\":\"tiny\",\"prompt\":\"a\xffb\",\"max_tokens\":1}").status)
}

func TestHTTPIsChecked(t *testing.T) { // hand
	l := quick()
	l.BodyBytes = 200
	s := start(t, l, nil)
	large := s.post(t, "/v1/completions", `{"model":"tiny","prompt":"`+strings.Repeat("a", 300)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, large.status)
	message, _, _, code := large.error(t)
	require.Equal(t, "request_too_large", code)
	require.Contains(t, message, "200 bytes")

	r := s.request(t, context.Background(), "/v1/completions", hello)
	r.Header.Set("Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, do(t, client(t), r).status)

	wrong := s.get(t, "/v1/completions")
	require.Equal(t, http.StatusMethodNotAllowed, wrong.status)
	require.Equal(t, "POST", wrong.header.Get("Allow"))
	wrong.error(t)
	none := s.get(t, "/v2/x")
	require.Equal(t, http.StatusNotFound, none.status)
	message, _, _, _ = none.error(t)
	require.Contains(t, message, "/v1/chat/completions")

	evil := s.request(t, context.Background(), "/v1/completions", hello)
	evil.Host = "evil.example:80"
	require.Equal(t, http.StatusForbidden, do(t, client(t), evil).status, "a page's own name for this machine")
	for _, host := range []string{"localhost:1", "127.0.0.1", "[::1]:80"} {
		r := s.request(t, context.Background(), "/v1/completions", hello)
		r.Host = host
		require.Equal(t, http.StatusOK, do(t, client(t), r).status, host)
	}
}

func TestSlowSendersAreGivenUp(t *testing.T) { // hand
	l := quick()
	l.ReadTimeout = 50 * time.Millisecond
	s := start(t, l, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "408")
}

// TestConnectionsOutliveTheWriteTimeout: the limit is on taking an answer, not on the connection.
func TestConnectionsOutliveTheWriteTimeout(t *testing.T) { // hand
	l := quick()
	l.WriteTimeout, l.ReadTimeout = 100*time.Millisecond, 100*time.Millisecond
	s := start(t, l, func(s *Server) {
		inner := s.run
		s.run = func(ctx context.Context, r talk.Request, emit func(talk.Token) error) (talk.Result, error) {
			time.Sleep(250 * time.Millisecond) // longer than either limit
			if ctx.Err() != nil {
				return talk.Result{}, errors.New("taken for gone")
			}
			return inner(ctx, r, emit)
		}
	})
	c := client(t)
	for range 2 {
		require.Equal(t, http.StatusOK, do(t, c, s.request(t, context.Background(), "/v1/completions", hello)).status)
	}
}

// TestErrorsInAStreamAreItsLastEvent: the status is out, so the error follows it.
func TestErrorsInAStreamAreItsLastEvent(t *testing.T) { // hand
	s := start(t, quick(), func(s *Server) {
		s.run = func(_ context.Context, _ talk.Request, emit func(talk.Token) error) (talk.Result, error) {
			_ = emit(talk.Token{ID: 300, Part: chat.Part{Content: "a"}})
			return talk.Result{}, errors.New("the logits are not finite")
		}
	})
	r := s.post(t, "/v1/completions", `{"model":"tiny","prompt":"a","stream":true}`)
	require.Equal(t, http.StatusOK, r.status)
	require.Contains(t, r.body, `"text":"a"`)
	events := strings.Split(strings.TrimSpace(r.body), "\n\n")
	require.Contains(t, events[len(events)-1], "the logits are not finite")
	require.NotContains(t, r.body, "[DONE]")
	whole := s.post(t, "/v1/completions", `{"model":"tiny","prompt":"a"}`)
	require.Equal(t, http.StatusInternalServerError, whole.status)
	_, kind, _, _ := whole.error(t)
	require.Equal(t, "server_error", kind)
}

func TestThoughtsAreNotTheAnswer(t *testing.T) { // hand
	s := start(t, quick(), func(s *Server) {
		s.run = func(_ context.Context, r talk.Request, emit func(talk.Token) error) (talk.Result, error) {
			for _, p := range []chat.Part{{Reasoning: "hm"}, {Content: "yes"}} {
				if err := emit(talk.Token{ID: 300, Part: p}); err != nil {
					return talk.Result{}, err
				}
			}
			return talk.Result{Finish: talk.Stopped, PromptTokens: len(r.Prompt), Tokens: 2}, nil
		}
	})
	const ask = `{"model":"tiny","messages":[{"role":"user","content":"a"}],"reasoning_effort":"high"`
	r := s.post(t, "/v1/chat/completions", ask+"}")
	require.Contains(t, r.body, `"reasoning_content":"hm"`)
	require.Contains(t, r.body, `"content":"yes"`)
	require.Contains(t, s.post(t, "/v1/chat/completions", ask+`,"stream":true}`).body, `"delta":{"reasoning_content":"hm"}`)
}
