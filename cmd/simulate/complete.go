package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anelab/chunking"
)

// layoutArgs wants n layouts. A layout with blanks that was not quoted arrives in pieces, and says so.
func layoutArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == n:
			return nil
		case len(args) > n && n == 1:
			return usagef("%d arguments; quote the layout: '%s'", len(args), strings.Join(args, " "))
		}
		return usagef("%s takes %s, got %d; see %s --help", cmd.Name(), count(n, "layout"), len(args), cmd.CommandPath())
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// completeLayouts offers presets for the first n arguments, and files.
func completeLayouts(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return presetCompletions(), cobra.ShellCompDirectiveDefault
	}
}

func presetCompletions() []cobra.Completion {
	var all []cobra.Completion
	for _, p := range chunking.Presets() {
		all = append(all, cobra.CompletionWithDesc(p.Name, p.Description))
	}
	return all
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error { return atMostArgs(0)(cmd, args) }

// atMostArgs refuses more than n arguments.
func atMostArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s: unexpected argument %q; see %s --help", cmd.Name(), args[n], cmd.CommandPath())
		}
		return nil
	}
}
