package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/trial"
	"anelab/cmd/simulate/internal/view"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/quality"
	"anelab/quant"
)

// measureFlags say what is measured, and on what.
type measureFlags struct {
	from      trial.Sources
	weights   []string
	modes     []string
	sequences int
	threads   int
	memory    byteSize
	elsewhere elsewhereFlags
}

func (f *measureFlags) add(cmd *cobra.Command) {
	f.addSources(cmd)
	cmd.Flags().StringSliceVar(&f.weights, "weights", []string{quality.Stored}, "`ENCODING` of linears: stored, or one such as int4g32, with +tables for the embeddings too; or several")
	complete(cmd, "weights", append([]string{quality.Stored}, quant.Encodings...))
	cmd.Flags().StringSliceVar(&f.modes, "mode", []string{"f32"}, "numerics `MODE`, or several")
	complete(cmd, "mode", arith.Modes)
	cmd.Flags().IntVar(&f.sequences, "sequences", 16, "how many sequences of the file, at most")
	cmd.Flags().IntVar(&f.threads, "threads", 0, "threads; 0 = all cores")
	addMemory(cmd, &f.memory)
	f.elsewhere.add(cmd)
}

// addSources declares where sequences come from.
func (f *measureFlags) addSources(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.from.Eval, "eval", "", "evaluation `FILE` (default eval.safetensors beside the checkpoint)")
	cmd.Flags().StringVar(&f.from.Text, "text", "", "cut a text `FILE` into sequences instead; it has no questions")
	cmd.Flags().StringVar(&f.from.Tokenizer, "tokenizer", "", "vocabulary of the text: a tokenizer.json, a folder with one, or a .gguf `FILE` (default beside the checkpoint)")
	cmd.Flags().IntVar(&f.from.Length, "length", 512, "tokens of a sequence of the text")
}

// check refuses values that no checkpoint could make right.
func (f *measureFlags) check() error {
	if err := f.elsewhere.check(); err != nil {
		return err
	}
	if f.sequences < 1 || f.threads < 0 {
		return usagef("--sequences %d --threads %d: want at least 1 and 0", f.sequences, f.threads)
	}
	if f.from.Eval != "" && f.from.Text != "" || f.from.Length < 2 || f.from.Length > maxLength {
		return usagef("--eval %q --text %q --length %d: want one file, and 2 to %d tokens", f.from.Eval, f.from.Text, f.from.Length, maxLength)
	}
	for _, m := range f.modes {
		if _, err := arith.New(m, 1); err != nil {
			return usagef("--mode %s: %w", m, err)
		}
	}
	for _, w := range f.weights {
		var u quality.Unit
		if err := u.SetWeights(w, 0); err != nil {
			return usagef("--weights %s: %w", w, err)
		}
	}
	return nil
}

// trials are all combinations of layouts, encodings and modes.
func (f *measureFlags) trials(s *trial.Subject, layouts []namedLayout, tasks []quality.Task) ([]*trial.Trial, error) {
	var all []*trial.Trial
	for _, l := range layouts {
		for _, w := range f.weights {
			for _, m := range f.modes {
				t := &trial.Trial{Layout: l.layout, Text: l.text, Weights: w, Mode: m}
				if err := s.Unit(t, tasks, f.sequences); err != nil {
					return nil, usageError{err}
				}
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// namedLayout is a layout and the words it was asked for in.
type namedLayout struct {
	text   string
	layout chunking.Layout
}

// readLayouts parses layouts for a model. A text that names policies and no chunks is the whole model in one.
func readLayouts(c *console.Console, args []string, m *chunking.Model) ([]namedLayout, error) {
	var all []namedLayout
	for _, arg := range args {
		text := arg
		if onlyPolicies.MatchString(arg) {
			text = fmt.Sprintf("L0-%d+head %s", len(m.Layers)-1, arg)
		}
		l, err := loadLayout(c, text, m)
		if err != nil {
			return nil, err
		}
		all = append(all, namedLayout{arg, l})
	}
	return all, nil
}

// onlyPolicies matches "attn=wfa:64" and "@9 attn=…", which name no chunks.
var onlyPolicies = regexp.MustCompile(`^(@[0-9]+ +)?attn=`)

type qualityOptions struct {
	output  outputFlags
	measure measureFlags
	tasks   []string
}

func newQualityCmd(c *console.Console) *cobra.Command {
	o := &qualityOptions{}
	cmd := &cobra.Command{
		Use:   "quality [CHECKPOINT [LAYOUT…]]",
		Short: "What layouts, weights and modes do to recall and tokens",
		Long: `Run sequences with questions through a checkpoint under every layout, encoding
and numerics mode, and count: recall by distance and the topic (recall), one
pair in plain filler by depth and length (passkey), perplexity (ppl), agreement
with the full model in f32 (agreement).

Without CHECKPOINT a small trained model that comes with the program is used.
LAYOUT may be only its policies: 'attn=wfa:64', '@9 attn=stream:4+32'. Weights
are the checkpoint's own unless --weights or w= of a chunk says otherwise; w= of
the chunk with the head is the head's, too, as on a device.`,
		Example: `  simulate quality
  simulate quality recall 'attn=stream:4+64' 'attn=wfa:64' --tasks recall,ppl
  simulate quality recall @3way --weights int4g32,int3g32 --mode f32,ane
  simulate quality gemma-4-E2B-it @3way 'attn=wfa:512' --text book.txt`,
		ValidArgsFunction: completeVerify,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.measure.from.Text != "" && !cmd.Flags().Changed("tasks") {
				o.tasks = []string{"ppl", "agreement"}
			}
			return runQuality(cmd.Context(), c, o, args)
		},
	}
	o.measure.add(cmd)
	cmd.Flags().StringSliceVar(&o.tasks, "tasks", []string{"recall", "ppl"}, "`TASKS`: recall, passkey, ppl, agreement")
	complete(cmd, "tasks", []string{"recall", "passkey", "ppl", "agreement"})
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

// Layouts that are measured when none is given: the model as it is, windows, and windows behind sinks.
var qualityLayouts = []string{"attn=full", "attn=wfa:64", "attn=wfa:256", "attn=stream:4+64", "attn=stream:4+256"}

func runQuality(ctx context.Context, c *console.Console, o *qualityOptions, args []string) error {
	if err := o.measure.check(); err != nil {
		return err
	}
	tasks, err := quality.ParseTasks(o.tasks)
	if err != nil || len(tasks) == 0 {
		return usagef("--tasks %s: %w", strings.Join(o.tasks, ","), err)
	}
	path, layouts := "", qualityLayouts
	if len(args) > 0 {
		path = args[0]
	}
	if len(args) > 1 {
		layouts = args[1:]
	}
	s, err := trial.Open(path, o.measure.from, o.measure.threads)
	if err != nil {
		return err
	}
	defer s.Close()
	trials, err := o.measure.run(ctx, c, s, layouts, tasks)
	if err != nil {
		return err
	}
	return o.output.emit(c, &view.Quality{Made: made(c), Subject: s, Tasks: tasks, Trials: trials})
}

// run measures every combination, with progress.
func (f *measureFlags) run(ctx context.Context, c *console.Console, s *trial.Subject, layouts []string, tasks []quality.Task) ([]*trial.Trial, error) {
	named, err := readLayouts(c, layouts, s.Model)
	if err != nil {
		return nil, err
	}
	trials, err := f.trials(s, named, tasks)
	if err != nil {
		return nil, err
	}
	if f.elsewhere.runner.value != runHere {
		return trials, f.elsewhere.run(ctx, c, s, trials)
	}
	if err := f.fits(s, trials); err != nil {
		return nil, err
	}
	progress := c.Progress()
	defer progress.Done()
	return trials, s.Run(ctx, trials, func(done, total int) { progress.Say("%d of %d parts measured", done, total) })
}

// fits refuses trials that memory cannot hold; there is one model at a time at least.
func (f *measureFlags) fits(s *trial.Subject, trials []*trial.Trial) error {
	for _, t := range trials {
		policies, err := t.Layout.Policies(s.Model)
		if err != nil {
			return err
		}
		if err := (demand{t.Mode, gemma4.Options{Policies: policies}, s.Context(), 1}).fits(s.Checkpoint(), f.memory); err != nil {
			return err
		}
	}
	return nil
}
