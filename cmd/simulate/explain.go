package main

import (
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/metrics"
	"anelab/cmd/simulate/internal/view"
)

func newExplainCmd(c *console.Console) *cobra.Command {
	o := &outputFlags{}
	cmd := &cobra.Command{
		Use:   "explain [NAME]",
		Short: "Define a printed figure; without a name, list all",
		Example: `  simulate explain tok_s
  simulate explain bound
  simulate explain dispatch`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return metrics.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.emit(c, &view.Glossary{Made: made(c)})
			}
			e, err := metrics.Find(strings.Join(args, " "))
			if err != nil {
				return usageError{err}
			}
			return o.emit(c, &view.Explain{Made: made(c), Entry: e})
		},
	}
	o.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}
