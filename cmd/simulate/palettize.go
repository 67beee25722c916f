package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml/compress"
	"anelab/coreml/mlpackage"
	"anelab/internal/format"
	"anelab/quant"
)

type palettizeOptions struct {
	result      outputFlags // without a file: -o is the package
	path        string
	bits, group int
	mode        choice
	granularity choice
	scaled      bool
	linear      bool
	asymmetric  bool
	skip, only  []string
	minElements int64
	cosine      float64
	rowCosine   float64
}

// granularities are what shares a table or a scale.
var granularities = []string{"per_grouped_channel", "per_tensor", "per_channel", "per_block"}

func newPalettizeCmd(c *console.Console) *cobra.Command {
	o := &palettizeOptions{}
	cmd := &cobra.Command{
		Use:   "palettize PACKAGE -o OUT",
		Short: "Store the weights of a Core ML package in few bits",
		Long: `Replace the fp16 and fp32 weights of conv, linear and matmul ops by palettes, as
coremltools does it, or with --linear by integers and scales. Weights that other
ops read too, such as a tied embedding, stay; every weight is reported. OUT is
written beside its name and renamed when it is complete.`,
		Example: `  simulate palettize chunk1.mlpackage -o chunk1_w4.mlpackage --bits 4 --group 32
  simulate palettize chunk4.mlpackage -o out.mlpackage --skip 'lm_head*'
  simulate palettize model.mlpackage -o int8.mlpackage --linear --bits 8`,
		Args:              exactArgs(1, "package"),
		ValidArgsFunction: completeModels,
		RunE:              func(cmd *cobra.Command, args []string) error { return runPalettize(cmd.Context(), c, o, args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func (o *palettizeOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.path, "output", "o", "", "write the package `OUT`")
	f.IntVar(&o.bits, "bits", 4, "bits of an index: 1, 2, 3, 4, 6 or 8; of an integer: 4 or 8; 0 with --mode unique: the fewest")
	f.IntVar(&o.group, "group", 32, "output channels per table; with --linear input channels per scale of per_block")
	o.mode = choice{"kmeans", []string{"kmeans", "uniform", "unique"}, "MODE"}
	addChoice(cmd, "mode", "how entries are chosen", &o.mode)
	o.granularity = choice{"", granularities, "WHAT"}
	addChoice(cmd, "granularity", "what shares a table or scale (default per_grouped_channel, with --linear per_channel)", &o.granularity)
	f.BoolVar(&o.scaled, "channel-scale", false, "divide by a scale per input first, and fold it into the tables")
	f.BoolVar(&o.linear, "linear", false, "integers times a scale instead of palettes")
	f.BoolVar(&o.asymmetric, "asymmetric", false, "with --linear: unsigned integers and a zero point")
	f.StringArrayVar(&o.skip, "skip", nil, "leave weights, or weights of ops, whose name matches `PATTERN`")
	f.StringArrayVar(&o.only, "only", nil, "leave all others than those whose name matches `PATTERN`")
	f.Int64Var(&o.minElements, "min-elements", compress.DefaultMinElements, "leave weights of at most `N` elements")
	f.Float64Var(&o.cosine, "min-cosine", 0.5, "leave a weight whose cosine to its palette would be below `C`")
	f.Float64Var(&o.rowCosine, "min-row-cosine", -1, "the same for its worst row")
	formats := []string{"text", "json", "csv", "markdown"}
	o.result.format = choice{formats[0], formats, "FORMAT"}
	addChoice(cmd, "format", "report as", &o.result.format)
	o.result.color = choice{string(console.ColorAuto), []string{"auto", "always", "never"}, "WHEN"}
	addChoice(cmd, "color", "colour in text", &o.result.color)
}

// options are what the flags ask of package compress; the error is wrong usage.
func (o *palettizeOptions) options() (compress.Options, error) {
	opt := compress.Options{Selection: compress.Selection{Skip: o.skip, Only: o.only, MinElements: o.minElements}, Gate: quant.Gate{Cosine: o.cosine, WorstCosine: o.rowCosine}}
	if o.minElements <= 0 {
		opt.MinElements = -1
	}
	if o.linear {
		return opt, o.integers(&opt)
	}
	mode, err := quant.ParseMode(o.mode.value)
	if err != nil {
		return opt, err
	}
	opt.Palette = quant.Options{Mode: mode, Bits: o.bits, Group: o.group, ChannelScale: o.scaled}
	switch o.granularity.value {
	case "per_tensor":
		opt.Palette.Group = 0
	case "per_channel":
		opt.Palette.Group = 1
	case "per_block":
		return opt, fmt.Errorf("--granularity per_block is for --linear; palettes are per_grouped_channel")
	}
	if o.asymmetric {
		return opt, fmt.Errorf("--asymmetric is for --linear")
	}
	return opt, nil
}

// integers are the settings of --linear.
func (o *palettizeOptions) integers(opt *compress.Options) error {
	l := &compress.Linear{Spec: quant.LinearSpec{Integer: quant.I8, Bits: o.bits, Granularity: quant.PerRow, Scale: quant.F16}}
	if o.asymmetric {
		l.Spec.Integer, l.Symmetry = quant.U8, quant.Asymmetric
	}
	switch o.granularity.value {
	case "per_tensor":
		l.Spec.Granularity = quant.PerTensor
	case "per_block":
		l.Spec.Granularity, l.Spec.Block = quant.PerBlock, o.group
	case "per_grouped_channel":
		return fmt.Errorf("--granularity per_grouped_channel is for palettes; integers are per_channel, per_block or per_tensor")
	}
	if o.scaled {
		return fmt.Errorf("--channel-scale is for palettes")
	}
	opt.Linear = l
	return nil
}

// settings is what was asked for, in words.
func (o *palettizeOptions) settings(opt *compress.Options) string {
	if opt.Linear != nil {
		return fmt.Sprintf("linear, %d bits, %s", o.bits, [...]string{"a scale per tensor", "a scale per channel", fmt.Sprintf("a scale per %d inputs", o.group)}[opt.Linear.Spec.Granularity])
	}
	bits := fmt.Sprintf("%d bits", o.bits)
	if o.bits == 0 {
		bits = "the fewest bits"
	}
	if opt.Palette.Group == 0 {
		return o.mode.value + ", " + bits + ", one table per tensor"
	}
	return fmt.Sprintf("%s, %s, groups of %d channels", o.mode.value, bits, opt.Palette.Group)
}

func runPalettize(ctx context.Context, c *console.Console, o *palettizeOptions, path string) error {
	if o.path == "" {
		return usagef("palettize wants -o OUT.mlpackage")
	}
	if !strings.EqualFold(filepath.Ext(filepath.Clean(o.path)), ".mlpackage") {
		return usagef("-o %s: want a name that ends in .mlpackage", o.path)
	}
	opt, err := o.options()
	if err != nil {
		return usageError{err}
	}
	if err := opt.Valid(); err != nil {
		return usageError{err}
	}
	pkg, err := mlpackage.Open(path)
	if err != nil {
		return err
	}
	defer pkg.Close()
	r := &view.Palettize{Made: made(c), From: path, To: o.path, Settings: o.settings(&opt)}
	if r.Outcomes, err = palettize(ctx, c, pkg, o.path, opt); err != nil {
		return err
	}
	return o.result.emit(c, r)
}

// palettize compresses a package and writes it. What is compressed waits in a file beside the target.
func palettize(ctx context.Context, c *console.Console, pkg *mlpackage.Package, target string, opt compress.Options) (_ []compress.Outcome, err error) {
	spool, err := compress.NewSpool(filepath.Dir(filepath.Clean(target)))
	if err != nil {
		return nil, &format.Error{Path: target, Got: reason(err).Error(), Want: "a folder that can be written to"}
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	opt.Store = spool
	progress := c.Progress()
	defer progress.Done()
	outcomes, err := compress.Apply(ctx, pkg.Program, opt, func(done, total int64) {
		progress.Say("%.0f%% of %.1f M weights", 100*float64(done)/float64(max(total, 1)), float64(total)/1e6)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg.Path, err)
	}
	return outcomes, mlpackage.Write(ctx, target, pkg, func(written int64) { progress.Say("%.1f MB written", float64(written)/1e6) })
}
