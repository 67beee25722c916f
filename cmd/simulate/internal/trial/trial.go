package trial

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"anelab"
	"anelab/chunking"
	"anelab/internal/checkpoint"
	"anelab/internal/format"
	"anelab/internal/tokenizer"
	"anelab/quality"
	"anelab/quant"
)

// Subject is what trials are of.
type Subject struct {
	Name    string
	Model   *chunking.Model
	Set     *quality.Set
	Sum     string // fingerprint of the checkpoint
	Runner  *quality.Runner
	weights *checkpoint.Checkpoint
}

// The recall miniature in 4 bits, and the sequences that come with it.
const (
	embeddedModel = "testdata/recall/recall.anelab.gz"
	embeddedSet   = "testdata/recall/eval.safetensors"
	embeddedName  = "recall (embedded, 4 bits)"
	besideModel   = "eval.safetensors"
)

// Sources say what the sequences are: an evaluation file, or a text cut into sequences. Without either it is the evaluation file beside
// the checkpoint.
type Sources struct {
	Eval      string
	Text      string
	Tokenizer string // of the text; "" = beside the checkpoint
	Length    int    // of a sequence of the text, in tokens
}

// Open opens a checkpoint and its sequences. No path is the embedded miniature.
func Open(path string, from Sources, threads int) (*Subject, error) {
	s := &Subject{Name: path}
	var err error
	if path == "" {
		s.Name = embeddedName
		s.weights, err = openEmbedded()
	} else {
		s.weights, err = checkpoint.Open(path)
	}
	if err != nil {
		return nil, err
	}
	if err := s.prepare(path, from, threads); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Subject) prepare(path string, from Sources, threads int) error {
	var err error
	if s.Model, err = chunking.NewModel(s.weights.Config); err != nil {
		return err
	}
	if from.Text != "" {
		s.Set, err = textSet(path, from, s.weights.Config.VocabSize)
	} else {
		s.Set, err = openSet(path, from.Eval)
	}
	if err != nil {
		return err
	}
	if s.Sum, err = quality.Fingerprint(s.weights.Config, s.weights); err != nil {
		return err
	}
	s.Runner = quality.NewRunner(quality.Inputs{Config: s.weights.Config, Source: s.weights, Checkpoint: s.Sum, Set: s.Set, Threads: threads})
	return nil
}

// Close releases the checkpoint.
func (s *Subject) Close() { s.weights.Close() }

func openEmbedded() (*checkpoint.Checkpoint, error) {
	data, err := embeddedBytes()
	if err != nil {
		return nil, err
	}
	return checkpoint.Parse(embeddedModel, data)
}

// embeddedBytes is the packed model that comes with the program.
func embeddedBytes() ([]byte, error) {
	packed, err := anelab.Files.ReadFile(embeddedModel)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// openSet finds the evaluation file.
func openSet(path, eval string) (*quality.Set, error) {
	if path == "" && eval == "" {
		data, err := anelab.Files.ReadFile(embeddedSet)
		if err != nil {
			return nil, err
		}
		return quality.ParseSet(embeddedSet, data)
	}
	given := eval != ""
	if !given {
		eval = filepath.Join(folderOf(path), besideModel)
	}
	set, err := quality.OpenSet(eval)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return nil, &format.Error{Path: eval, Got: "no evaluation file beside the checkpoint", Want: "safetensors with input_ids and, for recall, questions",
			Fix: "name one with --eval, or a text with --text"}
	}
	return set, err
}

// folderOf is path itself, or the directory of a file.
func folderOf(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// textSet makes sequences of a text with the checkpoint's own vocabulary.
func textSet(path string, from Sources, rows int) (*quality.Set, error) {
	vocabulary := from.Tokenizer
	if vocabulary == "" {
		vocabulary = folderOf(path)
	}
	t, err := tokenizer.Open(vocabulary)
	if err != nil {
		return nil, err
	}
	if err := t.Matches(rows); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(from.Text)
	if err != nil {
		return nil, &format.Error{Path: from.Text, Err: err}
	}
	ids, err := t.Encode(string(text))
	if err != nil {
		return nil, err
	}
	return quality.NewTextSet(t.Prompt(nil), ids, from.Length)
}

// Trial is one layout in one encoding and mode.
type Trial struct {
	Layout  chunking.Layout
	Text    string // as it was asked for
	Weights string
	Mode    string
	Unit    quality.Unit
	Sums    quality.Sums
}

// Unit names the work of a trial on the first n sequences. A chunk with an encoding of its own in the layout has that one, all
// others the trial's.
func (s *Subject) Unit(t *Trial, tasks []quality.Task, n int) error {
	t.Unit = quality.Unit{Checkpoint: s.Sum, Set: s.Set.Sum, Count: min(n, len(s.Set.Sequences)), Tasks: tasks, Mode: t.Mode}
	policies, err := t.Layout.Policies(s.Model)
	if err != nil {
		return err
	}
	for _, y := range s.Model.Layers { // saying what a layer does anyway makes no other unit
		if p, ok := policies[y.Index]; ok && p.String() == y.Policy().String() {
			delete(policies, y.Index)
		}
	}
	t.Unit.SetAttn(policies)
	if err := t.Unit.SetWeights(t.Weights, len(s.Model.Layers)); err != nil {
		return err
	}
	for _, c := range t.Layout.Cuts {
		if c.Weights != (quant.Encoding{}) {
			t.Unit.SetLayers(c.Lo, c.Hi, c.Weights)
			if c.Head {
				t.Unit.Head = c.Weights.String()
			}
		}
	}
	return nil
}

// partSize is how many sequences a part has: few enough for progress and for workers, enough that loading a model does not count.
const partSize = 8

// Run measures the trials in order. progress is called after every part.
func (s *Subject) Run(ctx context.Context, trials []*Trial, progress func(done, total int)) error {
	total, done := 0, 0
	for _, t := range trials {
		total += len(t.Unit.Parts(partSize))
	}
	for _, t := range trials {
		for _, part := range t.Unit.Parts(partSize) {
			sums, err := s.Runner.Run(ctx, part)
			if err != nil {
				return err
			}
			t.Sums.Add(&sums)
			done++
			progress(done, total)
		}
	}
	return nil
}
