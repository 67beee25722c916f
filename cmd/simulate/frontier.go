package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/trial"
	"anelab/cmd/simulate/internal/view"
	"anelab/quality"
	"anelab/quant"
)

type frontierOptions struct {
	subjectFlags
	output  outputFlags
	measure measureFlags
	by      choice
	context sizes
}

func newFrontierCmd(c *console.Console) *cobra.Command {
	o := &frontierOptions{by: choice{"recall", view.FrontierFigures(), "FIGURE"}, context: sizes{most: 1}}
	cmd := &cobra.Command{
		Use:   "frontier [CHECKPOINT [LAYOUT…]]",
		Short: "Predicted tok/s against measured quality",
		Long: `Measure layouts on a checkpoint as simulate quality does, price the same
layouts on a device as simulate plan does, and mark those that another one beats
in both. Quality is that of the checkpoint and its sequences; the rate is that
of --model at --context, by default the length of the sequences.

Layouts are read for both models: presets with attn= fit any two.`,
		Example: `  simulate frontier
  simulate frontier recall '@3way' '@3way attn=wfa:128' --by ppl
  simulate frontier --weights int4g32,int3g32 --context 8192 --format csv`,
		ValidArgsFunction: completeVerify,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runFrontier(cmd.Context(), c, o, args)
		},
	}
	o.subjectFlags.add(cmd)
	o.measure.add(cmd)
	addChoice(cmd, "by", "quality", &o.by)
	cmd.Flags().Var(&o.context, "context", "context that is priced")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

// Layouts of a frontier when none is given: from everything to a short window, with sinks and without, and three ways of using
// fewer rows.
var frontierLayouts = []string{"@3way", "@3way attn=wfa:384", "@3way attn=wfa:256", "@3way attn=wfa:128", "@3way attn=stream:4+256", "@3way attn=stream:4+128", "@3way attn=blocks:8x16"}

func runFrontier(ctx context.Context, c *console.Console, o *frontierOptions, args []string) error {
	if err := o.measure.check(); err != nil {
		return err
	}
	priced, err := o.resolve(c)
	if err != nil {
		return err
	}
	path, layouts := "", frontierLayouts
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
	length := s.Set.MaxLength()
	if len(o.context.values) > 0 {
		length = o.context.values[0]
	}
	r := &view.Frontier{Made: made(c), Source: priced.source(), Checkpoint: s.Name, Context: length, By: o.by.value}
	prices, err := o.price(c, &priced, layouts, length)
	if err != nil {
		return err
	}
	trials, err := o.measure.run(ctx, c, s, layouts, view.FrontierTasks(o.by.value))
	if err != nil {
		return err
	}
	for i, t := range trials {
		r.Points = append(r.Points, view.FrontierPoint{Trial: t, Prediction: prices[i]})
	}
	return o.output.emit(c, r)
}

// price predicts every layout with every encoding, in the order in which trials are made.
func (o *frontierOptions) price(c *console.Console, s *subject, layouts []string, length int) ([]anesim.Prediction, error) {
	named, err := readLayouts(c, layouts, s.model)
	if err != nil {
		return nil, err
	}
	var all []anesim.Prediction
	for _, l := range named {
		for _, w := range o.measure.weights {
			p, err := predictWith(s, l.layout, w, length)
			if err != nil {
				return nil, err
			}
			for range o.measure.modes {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// predictWith prices a layout with an encoding for the chunks that name none. Stored weights are priced as shipped ones, 4-bit
// palettes, unless the layout says otherwise: no checkpoint's bf16 ever runs on the device.
func predictWith(s *subject, l chunking.Layout, weights string, length int) (anesim.Prediction, error) {
	l.Cuts, l.Context = slices.Clone(l.Cuts), length
	if weights != quality.Stored {
		e, err := quant.ParseEncoding(strings.TrimSuffix(weights, "+tables"))
		if err != nil {
			return anesim.Prediction{}, usageError{err}
		}
		for i := range l.Cuts {
			if l.Cuts[i].Weights == (quant.Encoding{}) {
				l.Cuts[i].Weights = e
			}
		}
	}
	plan, err := l.Plan(s.model)
	if err != nil {
		return anesim.Prediction{}, err
	}
	return anesim.Predict(plan, s.device, anesim.Workload{CopyBack: anesim.CopyBackSync}), nil
}
