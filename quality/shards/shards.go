package shards

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"anelab/internal/atomicfile"
	"anelab/internal/checkpoint"
	"anelab/internal/format"
	"anelab/quality"
)

// Job is what workers of one measurement share: paths, which all of them must be able to read.
type Job struct {
	Checkpoint string `json:"checkpoint"`
	Set        string `json:"set"`     // as [WriteSet] named it
	Folder     string `json:"folder"`  // of the shards
	Threads    int    `json:"threads"` // of one worker; 0 = all cores
}

// Worker does units of a job. It keeps the models of the last unit. Not safe for concurrent use.
type Worker struct {
	folder     string
	checkpoint *checkpoint.Checkpoint
	runner     *quality.Runner
}

// Open opens what the job names.
func Open(j Job) (*Worker, error) {
	set, err := readSet(j.Set)
	if err != nil {
		return nil, err
	}
	c, err := checkpoint.Open(j.Checkpoint)
	if err != nil {
		return nil, err
	}
	sum, err := quality.Fingerprint(c.Config, c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	in := quality.Inputs{Config: c.Config, Source: c, Checkpoint: sum, Set: set, Threads: j.Threads}
	return &Worker{folder: j.Folder, checkpoint: c, runner: quality.NewRunner(in)}, nil
}

// Close releases the checkpoint.
func (w *Worker) Close() error { return w.checkpoint.Close() }

// Do leaves a unit's shard in the folder; one that is there already is not made again.
func (w *Worker) Do(ctx context.Context, u quality.Unit) error {
	if _, done, err := Read(w.folder, u); done || err != nil {
		return err
	}
	sums, err := w.runner.Run(ctx, u)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(w.folder, u.File()), quality.Result{Unit: u, Sums: sums}.Encode())
}

// Read is the sums of a unit, if they are there.
func Read(folder string, u quality.Unit) (sums quality.Sums, done bool, err error) {
	path := filepath.Join(folder, u.File())
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sums, false, nil
	}
	if err != nil {
		return sums, false, &format.Error{Path: path, Err: err}
	}
	sums, err = quality.ParseResult(path, text, u)
	return sums, err == nil, err
}

// Missing are the units without a shard.
func Missing(folder string, units []quality.Unit) ([]quality.Unit, error) {
	var all []quality.Unit
	for _, u := range units {
		_, done, err := Read(folder, u)
		if err != nil {
			return nil, err
		}
		if !done {
			all = append(all, u)
		}
	}
	return all, nil
}

// WriteFile names a file when it is whole.
func WriteFile(path string, content []byte) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return &format.Error{Path: path, Err: err}
	}
	if _, err := f.Write(content); err != nil {
		f.Discard()
		return &format.Error{Path: path, Err: err}
	}
	return f.Commit()
}
