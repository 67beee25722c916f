package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/proof"
	"anelab/coreml"
	"anelab/coreml/bundle"
	"anelab/coreml/interp"
	"anelab/gemma4"
	"anelab/internal/checkpoint/converted"
)

// bundleFlags say what a bundle is held against.
type bundleFlags struct {
	weights, config string
	ids             []int
}

func (f *bundleFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.weights, "weights", "", "of a bundle: compare weights with `CHECKPOINT`, too")
	flags.StringVar(&f.config, "config", "", "of a bundle: the model's config.json, if `FILE` says more than "+bundle.ConfigName)
	flags.IntSliceVar(&f.ids, "ids", nil, "of a bundle: the prompt as token `N`,… (default: made up, past the window)")
}

func (f *bundleFlags) given() bool { return f.weights != "" || f.config != "" || f.ids != nil }

// runBundle proves the chunks of a folder, fed from its tables.
func (o *verifyOptions) runBundle(ctx context.Context, c *console.Console, dir string) error {
	switch {
	case len(o.modes) > 0 || len(o.goldens) > 0 || o.calls.given():
		return usagef("a bundle computes in fp16, token by token: --mode and --golden are for a checkpoint, --inputs, --expect and --device for a package")
	case o.tokens < 0:
		return usagef("--tokens %d: want 1 or more", o.tokens)
	}
	b, err := bundle.Open(dir, bundle.Options{Precision: interp.ANE})
	if err != nil {
		return err
	}
	defer b.Close()
	s := &proof.PackageSubject{Tables: b.Tables, IDs: o.bundle.ids, Tokens: o.tokens}
	if t := o.limits.tolerance(); t != nil {
		s.Tolerance = *t
	}
	var files openFiles
	defer files.close()
	if err := o.bundle.subject(s, b, &files); err != nil {
		return err
	}
	return o.provePackages(ctx, c, dir, s)
}

// subject opens what else belongs to the bundle: the chunks of its prefill, its checkpoint.
func (f *bundleFlags) subject(s *proof.PackageSubject, b *bundle.Bundle, files *openFiles) error {
	for _, chunk := range b.Chunks {
		s.Programs = append(s.Programs, chunk.Files)
	}
	var err error
	if f.weights != "" {
		if s.Checkpoint, err = openCheckpoint(f.weights); err != nil {
			return err
		}
		*files = append(*files, s.Checkpoint)
	}
	if s.Config, err = f.configOf(s, b); err != nil {
		return err
	}
	for _, path := range b.PrefillPaths() {
		p, err := coreml.Open(path)
		if err != nil {
			return err
		}
		*files = append(*files, p)
		s.Programs = append(s.Programs, p)
	}
	for i, id := range f.ids {
		if id < 0 || id >= b.Config.VocabSize {
			return usagef("--ids: token %d is %d, want 0 to %d", i, id, b.Config.VocabSize-1)
		}
	}
	return nil
}

// configOf is the model's config: a file's, the checkpoint's, or what the bundle says with what its weights show.
func (f *bundleFlags) configOf(s *proof.PackageSubject, b *bundle.Bundle) (gemma4.Config, error) {
	switch {
	case f.config != "":
		text, err := os.ReadFile(f.config)
		if err != nil {
			return gemma4.Config{}, fileError(f.config, err)
		}
		return gemma4.ParseConfig(f.config, text)
	case s.Checkpoint != nil:
		return s.Checkpoint.Config, nil
	}
	config := b.Config.Model(nil)
	src, err := converted.New(config, b.Tables, s.Programs...)
	if err != nil {
		return config, err
	}
	var ffn []int
	for i := range config.NumHiddenLayers {
		t, err := src.Describe(fmt.Sprintf("layers.%d.mlp.gate_proj.weight", i))
		if err != nil {
			return config, err
		}
		ffn = append(ffn, t.Shape[0])
	}
	return b.Config.Model(ffn), nil
}
