package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"anelab/cmd/simulate/internal/console"
	"anelab/internal/format"
)

// brief is what the bare command says: verbs by what they answer, three examples.
const brief = intro + "\n" + examples + "\n"

const intro = `simulate prices and checks ways to cut Gemma 4 for Apple's Neural Engine.
  plan, sweep, diff    what a layout costs, where time goes, how sure that is
  check                whether the model allows it and the device takes it
  request              first token, memory, drafts and energy of a layout
  calibrate, transfer  fit the cost model to measurements, show what it misses
  ideas, trace         what other techniques bring; a token laid out in time
  merge, report        parts of a sweep in one; a sweep as an HTML page
  verify               whole = chunked = golden = packages, tensor by tensor
  emit                 a layout as Core ML packages, with what an app needs
  inspect, palettize   what a Core ML model holds; its weights in few bits
  generate, serve      let a model speak: here, or to OpenAI's clients
  quality, frontier    what a layout does to recall, beside what it costs
  heads, draft         which heads may stream; whose drafts are accepted
  pack, bench          write a model in 4 bits, time it on this machine
  devices, layouts, explain, version, completion, help
`

const examples = `  simulate sweep
  simulate plan 'L0-7 | L8-24 | L25-34+head' --context 2048
  simulate verify`

// newRootCmd assembles the verbs.
func newRootCmd(c *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:           "simulate",
		Short:         "Price, check and verify ways to cut Gemma 4 for Apple's Neural Engine",
		Example:       examples,
		Version:       version(),
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(c.Err, brief)
			return usageError{errors.New("")}
		},
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(usageTemplate)
	root.SetVersionTemplate("simulate {{.Version}}\n")
	root.SetHelpCommand(newHelpCmd(root))
	root.AddCommand(newPlanCmd(c), newRequestCmd(c), newSweepCmd(c), newMergeCmd(c), newReportCmd(c), newDiffCmd(c), newCheckCmd(c), newCalibrateCmd(c), newTransferCmd(c), newVerifyCmd(c), newQualityCmd(c), newHeadsCmd(c), newFrontierCmd(c), newDraftCmd(c),
		newPackCmd(c), newEmitCmd(c), newBenchCmd(c), newInspectCmd(c), newPalettizeCmd(c), newDevicesCmd(c), newLayoutsCmd(c), newIdeasCmd(c), newTraceCmd(c), newExplainCmd(c), newVersionCmd(c), newCompletionCmd(c))
	root.AddCommand(newGenerateCmd(c), newServeCmd(c))
	root.InitDefaultHelpCmd()
	return root
}

// checkVerb refuses a first argument that is no verb before its flags are looked at: --help would hide the typo.
func checkVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	if !slices.Contains(verbs(root), args[0]) {
		return unknownVerb(root, args[0])
	}
	return nil
}

func unknownVerb(root *cobra.Command, name string) error {
	return usagef("unknown verb %q; %s", name, format.DidYouMean(name, verbs(root)))
}

// flagError puts the flag package's messages into our form.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return usagef("unknown flag -%s; flags of %s: %s", name, cmd.Name(), strings.Join(flagNames(cmd), ", "))
		}
		return usagef("unknown flag --%s; %s", name, format.DidYouMean("--"+name, flagNames(cmd)))
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return usagef("--%s %s: %w", value.GetFlag().Name, value.GetValue(), value.Unwrap())
	}
	return usageError{err}
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// usageTemplate is cobra's without what nobody needs, and no wider than a page.
const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} VERB [ARGUMENTS] [FLAGS]{{else}}{{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Verbs:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}
`
