package quality

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

	"anelab/internal/checkpoint/safetensors"
	"anelab/internal/format"
)

// Set is sequences to score a model on.
type Set struct {
	Sequences []Sequence
	// ScoreFrom is the least token id that counts as a target of perplexity: in the language of the recall miniature markers, keys
	// and values lie below it and cannot be predicted.
	ScoreFrom int
	// Sum is the SHA-256 of the file, in hex.
	Sum string
}

// Sequence is one text.
type Sequence struct {
	Tokens    []int
	Questions []Question
	Topics    []int // positions whose next token is the topic, Tokens[1]
}

// Question asks at position At for the value planted before it.
type Question struct {
	At       int // the logits here predict the answer
	Value    int // position of the planted value
	Answer   int // its token
	Distance int // At − Value
}

// filler is the least id of filler symbols in the language of the recall miniature.
const filler = 160

// limits of a set: far above any, low enough that sizes cannot overflow.
const (
	maxSequences = 1 << 20
	maxLength    = 1 << 20
)

// OpenSet reads an evaluation file: safetensors with input_ids [N, T] and, for questions, query_pos, value_pos, answer and
// distance [N, Q] and topic_pos [N, P], all I32.
func OpenSet(path string) (*Set, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: err}
	}
	return ParseSet(path, data)
}

// ParseSet is [OpenSet] on bytes.
func ParseSet(path string, data []byte) (*Set, error) {
	file, err := safetensors.Parse(path, data)
	if err != nil {
		return nil, err
	}
	r := &setReader{file: file}
	ids := r.table("input_ids", 0)
	set := &Set{Sequences: make([]Sequence, ids.rows)}
	for i := range set.Sequences {
		set.Sequences[i].Tokens = ids.row(i)
	}
	if file.Has("query_pos") {
		set.ScoreFrom = filler
		r.questions(set)
	}
	if r.err != nil {
		return nil, r.err
	}
	sum := sha256.Sum256(data)
	set.Sum = hex.EncodeToString(sum[:])
	return set, set.check(path)
}

// NewTextSet cuts tokens of a text into sequences of so many, each behind the tokens that begin one. A shorter rest is left out. Every
// token behind the beginning is scored.
func NewTextSet(begin, tokens []int, length int) (*Set, error) {
	step := length - len(begin)
	if step < 1 || len(tokens) < step {
		return nil, &format.Error{Field: "text", Got: fmt.Sprintf("%d tokens", len(tokens)), Want: fmt.Sprintf("at least one sequence of %d", length), Fix: "give a longer text or shorter sequences"}
	}
	set := &Set{}
	h := sha256.New()
	for at := 0; at+step <= len(tokens) && len(set.Sequences) < maxSequences; at += step {
		ids := append(slices.Clone(begin), tokens[at:at+step]...)
		set.Sequences = append(set.Sequences, Sequence{Tokens: ids})
		fmt.Fprintln(h, ids)
	}
	set.Sum = hex.EncodeToString(h.Sum(nil))
	return set, nil
}

// setReader reads tables; the first error sticks.
type setReader struct {
	file *safetensors.Set
	err  error
}

// table is a matrix of whole numbers.
type table struct {
	rows, cols int
	data       []float64
}

func (t table) row(i int) []int {
	row := make([]int, t.cols)
	for k := range row {
		row[k] = int(t.data[i*t.cols+k])
	}
	return row
}

// table reads a matrix of so many rows; 0 takes any number of them.
func (r *setReader) table(name string, rows int) table {
	if r.err != nil {
		return table{}
	}
	t, err := r.file.Tensor(name)
	if err != nil {
		r.err = err
		return table{}
	}
	if len(t.Shape) != 2 || t.DType.Float() || t.Shape[0] < 1 || t.Shape[1] < 1 || t.Shape[0] > maxSequences || t.Shape[1] > maxLength || rows > 0 && t.Shape[0] != rows {
		r.err = &format.Error{Path: r.file.Path(), Field: name, Got: fmt.Sprintf("%s %v", t.DType, t.Shape), Want: "a matrix of integers with a row for every sequence"}
		return table{}
	}
	out := table{rows: t.Shape[0], cols: t.Shape[1]}
	out.data, r.err = t.Float64s()
	return out
}

func (r *setReader) questions(set *Set) {
	n := len(set.Sequences)
	at, value, answer, distance := r.table("query_pos", n), r.table("value_pos", n), r.table("answer", n), r.table("distance", n)
	topic := r.table("topic_pos", n)
	if r.err != nil {
		return
	}
	if value.cols != at.cols || answer.cols != at.cols || distance.cols != at.cols {
		r.err = &format.Error{Path: r.file.Path(), Field: "query_pos", Got: "question tables of different widths", Want: "a column for every question in all of them"}
		return
	}
	for i := range set.Sequences {
		s := &set.Sequences[i]
		s.Topics = topic.row(i)
		a, v, w, d := at.row(i), value.row(i), answer.row(i), distance.row(i)
		for q := range a {
			s.Questions = append(s.Questions, Question{At: a[q], Value: v[q], Answer: w[q], Distance: d[q]})
		}
	}
}

// check makes sure that questions point into their sequences and say the same as the tokens.
func (s *Set) check(path string) error {
	fault := func(i int, what string, got, want int) error {
		return &format.Error{Path: path, Field: fmt.Sprintf("sequence %d: %s", i, what), Got: fmt.Sprint(got), Want: fmt.Sprint(want),
			Fix: "were tokens and questions made together?"}
	}
	for i := range s.Sequences {
		q := &s.Sequences[i]
		n := len(q.Tokens)
		for _, id := range q.Tokens {
			if id < 0 {
				return fault(i, "token", id, 0)
			}
		}
		for _, x := range q.Questions {
			switch {
			case x.Value < 0 || x.At <= x.Value || x.At+1 >= n:
				return &format.Error{Path: path, Field: fmt.Sprintf("sequence %d", i), Got: fmt.Sprintf("a question at %d about position %d", x.At, x.Value),
					Want: fmt.Sprintf("positions 0 to %d, the value first", n-2)}
			case x.Distance != x.At-x.Value:
				return fault(i, "distance", x.Distance, x.At-x.Value)
			case x.Answer != q.Tokens[x.At+1] || x.Answer != q.Tokens[x.Value]:
				return fault(i, "answer", x.Answer, q.Tokens[x.Value])
			}
		}
		for _, t := range q.Topics {
			if t < 0 || t+1 >= n || n < 2 || q.Tokens[t+1] != q.Tokens[1] {
				return &format.Error{Path: path, Field: fmt.Sprintf("sequence %d: topic_pos", i), Got: fmt.Sprint(t), Want: "a position followed by the sequence's second token"}
			}
		}
	}
	return nil
}

// MaxToken is the greatest id in the set.
func (s *Set) MaxToken() int {
	most := 0
	for i := range s.Sequences {
		for _, id := range s.Sequences[i].Tokens {
			most = max(most, id)
		}
	}
	return most
}

// MaxLength is the number of tokens of the longest sequence.
func (s *Set) MaxLength() int {
	most := 0
	for i := range s.Sequences {
		most = max(most, len(s.Sequences[i].Tokens))
	}
	return most
}
