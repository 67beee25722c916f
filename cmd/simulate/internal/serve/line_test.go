package serve

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waitFor polls what another goroutine will make true.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for: %s", what)
}

func TestFullQueueSaysComeBack(t *testing.T) { // hand: one computes, two wait, the fourth is sent away
	g := newGate()
	l := quick()
	l.Parallel, l.Queue = 1, 2
	s := start(t, l, func(s *Server) { s.run = g.run })
	c := client(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			r := do(t, c, s.request(t, context.Background(), "/v1/completions", hello))
			require.Equal(t, http.StatusOK, r.status)
		})
	}
	waitFor(t, "one computing, two waiting", func() bool { busy, waiting := s.loop.load(); return busy == 1 && waiting == 2 })
	require.Contains(t, s.get(t, "/health").body, `"waiting":2`)
	r := s.post(t, "/v1/completions", hello)
	require.Equal(t, http.StatusTooManyRequests, r.status)
	require.Equal(t, "1", r.header.Get("Retry-After"))
	_, kind, _, code := r.error(t)
	require.Equal(t, []string{"rate_limit_error", "rate_limit_exceeded"}, []string{kind, code})
	close(g.open)
	all.Wait()
	require.Equal(t, http.StatusOK, s.post(t, "/v1/completions", hello).status, "there is room again")
}

func TestCancellationFreesTheSlot(t *testing.T) { // hand: of two who leave, one computes and one waits
	g := newGate()
	l := quick()
	l.Parallel, l.Queue = 1, 2
	s := start(t, l, func(s *Server) { s.run = g.run })
	leave := make([]context.CancelFunc, 2)
	for i := range leave {
		ctx, cancel := context.WithCancel(context.Background())
		leave[i] = cancel
		go func() {
			r, err := client(t).Do(s.request(t, ctx, "/v1/chat/completions", `{"model":"tiny","stream":true,"messages":[{"role":"user","content":"a"}]}`))
			if err == nil {
				r.Body.Close()
			}
		}()
		waitFor(t, "its place", func() bool { busy, waiting := s.loop.load(); return busy+waiting == i+1 })
	}
	leave[1]()
	waitFor(t, "the place in the queue", func() bool { busy, waiting := s.loop.load(); return busy == 1 && waiting == 0 })
	leave[0]()
	waitFor(t, "the slot", func() bool { busy, waiting := s.loop.load(); return busy+waiting == 0 })
	close(g.open)
	require.Equal(t, http.StatusOK, s.post(t, "/v1/completions", hello).status)
}

func TestTimeoutEndsARequest(t *testing.T) { // hand
	g := newGate()
	l := quick()
	l.Timeout = 50 * time.Millisecond
	s := start(t, l, func(s *Server) { s.run = g.run })
	r := s.post(t, "/v1/completions", hello)
	require.Equal(t, http.StatusGatewayTimeout, r.status)
	_, kind, _, code := r.error(t)
	require.Equal(t, []string{"server_error", "timeout"}, []string{kind, code})
}

func TestShutdownFinishesWhatIsThere(t *testing.T) { // hand: one computes and finishes, one waits and is sent away
	g := newGate()
	l := quick()
	l.Parallel = 1
	s := start(t, l, func(s *Server) { s.run = g.run })
	answers := make(chan *response, 2)
	for i := range 2 {
		go func() { answers <- s.post(t, "/v1/completions", hello) }()
		waitFor(t, "its place", func() bool { busy, waiting := s.loop.load(); return busy+waiting == i+1 })
	}
	s.stop()
	first := <-answers
	require.Equal(t, http.StatusServiceUnavailable, first.status)
	require.Equal(t, "10", first.header.Get("Retry-After"))
	close(g.open)
	require.Equal(t, http.StatusOK, (<-answers).status)
	require.NoError(t, <-s.done)
	s.done <- nil
}

func TestShutdownEndsWhatTakesTooLong(t *testing.T) { // hand
	g := newGate()
	s := start(t, quick(), func(s *Server) { s.run = g.run })
	go func() {
		r, err := client(t).Do(s.request(t, context.Background(), "/v1/completions", hello))
		if err == nil {
			r.Body.Close()
		}
	}()
	<-g.began
	s.stop()
	select {
	case <-s.done:
		s.done <- nil
	case <-time.After(9 * time.Second):
		t.Fatal("the server waits for ever")
	}
	waitFor(t, "the computation to end", func() bool { busy, _ := s.loop.load(); return busy == 0 })
}

func TestFiftyAtATime(t *testing.T) { // invariant: everyone gets the answer of being alone
	l := quick()
	l.Parallel, l.Queue = 4, 64
	s := start(t, l, nil)
	alone := text(t, s.post(t, "/v1/completions", `{"model":"tiny","prompt":"Hello","max_tokens":20,"seed":1}`))
	c := client(t)
	var all sync.WaitGroup
	answers := make([]string, 50)
	for i := range answers {
		all.Go(func() {
			r := do(t, c, s.request(t, context.Background(), "/v1/completions", `{"model":"tiny","prompt":"Hello","max_tokens":20,"seed":1}`))
			answers[i] = text(t, r)
		})
	}
	all.Wait()
	for _, a := range answers {
		require.Equal(t, alone, a)
	}
	busy, waiting := s.loop.load()
	require.Zero(t, busy+waiting)
}
