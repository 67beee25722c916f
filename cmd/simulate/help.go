package main

import (
	"github.com/spf13/cobra"
)

// newHelpCmd is help on a verb. Cobra's own takes a verb that does not exist for none.
func newHelpCmd(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Show the flags and examples of a verb",
		Example: `  simulate help plan
  simulate plan --help`,
		Args: atMostArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return verbs(root), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			for _, verb := range root.Commands() {
				if verb.Name() == args[0] {
					verb.InitDefaultHelpFlag()
					return verb.Help()
				}
			}
			return unknownVerb(root, args[0])
		},
	}
}

// verbs are the names that a person may type.
func verbs(root *cobra.Command) []string {
	var names []string
	for _, verb := range root.Commands() {
		if !verb.Hidden {
			names = append(names, verb.Name())
		}
	}
	return names
}
