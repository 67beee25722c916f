package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/talk"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/chat"
	"anelab/internal/checkpoint"
	"anelab/internal/shareddata"
	"anelab/internal/tokenizer"
)

// tiny is the model of random numbers that comes with the program, loaded once.
var tiny = sync.OnceValues(func() (*talk.Engine, error) {
	root := filepath.Join("..", "..", "..", "..", "testdata")
	src, err := checkpoint.Open(filepath.Join(root, "golden", "tiny-e2b", "bf16"))
	if err != nil {
		return nil, err
	}
	a, err := arith.New("f32", 2)
	if err != nil {
		return nil, err
	}
	e := &talk.Engine{Name: "tiny", Context: 256}
	model, err := gemma4.Load(src.Config, src, a, gemma4.Options{})
	if err != nil {
		return nil, err
	}
	e.Speaker = talk.Whole{Model: model}
	if e.Tokenizer, err = tokenizer.Open(filepath.Join(root, "tokenizer", "tiny-e2b.json")); err != nil {
		return nil, err
	}
	e.Chat, err = chat.Detect(e.Tokenizer)
	return e, err
})

// started is a server on a loopback port.
type started struct {
	*Server
	url  string // http://127.0.0.1:PORT
	stop context.CancelFunc
	done chan error
}

// start serves the tiny model; change may alter the server before.
func start(t testing.TB, l Limits, change func(*Server)) *started {
	t.Helper()
	require.DirExists(t, filepath.Join(shareddata.ModuleRoot(t), "testdata"))
	e, err := tiny()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &started{Server: New(e, l), url: "http://" + listener.Addr().String(), stop: cancel, done: make(chan error, 1)}
	if change != nil {
		change(s.Server)
	}
	go func() { s.done <- s.Serve(ctx, listener, time.Second) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-s.done:
		case <-time.After(10 * time.Second):
			t.Error("the server did not end")
		}
	})
	return s
}

// quick are limits for tests.
func quick() Limits {
	l := DefaultLimits()
	l.Timeout, l.ReadTimeout, l.WriteTimeout = 20*time.Second, 5*time.Second, 5*time.Second
	return l
}

// response is an answer that was read.
type response struct {
	status int
	header http.Header
	body   string
}

// error takes OpenAI's form of an error apart.
func (r *response) error(t testing.TB) (message, kind, param, code string) {
	t.Helper()
	var d struct {
		Error *struct{ Message, Type, Param, Code *string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.body), &d), r.body)
	require.NotNil(t, d.Error, r.body)
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return text(d.Error.Message), text(d.Error.Type), text(d.Error.Param), text(d.Error.Code)
}

// client has its own connections, so that a test can end them.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// do sends a request and reads the answer.
func do(t testing.TB, c *http.Client, r *http.Request) *response {
	t.Helper()
	answer, err := c.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return &response{answer.StatusCode, answer.Header, string(body)}
}

func (s *started) request(t testing.TB, ctx context.Context, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewBufferString(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func (s *started) post(t testing.TB, path, body string) *response {
	t.Helper()
	return do(t, client(t), s.request(t, context.Background(), path, body))
}

func (s *started) get(t testing.TB, path string) *response {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	require.NoError(t, err)
	return do(t, client(t), r)
}

// gate is a computation that lasts until it is let go.
type gate struct {
	began chan struct{} // a value for everyone who begins
	open  chan struct{}
}

func newGate() *gate { return &gate{began: make(chan struct{}, 1000), open: make(chan struct{})} }

func (g *gate) run(ctx context.Context, _ talk.Request, emit func(talk.Token) error) (talk.Result, error) {
	g.began <- struct{}{}
	select {
	case <-g.open:
		return talk.Result{Finish: talk.Stopped, PromptTokens: 3, Tokens: 1}, emit(talk.Token{ID: 300, Part: chat.Part{Content: "done"}})
	case <-ctx.Done():
		return talk.Result{}, ctx.Err()
	}
}

const hello = `{"model":"tiny","prompt":"Hello","max_tokens":3,"seed":1}`
