package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"anelab/chunking"
	"anelab/chunking/emit"
	functions "anelab/chunking/run"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml/bundle"
	"anelab/internal/checkpoint"
	"anelab/internal/format"
	"anelab/quant"
)

type emitOptions struct {
	result  outputFlags // without a file: -o is the folder
	path    string
	weights string
	context sizes
	prefill tokenCounts
	verify  tokenCounts
	window  choice
	states  bool
	chunks  bool
	replace bool
	asked   map[string]bool // flags given
}

func newEmitCmd(c *console.Console) *cobra.Command {
	o := &emitOptions{context: sizes{most: 1}, prefill: tokenCounts{values: []int{8}}, verify: tokenCounts{values: []int{3}, most: 1}}
	cmd := &cobra.Command{
		Use:   "emit CHECKPOINT [LAYOUT] -o OUT",
		Short: "Write a layout as Core ML packages, with the files that apps need",
		Long: `Write every chunk of a layout as an .mlpackage, its functions sharing one file
of weights, and beside them what an app loads: model_config.json, embedding
tables in bytes, rotary tables. In mode ane the programs compute what the Go
model computes, bit for bit. OUT appears when it is complete, or not at all.

decode_q1 (main, if it is alone) takes a token; prefill_bN a prompt of up to N;
verify_qK tries K tokens and leaves the caches alone. With --state caches are
states of the model, and other functions than decode are written if asked for.`,
		Example: `  simulate emit gemma-4-E2B-it @3way -o OUT --weights int4g32 --context 2048
  simulate emit gemma-4-E2B-it @4way -o OUT --prefill 64,512 --verify 3
  simulate emit gemma-4-E2B-it @2way -o OUT --state --prefill 8 --only-chunks`,
		Args:              atMostArgs(2),
		ValidArgsFunction: completeVerify,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.asked = map[string]bool{"prefill": cmd.Flags().Changed("prefill"), "verify": cmd.Flags().Changed("verify")}
			return runEmit(cmd.Context(), c, o, args)
		},
	}
	o.flags(cmd)
	return cmd
}

// verifyWindows are the values of --verify-window.
var verifyWindows = map[string]functions.VerifyWindow{"shifted": functions.ShiftedWindow, "whole": functions.WholeWindow}

func (o *emitOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.path, "output", "o", "", "write the folder `OUT`")
	f.StringVar(&o.weights, "weights", "", "`ENCODING` of all linears: f16, int4g32, int<bits>g<rows> (default: the layout's)")
	complete(cmd, "weights", []string{"f16", "int4g32", "int8g32", "int6g32", "int3g32", "int2g32"})
	f.Var(&o.context, "context", "positions compiled into the chunks (default: the layout's, else 2048)")
	f.Var(&o.prefill, "prefill", "tokens of the prefill functions; 0 for none")
	f.Var(&o.verify, "verify", "tokens of the verify function; 0 for none")
	o.window = choice{"shifted", []string{"shifted", "whole"}, "WHICH"}
	addChoice(cmd, "verify-window", "what verified rows see of a window; whole ones need longer ports", &o.window)
	f.BoolVar(&o.states, "state", false, "keep keys and values in states (MLState)")
	f.BoolVar(&o.chunks, "only-chunks", false, "leave out the files beside the chunks")
	f.BoolVar(&o.replace, "replace", false, "replace an earlier output in OUT")
	formats := []string{"text", "json", "csv", "markdown"}
	o.result.format = choice{formats[0], formats, "FORMAT"}
	addChoice(cmd, "format", "report as", &o.result.format)
	o.result.color = choice{string(console.ColorAuto), []string{"auto", "always", "never"}, "WHEN"}
	addChoice(cmd, "color", "colour in text", &o.result.color)
}

// tokenCounts is a flag of whole numbers, 0 alone for none.
type tokenCounts struct {
	values []int
	most   int // how many; 0 = any number
}

func (t *tokenCounts) String() string { return (&sizes{values: t.values}).String() }

// Type is the placeholder in help.
func (t *tokenCounts) Type() string { return "N" }

// Set replaces the list.
func (t *tokenCounts) Set(text string) error {
	t.values = nil
	if text == "0" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return fmt.Errorf("want whole numbers from 1 on, or 0 for none")
		}
		t.values = append(t.values, n)
	}
	if t.most > 0 && len(t.values) > t.most {
		return fmt.Errorf("want one number")
	}
	return nil
}

// options are what the flags ask of package emit. Several functions over states are for those who ask: compilers for phones have
// refused them (spec coreml.md §7).
func (o *emitOptions) options(context int) emit.Options {
	e := emit.Options{Prefill: o.prefill.values, Window: verifyWindows[o.window.value]}
	if len(o.verify.values) > 0 {
		e.Verify = o.verify.values[0]
	}
	if o.states {
		e.Caches = emit.StateCaches
	}
	if !o.asked["prefill"] {
		e.Prefill = slices.DeleteFunc(slices.Clone(e.Prefill), func(n int) bool { return o.states || n > context })
	}
	if !o.asked["verify"] && (o.states || e.Verify > context) {
		e.Verify = 0
	}
	return e
}

func runEmit(ctx context.Context, c *console.Console, o *emitOptions, args []string) error {
	if len(args) == 0 || o.path == "" {
		return usagef("emit wants a checkpoint and -o OUT")
	}
	layout := verifyLayout
	if len(args) > 1 {
		layout = args[1]
	}
	src, err := openCheckpoint(args[0])
	if err != nil {
		return err
	}
	defer src.Close()
	plan, err := o.plan(c, src, layout)
	if err != nil {
		return err
	}
	chunks, err := emit.Emit(ctx, plan, src, o.options(plan.Context))
	if err != nil {
		return asked(err)
	}
	r := &view.Emit{Made: made(c), Checkpoint: args[0], Layout: plan.Layout.String(), Context: plan.Context, To: o.path}
	e := &emission{console: c, src: src, plan: plan, chunks: chunks}
	if err := e.write(ctx, o); err != nil {
		return err
	}
	warnOfWeights(c, chunks)
	if err := r.Measure(o.path, chunks); err != nil {
		return err
	}
	return o.result.emit(c, r)
}

// warnOfWeights tells of the first weight that is stored otherwise than asked for: a model has many of one shape.
func warnOfWeights(c *console.Console, chunks []*emit.Chunk) {
	var all []error
	for _, chunk := range chunks {
		all = append(all, chunk.Warnings...)
	}
	if len(all) == 0 {
		return
	}
	text := all[0].Error()
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	c.Warn(text)
}

// asked makes wrong usage of an error that is about what was asked for and not about a file.
func asked(err error) error {
	var e *format.Error
	if errors.As(err, &e) && e.Path == "" {
		return usageError{err}
	}
	return err
}

// plan resolves the layout with what the flags change of it.
func (o *emitOptions) plan(c *console.Console, src *checkpoint.Checkpoint, layout string) (*chunking.Plan, error) {
	model, err := chunking.NewModel(src.Config)
	if err != nil {
		return nil, err
	}
	l, err := loadLayout(c, layout, model)
	if err != nil {
		return nil, err
	}
	if len(o.context.values) > 0 {
		l.Context = o.context.values[0]
	}
	if o.weights != "" {
		e, err := quant.ParseEncoding(o.weights)
		if err != nil {
			return nil, usageError{err}
		}
		l.Cuts = slices.Clone(l.Cuts)
		for i := range l.Cuts {
			l.Cuts[i].Weights = e
		}
	}
	plan, err := l.Plan(model)
	if err != nil {
		return nil, usageError{err}
	}
	return plan, nil
}

// emission is an output under way.
type emission struct {
	console  *console.Console
	src      *checkpoint.Checkpoint
	plan     *chunking.Plan
	chunks   []*emit.Chunk
	progress *console.Progress
}

// write makes the folder.
func (e *emission) write(ctx context.Context, o *emitOptions) error {
	existing := emit.RefuseExisting
	if o.replace {
		existing = emit.ReplaceExisting
	}
	e.progress = e.console.Progress()
	defer e.progress.Done()
	err := emit.WriteFolder(o.path, existing, func(dir string) error {
		if err := e.writeChunks(ctx, dir); err != nil || o.chunks {
			return err
		}
		return e.writeBundle(ctx, dir)
	})
	if errors.Is(err, emit.ErrExists) && !o.replace {
		return fmt.Errorf("%w: --replace does that to an earlier output", err)
	}
	return err
}

func (e *emission) writeChunks(ctx context.Context, dir string) error {
	for i, chunk := range e.chunks {
		_, err := chunk.Write(ctx, dir, func(p emit.Progress) {
			e.progress.Say("chunk %d of %d: %s, %.1f MB", i+1, len(e.chunks), p.Weight, float64(p.WrittenBytes)/1e6)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeBundle writes the files beside the chunks, for models that the app which reads them can run.
func (e *emission) writeBundle(ctx context.Context, dir string) error {
	config := e.src.Config
	if config.HiddenSizePerLayer == 0 {
		e.console.Warn("only the chunks are written: no app's bundle holds a model without per-layer embeddings")
		return nil
	}
	content := bundle.Contents{Model: config, Source: e.src, Context: e.plan.Context, Name: modelName(e.src.Path()),
		Quantization: e.plan.Chunks[0].Weights.String(), Tokenizer: tokenizerBeside(e.src.Path())}
	return bundle.Write(ctx, dir, content, func(file string) { e.progress.Say("%s", file) })
}

// modelName is what an app lists a checkpoint as: its folder, or the name of its formula.
func modelName(path string) string {
	if name, ok := strings.CutPrefix(path, "formula:"); ok {
		return name
	}
	return filepath.Base(filepath.Dir(path))
}

// tokenizerBeside is the checkpoint's folder if it holds a tokenizer.
func tokenizerBeside(path string) string {
	for _, folder := range []string{path, filepath.Dir(path)} {
		if _, err := os.Stat(filepath.Join(folder, "tokenizer.json")); err == nil {
			return folder
		}
	}
	return ""
}
