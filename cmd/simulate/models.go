package main

import (
	"github.com/spf13/cobra"
)

// exactArgs wants n of something.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s, got %d; see %s --help", cmd.Name(), count(n, what), len(args), cmd.CommandPath())
		}
		return nil
	}
}

// layoutOrModels wants one layout, or Core ML models.
func layoutOrModels(cmd *cobra.Command, args []string) error {
	models, err := areCoreModels(args)
	if models || err != nil {
		return err
	}
	return layoutArgs(1)(cmd, args)
}

// addFunction declares which function of a model is meant.
func addFunction(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "function", "", "of packages: the `NAME` of the function to look at (default: the package's default)")
}

// completeModels completes arguments with folders: models are ones.
func completeModels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"mlpackage", "mlmodelc"}, cobra.ShellCompDirectiveFilterFileExt | cobra.ShellCompDirectiveFilterDirs
}
