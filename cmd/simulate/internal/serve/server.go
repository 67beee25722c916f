package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"anelab/cmd/simulate/internal/talk"
)

// Limits bound what one server does at a time.
type Limits struct {
	Parallel     int           // requests computed at a time
	Queue        int           // requests that wait for that
	BodyBytes    int64         // of a request
	ReadTimeout  time.Duration // until the body has come
	Timeout      time.Duration // of a request after that, waiting included
	WriteTimeout time.Duration // until a client takes the next piece of an answer
}

// DefaultLimits suit one machine.
func DefaultLimits() Limits {
	return Limits{Parallel: 2, Queue: 64, BodyBytes: 4 << 20, ReadTimeout: time.Minute, Timeout: 10 * time.Minute, WriteTimeout: 30 * time.Second}
}

// Server answers for one model.
type Server struct {
	engine *talk.Engine
	limits Limits
	run    func(context.Context, talk.Request, func(talk.Token) error) (talk.Result, error)
	loop   *line
	began  time.Time
	mux    *http.ServeMux
}

// New makes a server for a model that has a vocabulary.
func New(e *talk.Engine, l Limits) *Server {
	if e.Tokenizer == nil {
		panic("serve: a model without a vocabulary")
	}
	s := &Server{engine: e, limits: l, run: e.Run, loop: newLine(l.Parallel, l.Queue), began: time.Now(), mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /v1/models/{model...}", s.model)
	s.mux.HandleFunc("POST /v1/chat/completions", s.answering(s.chat))
	s.mux.HandleFunc("POST /v1/completions", s.answering(s.completion))
	return s
}

// ServeHTTP routes one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !addressedHere(r) {
		refuse(w, &fault{Status: http.StatusForbidden, Message: fmt.Sprintf("host %q: this server is reached as localhost or by its loopback address", r.Host)})
		return
	}
	handler, pattern := s.mux.Handler(r)
	if pattern == "" {
		refuse(w, unrouted(w, r, handler))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// unrouted lets the router say whether the path or the method is wrong, and says it in our form.
func unrouted(w http.ResponseWriter, r *http.Request, handler http.Handler) *fault {
	said := &headersOnly{header: http.Header{}}
	handler.ServeHTTP(said, r)
	if said.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", said.header.Get("Allow"))
		return &fault{Status: said.status, Message: fmt.Sprintf("%s %s: want %s", r.Method, r.URL.Path, said.header.Get("Allow"))}
	}
	return &fault{Status: http.StatusNotFound, Message: fmt.Sprintf("no such path: %s; there are /v1/chat/completions, /v1/completions, /v1/models and /health", r.URL.Path)}
}

// headersOnly takes an answer without its body.
type headersOnly struct {
	header http.Header
	status int
}

func (h *headersOnly) Header() http.Header         { return h.header }
func (h *headersOnly) WriteHeader(status int)      { h.status = status }
func (h *headersOnly) Write(b []byte) (int, error) { return len(b), nil }

// addressedHere: a connection that came in on a loopback address must have been asked for by such a name. A web page that
// points a name of its own at 127.0.0.1 is stopped here.
func addressedHere(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return true
	}
	tcp, ok := local.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return true
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Serve answers on a listener until ctx ends; then it takes no more requests, and gives those that are there the time grace.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	base, stop := context.WithCancel(context.Background())
	defer stop()
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.loop.close()
	last, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := h.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		stop() // ends what is being computed
		err = h.Close()
	}
	return err
}

// health says how busy the server is.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	busy, waiting := s.loop.load()
	reply(w, map[string]any{"status": "ok", "model": s.engine.Name, "computing": busy, "waiting": waiting, "parallel": s.limits.Parallel, "queue": s.limits.Queue})
}

// modelObject is an entry of the list of models.
func (s *Server) modelObject() map[string]any {
	return map[string]any{"id": s.engine.Name, "object": "model", "created": s.began.Unix(), "owned_by": "simulate", "context_length": s.engine.Context}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{"object": "list", "data": []any{s.modelObject()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if err := s.known(r.PathValue("model")); err != nil {
		refuse(w, err)
		return
	}
	reply(w, s.modelObject())
}

// known refuses other models than the one there is.
func (s *Server) known(name string) error {
	if name == s.engine.Name {
		return nil
	}
	return &fault{Status: http.StatusNotFound, Param: "model", Code: "model_not_found", Message: fmt.Sprintf("no model %q; this server has %q", name, s.engine.Name)}
}

// reply writes a JSON document.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone is told nothing
}
