package main

import (
	"math"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/contrast"
	"anelab/cmd/simulate/internal/view"
)

type diffOptions struct {
	output   outputFlags
	subject  subjectFlags
	workload workloadFlags
	failOver percent
	layouts  [2]string
}

func newDiffCmd(c *console.Console) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Two layouts side by side, and how sure the difference is",
		Long: `Price two layouts for one device. The range of the difference is much thinner
than that of either rate: errors of the constants that both share cancel.`,
		Example: `  simulate diff @4way @3way
  simulate diff @3way mine.yaml --context 8192 --fail-over 3%`,
		Args:              layoutArgs(2),
		ValidArgsFunction: completeLayouts(2),
		RunE: func(_ *cobra.Command, args []string) error {
			o.layouts = [2]string{args[0], args[1]}
			return runDiff(c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.add(cmd)
	cmd.Flags().Var(&o.failOver, "fail-over", "exit 3 if B is slower by more than `P%`")
	o.output.add(cmd, "text", "json", "csv", "markdown", "benchstat")
	return cmd
}

func runDiff(c *console.Console, o *diffOptions) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	r := &view.Diff{Made: made(c), Source: s.source(), Limit: math.NaN()}
	if o.failOver.given {
		r.Limit = o.failOver.fraction
	}
	for i, side := range []*view.Plan{&r.A, &r.B} {
		plan, err := o.workload.plan(c, o.layouts[i], s.model)
		if err != nil {
			return err
		}
		*side = view.Plan{Made: made(c), Source: s.source(), Plan: plan, Prediction: anesim.Predict(plan, s.device, o.workload.workload())}
	}
	warn(c, union(r.A.Prediction.Warnings, r.B.Prediction.Warnings))
	r.Delta = contrast.Of(contrast.Side{Plan: r.A.Plan, Prediction: &r.A.Prediction}, contrast.Side{Plan: r.B.Plan, Prediction: &r.B.Prediction},
		&s.device, o.workload.workload())
	if err := o.output.emit(c, r); err != nil {
		return err
	}
	if r.Exceeded() {
		return errNo
	}
	return nil
}
