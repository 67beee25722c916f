package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"anelab/attention"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/trial"
	"anelab/cmd/simulate/internal/view"
	"anelab/gemma4"
	"anelab/quality"
)

type headsOptions struct {
	output  outputFlags
	measure measureFlags
	stream  string
	keep    int
	pattern string
	share   float64
}

func newHeadsCmd(c *console.Console) *cobra.Command {
	o := &headsOptions{}
	cmd := &cobra.Command{
		Use:   "heads [CHECKPOINT]",
		Short: "Which heads retrieve, and which may stream",
		Long: `Find the query heads of full layers that recall needs, without training: let
every head stream alone, let every other head stream, rank heads by attention on
the planted value, and keep the best full one by one.

With --pattern, read DuoAttention's full_attention_heads.tsv and config.json
instead, and write them as policies of a layout. Either way the answer says what
the policies save: with one KV head a store shrinks only where every head of
every layer that reads it streams.`,
		Example: `  simulate heads
  simulate heads recall --stream 4+32 --sequences 64 --keep 16
  simulate heads gemma-4-E2B-it --pattern attn_patterns/run --share 0.5`,
		Args:              atMostArgs(1),
		ValidArgsFunction: completeVerify,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			return runHeads(cmd.Context(), c, o, path)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.measure.from.Eval, "eval", "", "evaluation `FILE` (default eval.safetensors beside the checkpoint)")
	f.StringVar(&o.stream, "stream", "4+32", "`SINKS+RECENT` of a streaming head")
	f.IntVar(&o.measure.sequences, "sequences", 4, "how many sequences of the file, at most")
	f.IntVar(&o.keep, "keep", 8, "keep at most so many heads full")
	f.IntVar(&o.measure.threads, "threads", 0, "threads; 0 = all cores")
	addMemory(cmd, &o.measure.memory)
	f.StringVar(&o.pattern, "pattern", "", "read a DuoAttention pattern from `PATH`")
	f.Float64Var(&o.share, "share", 0.5, "share of heads that stream, with --pattern")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func (o *headsOptions) check() error {
	if o.measure.sequences < 1 || o.measure.threads < 0 || o.keep < 0 {
		return usagef("--sequences %d --threads %d --keep %d: want at least 1, 0 and 0", o.measure.sequences, o.measure.threads, o.keep)
	}
	if !(o.share >= 0 && o.share <= 1) {
		return usagef("--share %v: want 0 to 1", o.share)
	}
	return nil
}

func runHeads(ctx context.Context, c *console.Console, o *headsOptions, path string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.pattern != "" {
		return o.readPattern(c, path)
	}
	policy, err := attention.Parse("stream:" + o.stream)
	if err != nil {
		return usagef("--stream %s: %w", o.stream, err)
	}
	streaming, ok := policy.(attention.Streaming)
	if !ok {
		return usagef("--stream %s: want sinks and a window, such as 4+32", o.stream)
	}
	s, err := trial.Open(path, o.measure.from, o.measure.threads)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := (demand{mode: "f32", context: s.Context(), sequences: 1}).fits(s.Checkpoint(), o.measure.memory); err != nil {
		return err
	}
	report, err := o.search(ctx, c, s, streaming)
	if err != nil {
		return err
	}
	return o.output.emit(c, &view.Heads{Made: made(c), Checkpoint: s.Name, Layers: s.Model.Layers, Report: report, Policies: report.Suggest(s.Model.Layers)})
}

func (o *headsOptions) search(ctx context.Context, c *console.Console, s *trial.Subject, streaming attention.Streaming) (*quality.HeadReport, error) {
	progress := c.Progress()
	defer progress.Done()
	h := &quality.HeadSearch{Runner: s.Runner, Streaming: streaming, Keep: o.keep,
		Base:     quality.Unit{Checkpoint: s.Sum, Set: s.Set.Sum, Count: min(o.measure.sequences, len(s.Set.Sequences)), Mode: "f32"},
		Progress: func(done, total int) { progress.Say("%d of %d settings measured", done, total) }}
	return h.Run(ctx)
}

// readPattern needs no weights, only the model's shape.
func (o *headsOptions) readPattern(c *console.Console, path string) error {
	name, m, err := shapeOf(path)
	if err != nil {
		return err
	}
	p, err := attention.OpenPattern(o.pattern)
	if err != nil {
		return err
	}
	var layers []attention.PatternLayer
	for _, y := range m.Layers {
		layers = append(layers, attention.PatternLayer{Index: y.Index, Heads: y.Heads, KVHeads: y.KVHeads, Full: y.Kind == gemma4.Full})
	}
	policies, err := p.Policies(layers, o.share)
	if err != nil {
		return err
	}
	return o.output.emit(c, &view.Heads{Made: made(c), Checkpoint: name, Layers: m.Layers, Pattern: fmt.Sprintf("%s, %.0f %% streaming", o.pattern, 100*o.share), Policies: policies})
}

// shapeOf reads a model's configuration: of a checkpoint, of a known model by name, or of E2B when nothing is named.
func shapeOf(path string) (string, *chunking.Model, error) {
	if path == "" {
		path = defaultModel
	}
	if name, m, err := loadModel(path); err == nil {
		return name, m, nil
	}
	k, err := openCheckpoint(path)
	if err != nil {
		return "", nil, err
	}
	defer k.Close()
	m, err := chunking.NewModel(k.Config)
	return path, m, err
}
