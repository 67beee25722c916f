package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/trial"
	"anelab/internal/format"
	"anelab/quality"
	"anelab/quality/shards"
)

// elsewhereFlags say who measures, if not this process.
type elsewhereFlags struct {
	runner   choice
	shards   string
	workers  int
	endpoint string
}

// Runners of --runner.
const (
	runHere     = "here"
	prismRunner = "prism"
)

// runnerProgram is looked for beside simulate, then in the PATH; runnerEnv names another.
const (
	runnerProgram = "anelab-prism"
	runnerEnv     = "ANELAB_RUNNER"
)

func (f *elsewhereFlags) add(cmd *cobra.Command) {
	f.runner = choice{runHere, []string{runHere, prismRunner}, "RUNNER"}
	addChoice(cmd, "runner", "who measures: this process, or an Apache Beam pipeline", &f.runner)
	cmd.Flags().StringVar(&f.shards, "shards", "quality.shards", "with --runner: `DIR` of finished parts; a rerun does only what is missing there")
	cmd.Flags().IntVar(&f.workers, "workers", 2, "with --runner: worker processes")
	cmd.Flags().StringVar(&f.endpoint, "endpoint", "", "with --runner: `HOST:PORT` of a Beam job server, such as Flink's (default: a Prism of its own)")
}

func (f *elsewhereFlags) check() error {
	if f.workers < 1 || f.workers > 1024 {
		return usagef("--workers %d: want 1 to 1024", f.workers)
	}
	if f.runner.value == runHere && f.endpoint != "" {
		return usagef("--endpoint %s without --runner; add --runner %s", f.endpoint, prismRunner)
	}
	return nil
}

// run has the parts of trials measured that are not in the folder yet, and adds up all of them in their order.
func (f *elsewhereFlags) run(ctx context.Context, c *console.Console, s *trial.Subject, trials []*trial.Trial) error {
	units := trial.Parts(trials)
	job, err := s.Job(f.shards, 1) // cores are shared by processes
	if err != nil {
		return &format.Error{Path: f.shards, Err: reason(err), Want: "a folder for finished parts"}
	}
	left, err := shards.Missing(job.Folder, units)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		if err := f.measure(ctx, c, job, left); err != nil {
			return err
		}
	}
	return trial.Collect(job.Folder, trials)
}

// measure runs the program and shows how many shards are there.
func (f *elsewhereFlags) measure(ctx context.Context, c *console.Console, job shards.Job, units []quality.Unit) error {
	program, err := findRunner(c)
	if err != nil {
		return err
	}
	request, err := json.Marshal(struct {
		Job   shards.Job     `json:"job"`
		Units []quality.Unit `json:"units"`
	}{job, units})
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, f.arguments()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), &said, &said
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	progress := c.Progress()
	defer progress.Done()
	for {
		select {
		case err := <-ended:
			return f.outcome(err, job, units, &said)
		case <-time.After(500 * time.Millisecond):
			if left, err := shards.Missing(job.Folder, units); err == nil {
				progress.Say("%d of %d parts measured", len(units)-len(left), len(units))
			}
		}
	}
}

// arguments of the runner: with an endpoint the pipeline goes to a job server, and its workers run in this machine's process unless
// the runner is told otherwise.
func (f *elsewhereFlags) arguments() []string {
	args := []string{"--workers", fmt.Sprint(f.workers)}
	if f.endpoint != "" {
		args = append(args, "--runner", "universal", "--endpoint", f.endpoint, "--environment_type", "LOOPBACK")
	}
	return args
}

// outcome is what the end of the runner means: all shards, or how far it came and its last words.
func (f *elsewhereFlags) outcome(err error, job shards.Job, units []quality.Unit, said *bytes.Buffer) error {
	left, missing := shards.Missing(job.Folder, units)
	if missing != nil {
		return missing
	}
	if err == nil && len(left) == 0 {
		return nil
	}
	end := "ended"
	if err != nil {
		end = err.Error()
	}
	return &format.Error{Path: runnerProgram, Got: fmt.Sprintf("%s with %d of %d parts to do%s", end, len(left), len(units), lastWords(said.String())),
		Want: "all parts", Fix: "run the same command again: what is done stays done"}
}

// lastWords are the runner's own last line among the logs of Beam; nothing if it died without one.
func lastWords(said string) string {
	lines := strings.Split(said, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if own, is := strings.CutPrefix(lines[i], runnerProgram+": "); is {
			return ": " + own
		}
	}
	return ""
}

// findRunner looks for the program beside this one, then in the PATH.
func findRunner(c *console.Console) (string, error) {
	if path := c.Getenv(runnerEnv); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", &format.Error{Path: path, Got: reason(err).Error(), Want: "the runner, as " + runnerEnv + " says"}
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), runnerProgram)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(runnerProgram)
	if err != nil {
		return "", &format.Error{Path: runnerProgram, Got: "no such program", Want: "the runner beside simulate or in the PATH",
			Fix: "build it, it is a module of its own: cd runner/prism && go build -o $(go env GOPATH)/bin/" + runnerProgram + " ."}
	}
	return path, nil
}
