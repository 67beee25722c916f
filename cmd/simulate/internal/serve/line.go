package serve

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// line admits a bounded number of requests and computes a few of them at a time, in the order of their arrival as far as the scheduler
// keeps it.
type line struct {
	places chan struct{} // held by whoever is admitted
	slots  chan struct{} // held by whoever computes
	busy   atomic.Int64
	closed chan struct{}
	once   sync.Once
}

func newLine(parallel, queue int) *line {
	return &line{places: make(chan struct{}, parallel+queue), slots: make(chan struct{}, parallel), closed: make(chan struct{})}
}

// close lets nobody in any more; who waits is sent away, who computes goes on.
func (l *line) close() { l.once.Do(func() { close(l.closed) }) }

// load is how many compute and how many wait.
func (l *line) load() (busy, waiting int) {
	busy = int(l.busy.Load())
	return busy, max(0, len(l.places)-busy)
}

var (
	errFull = &fault{Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", RetryAfter: "1",
		Message: "the queue is full: come back in a second"}
	errClosing = &fault{Status: http.StatusServiceUnavailable, Code: "shutting_down", RetryAfter: "10", Message: "the server is shutting down"}
)

// enter waits for a slot and returns how to give it back. It fails at once where the queue is full, and when ctx ends.
func (l *line) enter(ctx context.Context) (leave func(), err error) {
	select {
	case <-l.closed:
		return nil, errClosing
	default:
	}
	select {
	case l.places <- struct{}{}:
	default:
		return nil, errFull
	}
	select {
	case l.slots <- struct{}{}:
		l.busy.Add(1)
		return func() {
			l.busy.Add(-1)
			<-l.slots
			<-l.places
		}, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.closed:
		err = errClosing
	}
	<-l.places
	return nil, err
}
