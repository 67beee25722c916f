package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
)

type traceOptions struct {
	subject  subjectFlags
	workload workloadFlags
	path     string
	layout   string
}

func newTraceCmd(c *console.Console) *cobra.Command {
	o := &traceOptions{}
	cmd := &cobra.Command{
		Use:   "trace LAYOUT",
		Short: "One token laid out in time, for Perfetto or chrome://tracing",
		Long: `Write one decode step as Chrome trace events: what the host does, the tasks of
the Neural Engine op by op, the weight stream and the activation stream, with
counters of the bytes that moved. Open the file at https://ui.perfetto.dev.

It is a picture of the cost model's sum: the model says how long everything
takes together, and assumes that nothing overlaps.`,
		Example: `  simulate trace @3way -o token.json
  simulate trace 'L0-14 | L15-34+head' --context 8k -o token.json`,
		Args:              layoutArgs(1),
		ValidArgsFunction: completeLayouts(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.layout = args[0]
			return runTrace(c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.add(cmd)
	cmd.Flags().StringVarP(&o.path, "output", "o", "", "write the trace to `FILE`, complete or not at all")
	return cmd
}

func runTrace(c *console.Console, o *traceOptions) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	plan, err := o.workload.plan(c, o.layout, s.model)
	if err != nil {
		return err
	}
	w := o.workload.workload()
	warn(c, anesim.Predict(plan, s.device, w).Warnings)
	out, err := (&outputFlags{path: o.path}).open(c)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%s  %s  context %d  %s (simulated)", s.modelName, plan.Layout, plan.Context, s.device.Name)
	if err := anesim.TimelineOf(plan, s.device, w).WriteTrace(out, title); err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}
