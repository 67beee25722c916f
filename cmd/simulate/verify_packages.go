package main

import (
	"context"
	"fmt"

	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/proof"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml"
)

// runPackages proves the packages of a converter against the checkpoint that they were made of.
func (o *verifyOptions) runPackages(ctx context.Context, c *console.Console, path string, packages []string) error {
	if len(o.modes) > 0 || len(o.goldens) > 0 {
		return usagef("packages compute in fp16: --mode and --golden are for a checkpoint by itself")
	}
	base, err := openCheckpoint(path)
	if err != nil {
		return err
	}
	defer base.Close()
	s := &proof.PackageSubject{Config: base.Config, Checkpoint: base, Tokens: o.tokens}
	if t := o.limits.tolerance(); t != nil {
		s.Tolerance = *t
	}
	for _, p := range packages {
		if !coreml.IsModel(p) {
			return usagef("%q is no package: after a checkpoint want a layout, or packages alone", p)
		}
		program, err := coreml.Open(p)
		if err != nil {
			return err
		}
		defer program.Close()
		s.Programs = append(s.Programs, program)
	}
	context := (&proof.Subject{Checkpoint: base, Tokens: o.tokens}).Context()
	if err := (demand{mode: "ane", context: context, sequences: 1}).fits(base, o.memory); err != nil {
		return err
	}
	return o.provePackages(ctx, c, path, s)
}

// provePackages makes the comparisons and shows them under a name.
func (o *verifyOptions) provePackages(ctx context.Context, c *console.Console, name string, s *proof.PackageSubject) error {
	progress := c.Progress()
	defer progress.Done()
	result, err := proof.RunPackages(ctx, s, func(step string) { progress.Say("%s", step) })
	if err != nil {
		return err
	}
	progress.Done()
	warn(c, result.Warnings)
	r := &view.Verify{Made: made(c), Checkpoint: name, Layers: s.Config.NumHiddenLayers, Layout: layoutOf(result.Plan, len(s.Programs)), Results: []*proof.Result{result}}
	for _, p := range s.Programs {
		r.Packages = append(r.Packages, p.Path)
	}
	return o.show(c, r)
}

// layoutOf is the layout that packages turned out to be.
func layoutOf(plan *chunking.Plan, packages int) string {
	if plan == nil {
		return fmt.Sprintf("%d packages", packages)
	}
	return plan.Layout.String()
}
