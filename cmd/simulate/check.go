package main

import (
	"errors"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
)

type checkOptions struct {
	output   outputFlags
	subject  subjectFlags
	workload workloadFlags
	layout   string
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
  simulate check @2way && simulate plan @2way`,
		Args:              layoutArgs(1),
		ValidArgsFunction: completeLayouts(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.layout = args[0]
			return runCheck(c, o)
		},
	}
	o.subject.add(cmd)
	o.workload.addContext(cmd)
	o.output.add(cmd, "text", "json", "markdown")
	return cmd
}

func runCheck(c *console.Console, o *checkOptions) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	r := &view.Check{Made: made(c), Source: s.source(), Layout: o.layout}
	plan, err := o.workload.plan(c, o.layout, s.model)
	var broken *chunking.ParseError
	switch {
	case err == nil:
		r.Layout, r.Context, r.Findings = plan.Layout.String(), plan.Context, anesim.Check(plan, s.device)
	case errors.As(err, &broken) && broken.Rule != "":
		r.Excerpt, r.Context = broken.Excerpt(), chunking.DefaultContext
		r.Findings = []anesim.Finding{{Rule: string(broken.Rule), Verdict: anesim.VerdictNo, Index: -1, Text: broken.Fault.Got, Fix: broken.Fault.Fix}}
	default:
		return err
	}
	if err := o.output.emit(c, r); err != nil {
		return err
	}
	if r.Refused() {
		return errNo
	}
	return nil
}
