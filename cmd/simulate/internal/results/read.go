package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"anelab/internal/format"
)

// maxLine is far above any record; a longer line is no record.
const maxLine = 1 << 20

// Reader reads records line by line.
type Reader struct {
	path  string
	lines *bufio.Scanner
	line  int
}

// NewReader reads records of a file; path is for messages only.
func NewReader(path string, r io.Reader) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	return &Reader{path: path, lines: lines}
}

// Line is the number of the line that was read last, from 1.
func (r *Reader) Line() int { return r.line }

// Raw is the line that was read last; it is valid until the next one.
func (r *Reader) Raw() []byte { return r.lines.Bytes() }

// Next returns the next record, io.EOF behind the last one. Empty lines are skipped.
func (r *Reader) Next() (Record, error) {
	for r.lines.Scan() {
		r.line++
		if len(bytes.TrimSpace(r.lines.Bytes())) > 0 {
			return r.record(r.lines.Bytes())
		}
	}
	if err := r.lines.Err(); err != nil {
		return Record{}, r.fault(r.line+1, format.Error{Err: err, Want: "a record per line"})
	}
	return Record{}, io.EOF
}

func (r *Reader) record(line []byte) (Record, error) {
	var x Record
	if err := json.Unmarshal(line, &x); err != nil {
		return x, r.fault(r.line, format.Error{Err: err, Want: "a record of simulate sweep --format jsonl"})
	}
	switch {
	case x.Layout == "" || x.Model == "" || x.Device == "" || x.Context < 1:
		return x, r.fault(r.line, format.Error{Got: "no layout, model, device or context", Want: "a record of simulate sweep --format jsonl"})
	case !(x.TimeS > 0) || math.IsInf(x.TimeS, 0):
		return x, r.fault(r.line, format.Error{Field: "time_s", Got: fmt.Sprint(x.TimeS), Want: "seconds above zero"})
	}
	return x, nil
}

func (r *Reader) fault(line int, e format.Error) error {
	e.Path = fmt.Sprintf("%s:%d", r.path, line)
	return &e
}
