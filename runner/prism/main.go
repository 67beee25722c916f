// Command anelab-prism runs the units of a measurement as an Apache Beam pipeline: on Prism, the local runner that comes with the
// Beam SDK for Go, or on any portable runner that --endpoint names.
//
// It reads a job from standard input, as simulate quality --runner prism writes it, and leaves one shard per unit in the job's
// folder. Units are spread over worker processes, which are this same program; a unit whose shard is there is not done again.
//
// It is a module of its own, because the SDK and its runners bring two hundred modules along.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"

	"anelab/quality"
	"anelab/quality/shards"
)

// request is what standard input holds.
type request struct {
	Job   shards.Job     `json:"job"`
	Units []quality.Unit `json:"units"`
}

var (
	workers  = flag.Int("workers", 2, "worker processes of one Beam worker; 0 measures in the Beam worker itself")
	asWorker = flag.Bool("measure_units", false, "be a worker process: a job and then units on standard input, one a line")
)

func main() {
	flag.Parse()
	if *asWorker {
		exit(serve(context.Background(), os.Stdin, os.Stdout))
	}
	beam.Init() // does not return in a Beam worker
	exit(drive(context.Background(), os.Stdin))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "anelab-prism:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// drive submits the pipeline and waits for it.
func drive(ctx context.Context, in io.Reader) error {
	var r request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("standard input: %w; simulate quality --runner prism writes it", err)
	}
	p, scope := beam.NewPipelineWithRoot()
	pipeline(scope, r, *workers)
	name := *runners.Runner
	if name == "" {
		name = "prism"
	}
	if _, err := beam.Run(ctx, name, p); err != nil {
		return err
	}
	left, err := shards.Missing(r.Job.Folder, r.Units)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("%d of %d shards are not in %s: workers and simulate must share the folder", len(left), len(r.Units), r.Job.Folder)
	}
	return err
}

// pipeline is one unit per element, spread by a reshuffle and measured.
func pipeline(s beam.Scope, r request, processes int) beam.PCollection {
	var elements []string
	for _, u := range r.Units {
		text, err := json.Marshal(u)
		if err != nil {
			panic("anelab-prism: a unit has no JSON form: " + err.Error())
		}
		elements = append(elements, string(text))
	}
	job, err := json.Marshal(r.Job)
	if err != nil {
		panic("anelab-prism: a job has no JSON form: " + err.Error())
	}
	units := beam.Reshuffle(s.Scope("spread"), beam.CreateList(s.Scope("units"), elements))
	return beam.ParDo(s.Scope("measure"), &measureFn{Job: string(job), Processes: processes}, units)
}
