package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/trial"
	"anelab/cmd/simulate/internal/view"
	"anelab/gemma4"
	"anelab/internal/arith"
	"anelab/speculate"
)

type draftOptions struct {
	output  outputFlags
	eval    string
	mode    choice
	drafter choice
	verify  choice
	drafts  int
	prompt  int
	tokens  int
	prompts int
	threads int
	memory  byteSize
	exits   bool
}

// Drafters of --drafter, and what they compare: three tokens as prompt lookup was published, and paths of eight.
const (
	lookupDrafter = "lookup"
	suffixDrafter = "suffix"
	lookupTokens  = 3
	suffixDepth   = 8
)

// draftLayout is cut by when a mode of chunks is asked for without a layout.
const draftLayout = "@4way"

func newDraftCmd(c *console.Console) *cobra.Command {
	o := &draftOptions{}
	cmd := &cobra.Command{
		Use:   "draft [CHECKPOINT [LAYOUT]]",
		Short: "Decode with drafts: how many are accepted, whose tokens come out",
		Long: `Decode texts by speculation without a draft model: tokens are proposed from what
the text has said (prompt lookup, or a suffix tree of it) and checked in one
verify call. Count by position what is accepted, and compare the tokens with
those of plain decoding.

  clean         every row keeps its whole window; the same tokens, or exit 3
  shifted       windows shift by all rows first: early rows lose old positions
  contaminated  as shifted, and rejected drafts stay in the caches

Without LAYOUT clean calls run the model in one piece. Prompts are the first
tokens of an evaluation file's sequences; without CHECKPOINT a small trained
model that comes with the program is used.`,
		Example: `  simulate draft
  simulate draft recall @4way --drafter suffix --draft 5
  simulate draft --verify contaminated
  simulate draft --exits`,
		Args:              atMostArgs(2),
		ValidArgsFunction: completeVerify,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDraft(cmd.Context(), c, o, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.eval, "eval", "", "`FILE` with input_ids (default eval.safetensors beside the checkpoint)")
	o.mode = choice{arith.Modes[0], arith.Modes, "MODE"}
	addChoice(cmd, "mode", "numerics mode", &o.mode)
	o.drafter = choice{lookupDrafter, []string{lookupDrafter, suffixDrafter}, "DRAFTER"}
	addChoice(cmd, "drafter", "who proposes", &o.drafter)
	o.verify = choice{string(speculate.Clean), speculate.Modes, "HOW"}
	addChoice(cmd, "verify", "what a verify call does to windows and caches", &o.verify)
	f.IntVar(&o.drafts, "draft", 3, "tokens drafted per call, at most")
	f.IntVar(&o.prompt, "prompt", 128, "tokens of each prompt")
	f.IntVar(&o.tokens, "tokens", 48, "tokens to decode behind each")
	f.IntVar(&o.prompts, "sequences", 8, "how many sequences of the file, at most")
	f.IntVar(&o.threads, "threads", 0, "threads; 0 = all cores")
	addMemory(cmd, &o.memory)
	f.BoolVar(&o.exits, "exits", false, "probe for LayerSkip instead: how often fewer layers choose the same token")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func (o *draftOptions) check() error {
	switch {
	case o.drafts < 1 || o.drafts > maxDrafts:
		return usagef("--draft %d: want 1 to %d", o.drafts, maxDrafts)
	case o.prompt < 1 || o.prompt > maxLength || o.tokens < 2 || o.tokens > maxLength:
		return usagef("--prompt %d --tokens %d: want at least 1 and 2, and %d at most", o.prompt, o.tokens, maxLength)
	case o.prompts < 1 || o.threads < 0:
		return usagef("--sequences %d --threads %d: want at least 1 and 0", o.prompts, o.threads)
	}
	return nil
}

func runDraft(ctx context.Context, c *console.Console, o *draftOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	args = append(args, "", "")
	s, err := trial.Open(args[0], trial.Sources{Eval: o.eval}, o.threads)
	if err != nil {
		return err
	}
	defer s.Close()
	w := &drafting{options: o, subject: s}
	if err := w.prepare(c, args[1]); err != nil {
		return err
	}
	r := &view.Draft{Made: made(c), Checkpoint: s.Name, Layers: len(s.Model.Layers), Mode: o.mode.value, Drafter: o.drafter.value, Verify: o.verify.value,
		Drafts: o.drafts, Prompt: o.prompt, Tokens: o.tokens}
	if w.plan != nil {
		r.Layout = w.plan.Layout.String()
	}
	progress := c.Progress()
	defer progress.Done()
	for i, prompt := range w.prompts {
		progress.Say("text %d of %d", i+1, len(w.prompts))
		if err := w.run(ctx, r, prompt); err != nil {
			return err
		}
	}
	progress.Done()
	if err := o.output.emit(c, r); err != nil {
		return err
	}
	if !r.OK() {
		return errNo
	}
	return nil
}

// drafting is what is open while texts are decoded.
type drafting struct {
	options *draftOptions
	subject *trial.Subject
	plain   *gemma4.Model
	trial   *gemma4.Model // with the policies of the mode; plain where it needs none
	plan    *chunking.Plan
	prompts [][]int
}

func (w *drafting) prepare(c *console.Console, layout string) error {
	o := w.options
	for i, q := range w.subject.Set.Sequences[:min(o.prompts, len(w.subject.Set.Sequences))] {
		if len(q.Tokens) < o.prompt {
			return usagef("--prompt %d: sequence %d has %d tokens", o.prompt, i, len(q.Tokens))
		}
		w.prompts = append(w.prompts, q.Tokens[:o.prompt])
	}
	if layout == "" && o.verify.value != string(speculate.Clean) {
		layout = draftLayout
	}
	if layout != "" {
		l, err := loadLayout(c, layout, w.subject.Model)
		if err != nil {
			return err
		}
		l.Context = o.prompt + o.tokens
		if w.plan, err = l.Plan(w.subject.Model); err != nil {
			return usageError{err}
		}
	}
	return w.load()
}

// load loads the model, and once more with other policies where the mode asks for some.
func (w *drafting) load() error {
	source := w.subject.Checkpoint()
	a, err := source.Arithmetic(w.options.mode.value, w.options.threads)
	if err != nil {
		return usageError{err}
	}
	if err := (demand{mode: w.options.mode.value, context: w.options.prompt + w.options.tokens, sequences: 1}).fits(source, w.options.memory); err != nil {
		return err
	}
	if w.plain, err = gemma4.Load(source.Config, source, a, gemma4.Options{}); err != nil || w.plan == nil {
		w.trial = w.plain
		return err
	}
	policies, err := speculate.Policies(w.plan, speculate.Mode(w.options.verify.value))
	if err != nil {
		return err
	}
	w.trial, err = gemma4.Load(source.Config, source, a, gemma4.Options{Policies: policies})
	return err
}

// run decodes one text both ways.
func (w *drafting) run(ctx context.Context, r *view.Draft, prompt []int) error {
	o := w.options
	if o.exits {
		exits, err := speculate.Exits(ctx, w.plain, prompt, o.tokens)
		r.AddExits(exits)
		return err
	}
	target, err := w.target()
	if err != nil {
		return err
	}
	clean, err := speculate.NewWhole(w.plain, o.prompt+o.tokens)
	if err != nil {
		return err
	}
	watched := speculate.Watch(target, clean)
	drafted, err := speculate.Decode(ctx, watched, o.newDrafter(), prompt, speculate.Length{Tokens: o.tokens, Drafts: o.drafts})
	if err != nil {
		return err
	}
	plain, err := speculate.NewWhole(w.plain, o.prompt+o.tokens)
	if err != nil {
		return err
	}
	greedy, err := speculate.Decode(ctx, plain, o.newDrafter(), prompt, speculate.Length{Tokens: o.tokens})
	if err != nil {
		return err
	}
	r.Add(drafted.Profile, watched.Counts, speculate.Parted(drafted.Tokens, greedy.Tokens))
	return nil
}

func (w *drafting) target() (speculate.Target, error) {
	if w.plan == nil {
		return speculate.NewWhole(w.trial, w.options.prompt+w.options.tokens)
	}
	return speculate.NewChunked(w.plain, w.trial, w.plan, speculate.Mode(w.options.verify.value))
}

func (o *draftOptions) newDrafter() speculate.Drafter {
	switch o.drafter.value {
	case lookupDrafter:
		return speculate.NewLookup(lookupTokens)
	case suffixDrafter:
		return speculate.NewSuffix(suffixDepth)
	}
	panic(fmt.Sprintf("simulate: a drafter %q that its flag lets through", o.drafter.value))
}
