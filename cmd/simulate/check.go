package main

import (
	"errors"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/chunking/layoutfile"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

type checkOptions struct {
	output   outputFlags
	subject  subjectFlags
	workload workloadFlags
	layout   string
	explain  bool
}

func newCheckCmd(c *console.Console) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check LAYOUT",
		Short: "Does the model allow it, does the device run it? Exit 3 if not",
		Long: `Hold a layout against the rules of the model (every layer once, owners of keys
and values before their readers, the head last) and against the limits that
were met on the device. Every finding names the observation behind it.`,
		Example: `  simulate check 'L0-34+head' --device iphone17pro
  simulate check @2way && simulate plan @2way
  simulate check @3way --explain`,
		Args:              layoutArgs(1),
		ValidArgsFunction: completeLayouts(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.layout = args[0]
			return runCheck(c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.addContext(cmd)
	cmd.Flags().BoolVar(&o.explain, "explain", false, "list every known limit too: those that were not met, facts, refuted claims")
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
	case !refusedByModel(r, err):
		return err
	}
	if o.explain {
		r.Limits = anesim.LimitRecords()
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
