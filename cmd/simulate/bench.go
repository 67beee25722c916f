package main

import (
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/timing"
	"anelab/cmd/simulate/internal/view"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/internal/kernel"
)

type benchOptions struct {
	output  outputFlags
	mode    string
	kv      string
	threads int
	memory  byteSize
	spec    timing.Spec
}

func newBenchCmd(c *console.Console) *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench CHECKPOINT|PACKED",
		Short: "Time prompts and decoding on this machine",
		Long: `Time the model in tokens per second: prompts (pp512) and decoding after some
context (tg128 @ d2048), with the share of the memory's read rate that decoding
reaches. Medians and ranges of several runs.`,
		Example: `  simulate bench model.anelab
  simulate bench model.anelab -p 512 -n 64 -d 0,2048,8192 --threads 2
  simulate bench model.anelab --mode ane --format benchstat > new.txt`,
		Args: atMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("bench wants a checkpoint or a packed model")
			}
			return runBench(cmd.Context(), c, o, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "f32", "numerics `MODE`")
	complete(cmd, "mode", arith.Modes)
	f.StringVar(&o.kv, "kv", "f16", "stores of keys and values in mode f32: f16 or exact")
	complete(cmd, "kv", []string{"f16", "exact"})
	f.IntVar(&o.threads, "threads", 0, "threads; 0 = all cores")
	f.IntSliceVarP(&o.spec.Prompts, "prompt", "p", []int{512}, "lengths of prompts")
	f.IntVarP(&o.spec.Generate, "generate", "n", 128, "tokens to decode")
	f.IntSliceVarP(&o.spec.Depths, "depth", "d", []int{0, 2048, 8192}, "positions before them")
	f.IntVarP(&o.spec.Repeat, "repeat", "r", 3, "runs of each test")
	addMemory(cmd, &o.memory)
	o.output.add(cmd, "text", "json", "csv", "markdown", "benchstat")
	return cmd
}

func (o *benchOptions) check() error {
	if o.kv != "f16" && o.kv != "exact" {
		return usagef("--kv %s; want f16 or exact", o.kv)
	}
	for _, n := range append(append([]int{o.spec.Generate}, o.spec.Prompts...), o.spec.Depths...) {
		if n < 0 || n > 1<<20 {
			return usagef("%d tokens; want 0 to %d", n, 1<<20)
		}
	}
	o.spec.Prompts = slices.DeleteFunc(o.spec.Prompts, func(n int) bool { return n == 0 })
	if o.spec.Repeat < 1 || o.threads < 0 {
		return usagef("--repeat %d --threads %d; want at least 1 run and 0 threads", o.spec.Repeat, o.threads)
	}
	return nil
}

func runBench(ctx context.Context, c *console.Console, o *benchOptions, path string) error {
	if err := o.check(); err != nil {
		return err
	}
	r := &view.Bench{Made: made(c), Checkpoint: path, Mode: o.mode, Threads: o.threads, Kernel: kernel.Path()}
	if r.Threads == 0 {
		r.Threads = runtime.GOMAXPROCS(0)
	}
	start := time.Now()
	m, closer, err := o.load(path, r)
	if err != nil {
		return err
	}
	defer closer()
	if err := firstToken(ctx, m); err != nil {
		return err
	}
	r.LoadSeconds = time.Since(start).Seconds()
	r.StepBytes, r.KVBytes = m.StepBytes(), m.KVBytes(o.spec.Context())
	progress := c.Progress()
	err = timing.Run(ctx, m, o.spec, func(t timing.Test) {
		progress.Say("%s: %.1f tok/s", t.Name, t.Rate())
		r.Tests = append(r.Tests, t)
	})
	progress.Done()
	if err != nil {
		return err
	}
	r.PeakRSSBytes = timing.PeakRSS() // before the arena below
	r.RoofBytesPerSecond = kernel.SharedPool(r.Threads).ReadRate(arena(), 4)
	return o.output.emit(c, r)
}

// arena is memory that no cache holds, every page of it real.
func arena() []byte {
	b := make([]byte, 1<<29)
	for i := 0; i < len(b); i += 512 {
		b[i] = 1
	}
	return b
}

// load opens the checkpoint, after saying no where memory cannot hold it.
func (o *benchOptions) load(path string, r *view.Bench) (*gemma4.Model, func() error, error) {
	if _, err := arith.New(o.mode, 1); err != nil {
		return nil, nil, usageError{err}
	}
	src, err := openCheckpoint(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		r.FileBytes = info.Size()
	}
	options := gemma4.Options{}
	if o.kv == "f16" {
		options.KV = gemma4.KVFloat16
	}
	if err := (demand{o.mode, options, o.spec.Context(), 1}).fits(src, o.memory); err != nil {
		src.Close()
		return nil, nil, err
	}
	a, err := src.Arithmetic(o.mode, o.threads)
	var m *gemma4.Model
	if err == nil {
		m, err = gemma4.Load(src.Config, src, a, options)
	}
	if err != nil {
		src.Close()
		return nil, nil, err
	}
	return m, src.Close, nil
}

func firstToken(ctx context.Context, m *gemma4.Model) error {
	s, err := m.NewState(1)
	if err != nil {
		return err
	}
	_, err = s.Step(ctx, m.Config.BOSTokenID)
	return err
}
