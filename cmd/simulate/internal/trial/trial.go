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

// Open opens a checkpoint and an evaluation file. No path is the embedded miniature; no evaluation file is the one beside the
// checkpoint.
func Open(path, eval string, threads int) (*Subject, error) {
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
	if err := s.prepare(path, eval, threads); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Subject) prepare(path, eval string, threads int) error {
	var err error
	if s.Model, err = chunking.NewModel(s.weights.Config); err != nil {
		return err
	}
	if s.Set, err = openSet(path, eval); err != nil {
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
	packed, err := anelab.Files.ReadFile(embeddedModel)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return checkpoint.Parse(embeddedModel, data)
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
		eval = path
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			eval = filepath.Dir(path)
		}
		eval = filepath.Join(eval, besideModel)
	}
	set, err := quality.OpenSet(eval)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return nil, &format.Error{Path: eval, Got: "no evaluation file beside the checkpoint", Want: "safetensors with input_ids and, for recall, questions",
			Fix: "name one with --eval"}
	}
	return set, err
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
	t.Unit.SetAttn(policies)
	if err := t.Unit.SetWeights(t.Weights, len(s.Model.Layers)); err != nil {
		return err
	}
	for _, c := range t.Layout.Cuts {
		if c.Weights != (quant.Encoding{}) {
			t.Unit.SetLayers(c.Lo, c.Hi, c.Weights)
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
