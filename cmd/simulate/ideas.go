package main

import (
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim/ledger"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

type ideasOptions struct {
	output  outputFlags
	subject subjectFlags
	verdict choice
}

// allVerdicts is the value of --verdict that leaves nothing out.
const allVerdicts = "all"

func newIdeasCmd(c *console.Console) *cobra.Command {
	o := &ideasOptions{}
	cmd := &cobra.Command{
		Use:   "ideas [IDEA]",
		Short: "What proposed techniques claim, what was measured, what to expect",
		Long: `List the techniques that people propose for language models on the Neural
Engine, or one of them: what its authors claim, what was measured, what the cost
model expects on the device, and on what ground that stands:

  priced      a term of the cost model explains it
  reference   the reference runs it: its saving is priced, its tokens are seen
  rule        measured once or twice, and not explained
  unmeasured  nobody ran it on a device; a forecast is a bound`,
		Example: `  simulate ideas
  simulate ideas --verdict priced --device mac
  simulate ideas mlstate`,
		Args: atMostArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return ideaNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return runIdeas(c, o, args) },
	}
	o.subject.add(cmd)
	o.verdict = choice{allVerdicts, []string{allVerdicts, string(ledger.Priced), string(ledger.Reference), string(ledger.Rule), string(ledger.Unmeasured)}, "VERDICT"}
	addChoice(cmd, "verdict", "only those that stand on this ground", &o.verdict)
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func ideaNames() []string {
	var names []string
	for _, e := range ledger.Entries() {
		names = append(names, e.ID)
	}
	return names
}

// ideaNamed finds an idea by its id, or by a word that only one idea has in its full name.
func ideaNamed(word string) string {
	word = strings.ToLower(word)
	var named []string
	for _, e := range ledger.Entries() {
		if e.ID == word {
			return word
		}
		if strings.Contains(strings.ToLower(e.Name), word) {
			named = append(named, e.ID)
		}
	}
	if len(named) == 1 {
		return named[0]
	}
	return ""
}

func runIdeas(c *console.Console, o *ideasOptions, args []string) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	r := &view.Ideas{Made: made(c), Source: s.source()}
	bench := &ledger.Bench{Model: s.model, Device: s.device}
	var wanted string
	if len(args) == 1 {
		wanted = ideaNamed(args[0])
	}
	for _, e := range ledger.Entries() {
		if len(args) == 1 && e.ID != wanted || o.verdict.value != allVerdicts && string(e.Verdict) != o.verdict.value {
			continue
		}
		f, err := e.Forecast(bench)
		if err != nil {
			f = ledger.None // its plans are cuts of E2B
		}
		r.Ideas = append(r.Ideas, view.Idea{Entry: e, Measured: e.Measured(), Forecast: f})
	}
	switch {
	case len(args) == 0:
		return o.output.emit(c, r)
	case len(r.Ideas) == 0:
		return usagef("unknown idea %q; %s", args[0], orList(args[0], ideaNames(), "simulate ideas lists all"))
	}
	return o.output.emit(c, &view.OneIdea{Ideas: *r})
}

// orList is the closest name, or where to find them all when none is close and they are many.
func orList(name string, names []string, where string) string {
	if near := format.Closest(strings.ToLower(name), names); near != "" {
		return "did you mean \"" + near + "\"?"
	}
	return where
}
