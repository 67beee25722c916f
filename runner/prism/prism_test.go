package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"anelab/internal/checkpoint"
	"anelab/quality"
	"anelab/quality/shards"
)

// TestMain makes the test binary its own worker process, as the program is.
func TestMain(m *testing.M) {
	flag.Parse()
	if *asWorker {
		exit(serve(context.Background(), os.Stdin, os.Stdout))
	}
	beam.Init()
	os.Exit(m.Run())
}

// job is the tiny checkpoint of the repository over a made-up text.
func job(t *testing.T) request {
	t.Helper()
	path, err := filepath.Abs("../../testdata/golden/tiny-e2b/bf16")
	must(t, err)
	c, err := checkpoint.Open(path)
	must(t, err)
	defer c.Close()
	sum, err := quality.Fingerprint(c.Config, c)
	must(t, err)
	var tokens []int
	for i := range 9 * 11 {
		tokens = append(tokens, (i*i*5+i)%300)
	}
	set, err := quality.NewTextSet([]int{2}, tokens, 12)
	must(t, err)
	r := request{Job: shards.Job{Checkpoint: path, Folder: t.TempDir(), Threads: 1}}
	r.Job.Set, err = shards.WriteSet(r.Job.Folder, set)
	must(t, err)
	r.Units = quality.Unit{Checkpoint: sum, Set: set.Sum, Count: len(set.Sequences), Tasks: []quality.Task{quality.PPL}, Mode: "f32"}.Parts(1)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shardsOf are the bytes of all shards.
func shardsOf(t *testing.T, r request) (all []string) {
	t.Helper()
	for _, u := range r.Units {
		text, err := os.ReadFile(filepath.Join(r.Job.Folder, u.File()))
		must(t, err)
		all = append(all, string(text))
	}
	return all
}

func run(t *testing.T, r request) {
	t.Helper()
	text, err := json.Marshal(r)
	must(t, err)
	must(t, drive(context.Background(), bytes.NewReader(text)))
}

// invariant: a pipeline on Prism with two worker processes leaves the shards that one process makes, byte for byte; with some of
// them gone, as after a kill, it makes those again and the same.
func TestPipelineEqualsOneProcess(t *testing.T) {
	here := job(t)
	w, err := shards.Open(here.Job)
	must(t, err)
	defer w.Close()
	for _, u := range here.Units {
		must(t, w.Do(context.Background(), u))
	}
	want := shardsOf(t, here)

	there := job(t)
	run(t, there)
	if got := shardsOf(t, there); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal("shards of the pipeline differ")
	}
	kept, err := os.Stat(filepath.Join(there.Job.Folder, there.Units[0].File()))
	must(t, err)
	for _, u := range there.Units[3:] {
		must(t, os.Remove(filepath.Join(there.Job.Folder, u.File())))
	}
	run(t, there)
	if got := shardsOf(t, there); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal("shards after a rerun differ")
	}
	again, err := os.Stat(filepath.Join(there.Job.Folder, there.Units[0].File()))
	must(t, err)
	if !os.SameFile(kept, again) {
		t.Fatal("a finished shard was made again")
	}
}

// invariant: a worker process that is killed fails its unit, and the next unit gets a new process.
func TestKilledWorkerIsReplaced(t *testing.T) {
	r := job(t)
	self, err := os.Executable()
	must(t, err)
	c, err := newCrew(self, r.Job, 1)
	must(t, err)
	ctx := context.Background()
	m, err := c.free(ctx)
	must(t, err)
	must(t, m.do(ctx, r.Units[0]))
	must(t, m.command.Process.Kill())
	if err := m.do(ctx, r.Units[1]); err == nil {
		t.Fatal("a killed process answered")
	}
	must(t, m.do(ctx, r.Units[1]))
	must(t, m.end())
	c.back(m)

	stranger := r.Units[2]
	stranger.Set = "0"
	m, err = c.free(ctx)
	must(t, err)
	if err := m.do(ctx, stranger); err == nil {
		t.Fatal("a unit of another set was measured")
	}
	must(t, m.do(ctx, r.Units[2])) // the process is still there
	must(t, m.end())
}
