package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/internal/format"
)

// shells that completion scripts can be written for.
var shells = []string{"bash", "fish", "powershell", "zsh"}

func newCompletionCmd(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes verbs, flags, presets and devices",
		Long:  "Print a completion script for " + strings.Join(shells, ", ") + ".",
		Example: `  source <(simulate completion bash)
  simulate completion zsh > "${fpath[1]}/_simulate"
  simulate completion fish > ~/.config/fish/completions/simulate.fish`,
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("completion takes one shell: %s", strings.Join(shells, ", "))
			}
			return writeCompletion(cmd.Root(), c.Out, args[0])
		},
	}
}

func writeCompletion(root *cobra.Command, w io.Writer, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	case "zsh":
		return root.GenZshCompletion(w)
	}
	return usagef("unknown shell %q; %s", shell, format.DidYouMean(shell, shells))
}
