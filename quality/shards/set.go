package shards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"anelab/internal/format"
	"anelab/quality"
)

// WriteSet puts the sequences of a measurement where its workers find them, under their sum. Whatever the set was made from, a file
// of questions or a text, workers read this.
func WriteSet(folder string, s *quality.Set) (path string, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		panic("shards: a set has no JSON form: " + err.Error())
	}
	path = filepath.Join(folder, s.Sum+".set.json")
	return path, WriteFile(path, text)
}

// maxSet bounds what is read into memory.
const maxSet = 1 << 30

func readSet(path string) (*quality.Set, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	if info.Size() > maxSet {
		return nil, &format.Error{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()), Want: "sequences of at most 1 GiB"}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	return parseSet(path, text)
}

func parseSet(path string, text []byte) (*quality.Set, error) {
	var s quality.Set
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, &format.Error{Path: path, Err: err, Want: "sequences that simulate wrote"}
	}
	for i, q := range s.Sequences {
		for _, t := range q.Tokens {
			if t < 0 {
				return nil, &format.Error{Path: path, Field: fmt.Sprintf("sequence %d", i), Got: fmt.Sprintf("token %d", t), Want: "tokens from 0 on"}
			}
		}
		for _, x := range q.Questions {
			if x.At < 0 || x.At >= len(q.Tokens) || x.Answer < 0 || x.Distance < 0 {
				return nil, &format.Error{Path: path, Field: fmt.Sprintf("sequence %d", i), Got: fmt.Sprintf("a question at %d about %d", x.At, x.Answer), Want: "one within the sequence"}
			}
		}
		if len(q.Tokens) == 0 {
			return nil, &format.Error{Path: path, Field: fmt.Sprintf("sequence %d", i), Got: "no tokens", Want: "at least one"}
		}
	}
	return &s, nil
}
