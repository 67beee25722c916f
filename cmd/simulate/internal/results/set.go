package results

import (
	"errors"
	"fmt"
	"io"

	"anelab/internal/format"
)

// Set is records of several files that belong together, each once.
type Set struct {
	Conditions Conditions
	Twice      int // records that were there already

	seen  map[Key]float64 // s
	first string          // file of the first record
}

// Len is the number of records.
func (s *Set) Len() int { return len(s.seen) }

// Add reads a file into the set; keep is called with every record that was not there, and its line.
func (s *Set) Add(path string, file io.Reader, keep func(x Record, line []byte) error) error {
	r := NewReader(path, file)
	for {
		x, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.add(r, &x, keep)
		}
		if err != nil {
			return err
		}
	}
}

func (s *Set) add(r *Reader, x *Record, keep func(Record, []byte) error) error {
	if s.seen == nil {
		s.seen, s.Conditions, s.first = map[Key]float64{}, x.Conditions(), r.path
	}
	if x.Conditions() != s.Conditions {
		return r.fault(r.line, format.Error{Got: "a record of " + x.Conditions().String(), Want: s.Conditions.String() + " as in " + s.first})
	}
	seconds, twice := s.seen[x.Key()]
	switch {
	case twice && seconds != x.TimeS:
		return r.fault(r.line, format.Error{Field: "time_s", Got: fmt.Sprintf("%v s for %s at context %d", x.TimeS, x.Layout, x.Context),
			Want: fmt.Sprintf("%v s as in an earlier record", seconds)})
	case twice:
		s.Twice++
		return nil
	}
	s.seen[x.Key()] = x.TimeS
	return keep(*x, r.Raw())
}
