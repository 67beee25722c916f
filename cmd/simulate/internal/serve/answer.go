package serve

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"anelab/cmd/simulate/internal/talk"
)

// job is a request that was understood, and how its answer is written.
type job struct {
	p       *params
	request talk.Request
	form    form
	id      string
	created int64
}

// form is one of the two shapes of answers.
type form interface {
	// opening is sent before the first token of a stream; nil = nothing.
	opening() any
	// add takes a token and returns what a stream sends for it; nil = nothing yet.
	add(t talk.Token) any
	// closing is the last choice of a stream.
	closing(finish talk.Finish) any
	// whole is the choice of an answer in one piece.
	whole(finish talk.Finish) any
	// object names the document.
	object(stream streaming) string
}

// streaming says in which way an answer is sent.
type streaming uint8

const (
	inOnePiece streaming = iota
	inEvents
)

// answering wraps what reads a request of one kind.
func (s *Server) answering(read func(http.ResponseWriter, *http.Request) (*job, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		j, err := read(w, r)
		if err != nil {
			refuse(w, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.limits.Timeout)
		defer cancel()
		leave, err := s.loop.enter(ctx)
		if err != nil {
			refuse(w, err)
			return
		}
		defer leave()
		if j.p.Stream {
			s.stream(ctx, w, j)
		} else {
			s.once(ctx, w, j)
		}
	}
}

// fill completes a job with what both kinds of requests share.
func (s *Server) fill(j *job, most *int) error {
	if err := j.p.refuseUnsupported(); err != nil {
		return err
	}
	if err := s.known(j.p.Model); err != nil {
		return err
	}
	var err error
	if j.request.Sampling, err = j.p.sampling(random); err != nil {
		return err
	}
	if j.request.Stops, err = j.p.stops(); err != nil {
		return err
	}
	n := len(j.request.Prompt)
	switch {
	case most == nil:
		j.request.Most = max(1, s.engine.Room(n))
	case *most < 1:
		return bad("max_tokens", fmt.Sprintf("max_tokens is %d, want at least 1", *most))
	default:
		j.request.Most = *most
	}
	j.created = time.Now().Unix()
	return s.engine.Fits(n, j.request.Most)
}

// random is a number nobody can guess.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// newID names an answer.
func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// document is the frame around choices.
func (s *Server) document(j *job, how streaming, choices ...any) map[string]any {
	if choices == nil {
		choices = []any{}
	}
	return map[string]any{"id": j.id, "object": j.form.object(how), "created": j.created, "model": s.engine.Name, "choices": choices}
}

func usageOf(r talk.Result) usage {
	return usage{r.PromptTokens, r.Tokens, r.PromptTokens + r.Tokens}
}

// once answers in one piece.
func (s *Server) once(ctx context.Context, w http.ResponseWriter, j *job) {
	result, err := s.run(ctx, j.request, func(t talk.Token) error {
		j.form.add(t)
		return nil
	})
	if err != nil {
		refuse(w, err)
		return
	}
	d := s.document(j, inOnePiece, j.form.whole(result.Finish))
	d["usage"] = usageOf(result)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.WriteTimeout)) // not every connection knows deadlines
	reply(w, d)
}

// stream answers token by token.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, j *job) {
	e := newEvents(w, s.limits.WriteTimeout)
	send := func(choice any) error {
		if choice == nil {
			return nil
		}
		return e.send(s.document(j, inEvents, choice))
	}
	opened := false
	result, err := s.run(ctx, j.request, func(t talk.Token) error {
		if !opened {
			opened = true
			if err := send(j.form.opening()); err != nil {
				return err
			}
		}
		return send(j.form.add(t))
	})
	if err == nil && !opened {
		err = send(j.form.opening())
	}
	if err == nil {
		err = send(j.form.closing(result.Finish))
	}
	if err == nil && j.p.StreamOptions != nil && j.p.StreamOptions.IncludeUsage {
		d := s.document(j, inEvents)
		d["usage"] = usageOf(result)
		err = e.send(d)
	}
	if err != nil {
		e.fail(err)
		return
	}
	_ = e.end() // a client that is gone is told nothing
}
