package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anelab"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/proof"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml"
	"anelab/coreml/bundle"
	"anelab/internal/arith"
	"anelab/internal/checkpoint"
	"anelab/internal/format"
	"anelab/parity/golden"
	"anelab/quant"
)

type verifyOptions struct {
	output     outputFlags
	checkpoint string // "" = the embedded one
	layout     string
	modes      []string
	goldens    []string
	tokens     int
	calls      callFlags
	bundle     bundleFlags
	limits     limitFlags
	summary    string // "" = none
	memory     byteSize
}

// verifyLayout is proved when no layout is given: the one with the most hand-offs.
const verifyLayout = "@4way"

func newVerifyCmd(c *console.Console) *cobra.Command {
	o := &verifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify [CHECKPOINT [LAYOUT|PACKAGE…] | PACKAGE… | BUNDLE]",
		Short: "Chunks = whole = golden = packages; exit 3 if not",
		Long: `Run a checkpoint whole and cut by a layout, and compare every intermediate
tensor: chunks must equal the whole bit for bit, the whole must be within the
tolerances of a golden, if there is one.

CHECKPOINT is a directory, a .safetensors or .bin file with config.json beside
it, or formula:NAME (weights from a formula, nothing to download). Without it, a
tiny model that comes with the program is verified in every mode. Goldens made
from the same weights are looked for beside the directory.

With PACKAGEs (.mlpackage or .mlmodelc), the chunks that a converter made of the
checkpoint are compared with it: their weights, then their graphs, run op by op,
with the model. A PACKAGE by itself is run on the calls of --inputs and held
against another one, op by op, or against the results of --expect.

BUNDLE is a folder as an app loads it, with model_config.json: its chunks, fed
from its own tables, are compared with the Go model that has their weights and
the same tables, over a prompt that goes past the window. --weights names the
checkpoint that it was made of, if weights are to be compared, too.`,
		Example: `  simulate verify
  simulate verify gemma-4-E2B-it @3way --mode ane
  simulate verify tiny-e2b/bf16 @3way --golden golden_bf16.safetensors
  simulate verify gemma-4-E2B-it OUT/*.mlpackage
  simulate verify OUT --weights gemma-4-E2B-it
  simulate verify new.mlpackage old.mlpackage --inputs calls.safetensors
  simulate verify chunk1.mlpackage --inputs in.safetensors \\
    --expect out.safetensors --precision fp16`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeVerify,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd.Context(), c, o, args)
		},
	}
	cmd.Flags().StringSliceVar(&o.modes, "mode", nil, "numerics `MODE`: "+strings.Join(arith.Modes, ", ")+", or several (default f32)")
	complete(cmd, "mode", arith.Modes)
	cmd.Flags().StringArrayVar(&o.goldens, "golden", nil, "compare with the tensors of `FILE`; may be repeated")
	cmd.Flags().IntVar(&o.tokens, "tokens", 0, "length of the prompt where no golden brings one (default 24)")
	o.calls.add(cmd)
	o.bundle.add(cmd)
	o.limits.add(cmd)
	cmd.Flags().StringVar(&o.summary, "summary", "", "write the page as Markdown to `FILE`, too")
	addMemory(cmd, &o.memory)
	o.output.add(cmd, "text", "json", "csv", "markdown", "junit")
	return cmd
}

// runVerify finds out which of its forms was asked for.
func runVerify(ctx context.Context, c *console.Console, o *verifyOptions, args []string) error {
	first := slices.IndexFunc(args, coreml.IsModel)
	isBundle := len(args) > 0 && first != 0 && bundle.Is(args[0])
	switch {
	case isBundle && len(args) > 1:
		return usagef("a bundle is verified by itself: %q is too much; its checkpoint is named with --weights", args[1])
	case isBundle:
		return o.runBundle(ctx, c, args[0])
	case o.bundle.given():
		return usagef("--weights, --config and --ids are about a bundle: name its folder, which holds %s", bundle.ConfigName)
	case first == 0:
		return o.runProgram(ctx, c, args)
	case o.calls.given():
		return usagef("--inputs, --expect and --device are about a package: name one first")
	case first == 1:
		return o.runPackages(ctx, c, args[0], args[1:])
	case len(args) > 2:
		return usagef("verify wants at most a checkpoint and a layout, or packages; %q is neither", args[len(args)-1])
	}
	o.layout = verifyLayout
	if len(args) > 0 {
		o.checkpoint = args[0]
	}
	if len(args) > 1 {
		o.layout = args[1]
	}
	return o.runCheckpoint(ctx, c)
}

// show writes a result and says no if it is one.
func (o *verifyOptions) show(c *console.Console, r verdict) error {
	if err := o.summarize(c, r); err != nil {
		return err
	}
	if view.Format(o.output.format.value) != view.JUnit {
		if err := o.output.emit(c, r); err != nil {
			return err
		}
	} else if err := o.writeJUnit(c, r); err != nil {
		return err
	}
	if !r.OK() {
		return errNo
	}
	return nil
}

// summarize writes the page for people where CI systems show it.
func (o *verifyOptions) summarize(c *console.Console, r view.Result) error {
	if o.summary == "" {
		return nil
	}
	out, err := c.Open(o.summary)
	if err != nil {
		return usagef("--summary %s: %w", o.summary, reason(err))
	}
	if err := view.Write(out, r, view.Markdown, console.Paint{}); err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}

// verdict is a result with an answer.
type verdict interface {
	view.Result
	view.Claiming
	OK() bool
}

func (o *verifyOptions) writeJUnit(c *console.Console, r view.Claiming) error {
	out, err := o.output.open(c)
	if err != nil {
		return err
	}
	if err := view.WriteJUnit(out, r); err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}

// completeVerify offers files for the checkpoint, then presets.
func completeVerify(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []cobra.Completion{"formula:e2b-10L", "formula:e2b-full"}, cobra.ShellCompDirectiveDefault
	}
	return presetCompletions(), cobra.ShellCompDirectiveDefault
}

// runCheckpoint proves a checkpoint cut by a layout.
func (o *verifyOptions) runCheckpoint(ctx context.Context, c *console.Console) error {
	if err := o.checkModes(); err != nil {
		return err
	}
	v, err := o.open(c)
	if err != nil {
		return err
	}
	defer v.close()
	for _, mode := range o.modes {
		if err := (demand{mode: mode, context: v.subject(mode, o).Context(), sequences: 1}).fits(v.checkpoint, o.memory); err != nil {
			return err
		}
	}
	r := &view.Verify{Made: made(c), Checkpoint: v.name, Layers: len(v.model.Layers), Layout: v.layout.String()}
	progress := c.Progress()
	defer progress.Done()
	for _, mode := range o.modes {
		s := v.subject(mode, o)
		result, err := proof.Run(ctx, s, func(step string) { progress.Say("%s: %s", mode, step) })
		if err != nil {
			return err
		}
		r.Results = append(r.Results, result)
	}
	progress.Done()
	for _, result := range r.Results {
		warn(c, result.Warnings)
	}
	return o.show(c, r)
}

// checkModes fills in the default: every mode for the embedded model, float32 for another.
func (o *verifyOptions) checkModes() error {
	if o.tokens < 0 {
		return usagef("--tokens %d: want 1 or more", o.tokens)
	}
	if len(o.modes) == 0 {
		o.modes = []string{"f32"}
		if o.checkpoint == "" {
			o.modes = arith.Modes
		}
	}
	for _, m := range o.modes {
		if !slices.Contains(arith.Modes, m) {
			return usagef("unknown mode %q; %s", m, format.DidYouMean(strings.ToLower(m), arith.Modes))
		}
	}
	return nil
}

// verification is what is open while verify runs.
type verification struct {
	name       string
	checkpoint *checkpoint.Checkpoint
	model      *chunking.Model
	layout     chunking.Layout
	weights    quant.DType
	given      []*golden.File // by --golden
	found      []*golden.File // beside the checkpoint
}

// embeddedCheckpoint and the goldens beside it.
const embeddedCheckpoint = "testdata/golden/tiny-e2b/bf16"

func (o *verifyOptions) open(c *console.Console) (*verification, error) {
	v := &verification{name: o.checkpoint}
	var err error
	if o.checkpoint == "" {
		v.name = "tiny-e2b (embedded)"
		v.checkpoint, err = checkpoint.OpenFS(anelab.Files, embeddedCheckpoint)
	} else {
		v.checkpoint, err = openCheckpoint(o.checkpoint)
	}
	if err != nil {
		return nil, err
	}
	err = v.prepare(c, o)
	if err != nil {
		v.close()
	}
	return v, err
}

// prepare resolves layout and goldens for the open checkpoint.
func (v *verification) prepare(c *console.Console, o *verifyOptions) error {
	var err error
	if v.model, err = chunking.NewModel(v.checkpoint.Config); err != nil {
		return err
	}
	if v.layout, err = loadLayout(c, o.layout, v.model); err != nil {
		return err
	}
	embed, err := v.checkpoint.Describe("embed_tokens.weight")
	if err != nil {
		return err
	}
	v.weights = embed.DType
	for _, path := range o.goldens {
		f, err := golden.Open(path)
		if err != nil {
			return fileError(path, err)
		}
		v.given = append(v.given, f)
		for _, mode := range o.modes {
			if mode != "ane" && !v.recorded(f, mode) {
				c.Warn(fmt.Sprintf("%s records %s weights computed in %s, not this checkpoint in mode %s", path, f.Run.Weights, f.Run.Compute, mode))
			}
		}
	}
	if len(v.given) == 0 {
		return v.findGoldens(o.checkpoint)
	}
	return nil
}

// fileError says which file is missing; what is wrong inside one says so itself.
func fileError(path string, err error) error {
	var missing *fs.PathError
	if errors.As(err, &missing) {
		return &format.Error{Path: path, Err: missing.Err}
	}
	return err
}

// findGoldens opens the recordings of a small model, which stand beside its checkpoints, and those of formula weights, which
// come with the program.
func (v *verification) findGoldens(path string) error {
	files, pattern := fs.FS(anelab.Files), filepath.Dir(embeddedCheckpoint)+"/*.safetensors"
	name, isFormula := strings.CutPrefix(path, "formula:")
	switch {
	case isFormula:
		pattern = "testdata/golden/formula/" + name + "_*.safetensors"
	case path != "":
		files, pattern = os.DirFS(parentOf(path)), "*.safetensors"
	}
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil // a name that is no pattern has no goldens
	}
	for _, name := range names {
		if base := filepath.Base(name); !isFormula && !strings.HasPrefix(base, "golden_") && !strings.HasPrefix(base, "decode_") {
			continue
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		f, err := golden.Parse(name, data)
		if err != nil {
			return err
		}
		v.found = append(v.found, f)
	}
	return nil
}

// parentOf is the directory that holds the checkpoint's directory.
func parentOf(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	return filepath.Dir(filepath.Clean(path))
}

// subject picks the goldens for a mode. Where none was recorded in it, prompts are taken from those of float32.
func (v *verification) subject(mode string, o *verifyOptions) *proof.Subject {
	s := &proof.Subject{Checkpoint: v.checkpoint, Layout: v.layout, Mode: mode, Goldens: v.given, Tokens: o.tokens}
	if len(v.given) > 0 {
		return s
	}
	for _, f := range v.found {
		switch {
		case v.recorded(f, mode):
			s.Goldens = append(s.Goldens, f)
		case o.tokens == 0 && v.recorded(f, "f32"):
			s.Prompts = append(s.Prompts, f)
		}
	}
	if len(s.Goldens) > 0 {
		s.Prompts = nil
	}
	return s
}

// recorded reports whether a golden is of this checkpoint in a mode. No reference computes in ane's arithmetic.
func (v *verification) recorded(f *golden.File, mode string) bool {
	if mode == "ane" {
		return false
	}
	if strings.HasPrefix(f.Run.Weights, "formula") {
		return (mode == "hf-bf16") == (f.Run.Compute == "torch.bfloat16")
	}
	return proof.Wanted(f, v.weights, mode)
}

func (v *verification) close() {
	v.checkpoint.Close()
	for _, f := range append(v.given, v.found...) {
		f.Close()
	}
}
