package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/timed"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml"
)

type planOptions struct {
	explain  bool
	output   outputFlags
	subject  subjectFlags
	workload workloadFlags
	layout   string
	function string
}

func newPlanCmd(c *console.Console) *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan LAYOUT | PACKAGE…",
		Short: "Price one layout: its chunks, where time goes, tok/s with a range",
		Long: `Price one decode step of a layout on a device.

LAYOUT is text, a preset such as @3way, a .yaml or .json file, or - for standard
input. Layers are inclusive, the last chunk has the head.

PACKAGEs (.mlpackage, .mlmodelc) are the chunks of any decoder in the order in
which they are called; the plan is made of their own ops, weights and ports.
Work that no term prices is named and widens the range.`,
		Example: `  simulate plan 'L0-7 | L8-24 | L25-34+head' --context 2048
  simulate plan @4way --context 8k --format json
  simulate plan 'L0-14 | L15-34+head w=int4g16' --device mac
  simulate plan @3way --explain
  simulate plan chunk1.mlpackage chunk2.mlpackage chunk3.mlpackage`,
		Args:              layoutOrModels,
		ValidArgsFunction: completeLayouts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if coreml.IsModel(args[0]) {
				return runPlanOfPackages(c, o, args)
			}
			o.layout = args[0]
			return runPlan(cmd.Context(), c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.add(cmd)
	addFunction(cmd, &o.function)
	cmd.Flags().BoolVar(&o.explain, "explain", false, "show the sum term by term, each constant with its source")
	o.output.add(cmd, "text", "json", "csv", "markdown", "benchstat")
	return cmd
}

func runPlan(_ context.Context, c *console.Console, o *planOptions) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	plan, err := o.workload.plan(c, o.layout, s.model)
	if err != nil {
		return err
	}
	return o.show(c, &s, &view.Plan{Plan: plan, Prediction: anesim.Predict(plan, s.device, o.workload.workload())})
}

// runPlanOfPackages prices what packages say of themselves.
func runPlanOfPackages(c *console.Console, o *planOptions, paths []string) error {
	if len(o.workload.context.values) > 0 {
		return usagef("--context is compiled into packages: they say it themselves")
	}
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	p, err := openPrograms(paths, o.function)
	if err != nil {
		return err
	}
	defer p.close()
	r, err := p.reading(&s)
	if err != nil {
		return err
	}
	warn(c, r.Notes)
	w := o.workload.workload()
	w.KV = p.kvForm()
	prediction := anesim.Predict(r.Plan, s.device, w)
	prediction.Widen(unpriced(r))
	return o.show(c, &s, &view.Plan{Plan: r.Plan, Prediction: prediction})
}

// show adds what timers said, and writes the result.
func (o *planOptions) show(c *console.Console, s *subject, r *view.Plan) error {
	r.Made, r.Source = made(c), s.source()
	rows, err := embeddedRows()
	if err != nil {
		return err
	}
	timed.Rows(rows).Fill(&r.Prediction, r.Plan, &s.device, s.modelName)
	warn(c, r.Prediction.Warnings)
	if o.explain {
		return o.output.emit(c, s.explain(r, o.workload.workload()))
	}
	return o.output.emit(c, r)
}

// workloadFlags say under which conditions a layout runs.
type workloadFlags struct {
	context  sizes
	copyBack choice
}

func (w *workloadFlags) add(cmd *cobra.Command) {
	w.addContext(cmd)
	w.copyBack = choice{string(anesim.CopyBackAsync), copyBacks, "WHEN"}
	addChoice(cmd, "copyback", "when the host copies the caches", &w.copyBack)
}

func (w *workloadFlags) addContext(cmd *cobra.Command) {
	w.context.most = 1
	cmd.Flags().Var(&w.context, "context", "context length compiled into the chunks (default 2048, or what the layout says)")
}

// copyBacks are the values of --copyback.
var copyBacks = []string{string(anesim.CopyBackAsync), string(anesim.CopyBackSync), string(anesim.CopyBackNone)}

func (w *workloadFlags) workload() anesim.Workload {
	return anesim.Workload{CopyBack: anesim.CopyBack(w.copyBack.value)}
}

// plan reads a layout; the flag wins over what the layout says.
func (w *workloadFlags) plan(c *console.Console, layout string, m *chunking.Model) (*chunking.Plan, error) {
	l, err := loadLayout(c, layout, m)
	if err != nil {
		return nil, err
	}
	if len(w.context.values) > 0 {
		l.Context = w.context.values[0]
	}
	plan, err := l.Plan(m)
	if err != nil {
		return nil, usageError{err}
	}
	return plan, nil
}

// warn prints what is worth knowing before a number is believed.
func warn(c *console.Console, warnings []string) {
	for _, w := range warnings {
		c.Warn(w)
	}
}

// union keeps the first of equal texts.
func union(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		for _, text := range list {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}
