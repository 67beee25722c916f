package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/chunking/layoutfile"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml"
	"anelab/coreml/place"
	"anelab/internal/format"
)

type checkOptions struct {
	output   outputFlags
	subject  subjectFlags
	workload workloadFlags
	layout   string
	function string
	explain  bool
}

func newCheckCmd(c *console.Console) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check LAYOUT | PACKAGE…",
		Short: "Does the model allow it, does the device run it? Exit 3 if not",
		Long: `Hold a layout against the rules of the model (every layer once, owners of keys
and values before their readers, the head last) and against the limits that
were met on the device. Every finding names the observation behind it. Then say
where the ops of every program will run, which are off the Neural Engine, and by
which rule or for want of how many microseconds.

Of PACKAGEs (.mlpackage, .mlmodelc) every op is placed; the answer is no, too,
where more than 5 % of the ops of one are off the engine.`,
		Example: `  simulate check 'L0-34+head' --device iphone17pro
  simulate check @2way && simulate plan @2way
  simulate check @3way --explain
  simulate check chunk4.mlpackage`,
		Args:              layoutOrModels,
		ValidArgsFunction: completeLayouts(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if coreml.IsModel(args[0]) {
				return runCheckOfPackages(c, o, args)
			}
			o.layout = args[0]
			return runCheck(c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.addContext(cmd)
	addFunction(cmd, &o.function)
	cmd.Flags().BoolVar(&o.explain, "explain", false, "list every known limit too: those that were not met, facts, refuted claims; and every op that is off the engine")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func runCheck(c *console.Console, o *checkOptions) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	r := &view.Check{Made: made(c), Source: s.source(), Layout: o.layout}
	plan, err := o.workload.plan(c, o.layout, s.model)
	switch {
	case err == nil:
		r.Layout, r.Context, r.Findings = plan.Layout.String(), plan.Context, anesim.Check(plan, s.device)
		r.Placements = place.PredictPlan(plan, place.Options{})
	case !refusedByModel(r, err):
		return err
	}
	return o.answer(c, r)
}

// runCheckOfPackages places every op of packages, and holds them against the limits.
func runCheckOfPackages(c *console.Console, o *checkOptions, paths []string) error {
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
	reading, err := p.reading(&s)
	if err != nil {
		return err
	}
	r := &view.Check{Made: made(c), Source: s.source(), Layout: strings.Join(paths, " "), Context: reading.Plan.Context, Packages: true}
	for i, f := range p.functions {
		name := filepath.Base(filepath.Clean(paths[i]))
		for _, found := range anesim.CheckSubject(p.subjectOf(reading, i, s.device.Class)) {
			found.Chunk, found.Index = name, i
			r.Findings = append(r.Findings, found)
		}
		at := place.Predict(f, place.Options{})
		at.Function = name
		r.Placements = append(r.Placements, at)
	}
	return o.answer(c, r)
}

// answer writes the result; the exit code is the answer.
func (o *checkOptions) answer(c *console.Console, r *view.Check) error {
	if o.explain {
		r.Limits, r.Every = anesim.LimitRecords(), view.Single
	}
	if err := o.output.emit(c, r); err != nil {
		return err
	}
	if r.Refused() {
		return errNo
	}
	return nil
}

// refusedByModel turns a broken rule of the model into the answer no, and reports whether that is what the error is. Text and
// files break the same rules; a length out of range is wrong usage in both.
func refusedByModel(r *view.Check, err error) bool {
	var text *chunking.ParseError
	var file *layoutfile.Error
	var rule chunking.Rule
	var fault format.Error
	switch {
	case errors.As(err, &text):
		rule, fault, r.Excerpt = text.Rule, text.Fault, text.Excerpt()
	case errors.As(err, &file):
		rule, fault, r.Excerpt = file.Rule, file.Fault, file.Excerpt()
	}
	if rule == "" || rule == chunking.RuleContext || rule == chunking.RuleTokens {
		return false
	}
	r.Context = chunking.DefaultContext
	r.Findings = []anesim.Finding{{Rule: string(rule), Verdict: anesim.VerdictNo, Index: -1, Text: fault.Got, Fix: fault.Fix}}
	return true
}
