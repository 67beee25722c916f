package serve

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// events sends server-sent events. The status goes out with the first, so until then an error can still be an answer of its own.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	patient time.Duration
	begun   bool
}

func newEvents(w http.ResponseWriter, patient time.Duration) *events {
	return &events{w: w, control: http.NewResponseController(w), patient: patient}
}

// send writes one event and waits until it is on its way; a client that does not take it is given up.
func (e *events) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.write(data)
}

func (e *events) write(data []byte) error {
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-cache")
		e.w.WriteHeader(http.StatusOK)
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(e.patient)) // not every connection knows deadlines
	var b bytes.Buffer
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	if _, err := e.w.Write(b.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}

// end says that nothing follows.
func (e *events) end() error { return e.write([]byte("[DONE]")) }

// fail tells of an error, as an answer or, where one has begun, as its last event.
func (e *events) fail(err error) {
	if !e.begun {
		refuse(e.w, err)
		return
	}
	_ = e.send(asFault(err).document()) // a client that is gone is told nothing
}
