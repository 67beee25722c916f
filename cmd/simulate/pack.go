package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/internal/checkpoint"
	"anelab/internal/checkpoint/converted"
	"anelab/internal/checkpoint/packed"
	"anelab/quant"
)

type packOptions struct {
	path   string
	mode   string
	verify string
	base   string
	pack   checkpoint.PackOptions
}

func newPackCmd(c *console.Console) *cobra.Command {
	o := &packOptions{}
	cmd := &cobra.Command{
		Use:   "pack CHECKPOINT|PACKAGE... -o FILE",
		Short: "Write a checkpoint as the kernels read it, in 4 bits",
		Long: `Write a checkpoint as one file that is mapped and used as it is: linears as
4-bit palettes of 32 rows, tables as bytes with a scale per row. With --check,
read a packed file and compare every checksum.

Weights of Core ML packages keep the palettes that they have, and the file notes
what their converter chose, so that ane computes what they do; embedding tables
and config come from the checkpoint named by --base.`,
		Example: `  simulate pack gemma-4-E2B-it -o e2b.anelab
  simulate pack gemma-4-E2B-it -o e2b.anelab --head 8 --palettes kmeans
  simulate pack chunk*.mlpackage --base gemma-4-E2B-it -o e2b.anelab
  simulate pack --check e2b.anelab`,
		RunE: func(cmd *cobra.Command, args []string) error { return runPack(cmd.Context(), c, o, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.path, "output", "o", "", "write to `FILE`")
	f.StringVar(&o.mode, "palettes", "kmeans", "how palettes are made: kmeans or uniform")
	complete(cmd, "palettes", []string{"kmeans", "uniform"})
	f.IntVar(&o.pack.HeadBits, "head", 4, "bits of the LM head: 4, 8 or 16")
	f.IntVar(&o.pack.TableBits, "tables", 8, "bits of the embedding tables: 8 or 16")
	f.StringVar(&o.base, "base", "", "`CHECKPOINT` with the config and tables of packages")
	f.StringVar(&o.verify, "check", "", "check the sums of a packed `FILE`")
	return cmd
}

func runPack(ctx context.Context, c *console.Console, o *packOptions, args []string) error {
	if o.verify != "" {
		return checkPacked(ctx, c, o.verify)
	}
	if len(args) == 0 || o.path == "" {
		return usagef("pack wants a checkpoint and -o FILE")
	}
	mode, err := quant.ParseMode(o.mode)
	if err != nil {
		return usageError{err}
	}
	o.pack.Mode = mode
	src, closer, err := o.open(args)
	if err != nil {
		return err
	}
	defer closer()
	progress := c.Progress()
	err = checkpoint.Pack(ctx, src, o.path, o.pack, func(done, total int) { progress.Say("%d of %d tensors", done, total) })
	progress.Done()
	if err != nil {
		return err
	}
	info, err := os.Stat(o.path)
	if err != nil {
		return err
	}
	return printed(fmt.Fprintf(c.Out, "%s: %d tensors, %.1f MB\n", o.path, len(src.Names()), float64(info.Size())/1e6))
}

// open opens a checkpoint, or packages beside the checkpoint that they were made from.
func (o *packOptions) open(args []string) (checkpoint.PackSource, func() error, error) {
	packages := o.base != ""
	if !packages && len(args) > 1 {
		return nil, nil, usagef("%d checkpoints; want one, or packages and --base CHECKPOINT", len(args))
	}
	path := args[0]
	if packages {
		path = o.base
	} else if strings.HasSuffix(path, ".mlpackage") {
		return nil, nil, usagef("%s is a package; name the checkpoint with its tables by --base", path)
	}
	src, err := openCheckpoint(path)
	if err != nil {
		return nil, nil, err
	}
	o.pack.Config = src.Config
	if !packages {
		return src, src.Close, nil
	}
	weights, err := converted.Open(src.Config, src, args...)
	if err != nil {
		src.Close()
		return nil, nil, err
	}
	closer := func() error { return errors.Join(weights.Close(), src.Close()) }
	o.pack.Choices.Rules = weights.Choices.Rules
	if weights.Choices.Folded {
		o.pack.Choices.Projection = packed.ProjectionScaled
	}
	return weights, closer, nil
}

func checkPacked(ctx context.Context, c *console.Console, path string) error {
	f, err := packed.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Verify(ctx); err != nil {
		return err
	}
	return printed(fmt.Fprintf(c.Out, "%s: %d tensors, every checksum holds\n", path, len(f.Names())))
}

// printed is the error of a print.
func printed(_ int, err error) error { return err }
