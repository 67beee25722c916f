package anesim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// WriteTrace writes a timeline as Chrome trace events, which chrome://tracing and ui.perfetto.dev open. One event per line,
// so that two traces can be compared as text. Times are microseconds with three decimals: nanoseconds exactly.
func (t Timeline) WriteTrace(w io.Writer, title string) error {
	b := &traceWriter{w: bufio.NewWriter(w)}
	b.line(`{"displayTimeUnit":"ms","otherData":{"title":%s},"traceEvents":[`, jsonText(title))
	b.event(`{"ph":"M","pid":1,"name":"process_name","args":{"name":%s}}`, jsonText(title))
	for track := range NumTracks {
		b.event(`{"ph":"M","pid":1,"tid":%d,"name":"thread_name","args":{"name":%s}}`, track+1, jsonText(track.String()))
		b.event(`{"ph":"M","pid":1,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, track+1, track+1)
	}
	for _, s := range t.Spans {
		b.event(`{"ph":"X","pid":1,"tid":%d,"name":%s,"ts":%s,"dur":%s,"args":{%s}}`, s.Track+1, jsonText(s.Name), micros(s.Start), micros(s.End-s.Start), s.args())
	}
	for _, c := range t.Counters {
		b.event(`{"ph":"C","pid":1,"name":%s,"ts":%s,"args":{"value":%.3f}}`, jsonText(c.Name), micros(c.At), c.Value)
	}
	b.line("\n]}\n")
	if b.err == nil {
		b.err = b.w.Flush()
	}
	return b.err
}

// args say what a span moves and to which chunk it belongs, counted from 1 as in messages.
func (s Span) args() string {
	switch {
	case s.Bytes > 0 && s.End > s.Start:
		return fmt.Sprintf(`"chunk":%d,"bytes":%d,"gb_per_s":%.1f`, s.Chunk+1, s.Bytes, float64(s.Bytes)/float64(s.End-s.Start))
	case s.Chunk >= 0:
		return fmt.Sprintf(`"chunk":%d`, s.Chunk+1)
	}
	return ""
}

// Three decimals of a microsecond are nanoseconds, without a float in between.
func micros(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }

// Names hold layout text, which has bars and plus signs but may one day have quotes.
func jsonText(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic("anesim: a string that JSON cannot hold")
	}
	return string(data)
}

// traceWriter keeps the first error and puts commas between events.
type traceWriter struct {
	w      *bufio.Writer
	events int
	err    error
}

func (b *traceWriter) line(text string, args ...any) {
	if b.err == nil {
		_, b.err = fmt.Fprintf(b.w, text, args...)
	}
}

// The comma comes before the event: the last one has none behind it, and no event is held back.
func (b *traceWriter) event(text string, args ...any) {
	separator := ",\n"
	if b.events == 0 {
		separator = "\n"
	}
	b.events++
	b.line(separator+text, args...)
}
