package main

import (
	"context"
	"errors"
	"slices"

	"anelab/anesim"
	exact "anelab/anesim/search"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

// best finds the optimum for every number of chunks asked for, and for any number, by dynamic programming; each with a proof
// that was checked.
func (o *sweepOptions) best(ctx context.Context, c *console.Console, s *subject) error {
	if len(o.layouts) > 0 {
		return usagef("--best searches all cuts; leave out %q", o.layouts[0])
	}
	if o.output.format.value == string(view.JSONL) {
		return usagef("--best has no --format jsonl: there is one optimum for each number of chunks; json has them all")
	}
	r := &view.Best{Made: made(c), Source: s.source(), CopyBack: anesim.CopyBack(o.copyBack.value)}
	for _, length := range o.contexts.values {
		for chunks := o.chunks.lo; chunks <= min(o.chunks.hi, len(s.model.Layers)); chunks++ {
			if err := o.addBest(ctx, s, r, exact.Request{Chunks: chunks, Settings: chunking.Layout{Context: length}}); err != nil {
				return err
			}
		}
		if err := o.addBest(ctx, s, r, exact.Request{Settings: chunking.Layout{Context: length}}); err != nil {
			return err
		}
	}
	for _, x := range r.Optima {
		if x.Found && x.Any() {
			r.Basis, r.Warnings = x.Prediction.Basis, union(r.Warnings, x.Prediction.Warnings)
		}
	}
	warn(c, r.Warnings)
	return o.output.emit(c, r)
}

// addBest solves one request. Where every layout has a chunk that is refused there is no optimum, which is an answer.
func (o *sweepOptions) addBest(ctx context.Context, s *subject, r *view.Best, q exact.Request) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q.Model, q.Device, q.Workload = s.model, s.device, anesim.Workload{CopyBack: r.CopyBack}
	if o.untried {
		q.Legality = exact.AllowDoubtful
	}
	x := view.Optimum{Chunks: q.Chunks, Context: q.Settings.Context}
	result, err := exact.Best(q)
	var none *format.Error
	switch {
	case errors.As(err, &none) && none.Path == "search":
		r.Optima = append(r.Optima, x)
		return nil
	case err != nil:
		return err
	}
	if err := result.Proof.Verify(); err != nil {
		return err
	}
	plan, err := result.Layout.Plan(s.model)
	if err != nil {
		return err
	}
	x.Found, x.Proof, x.Layout = true, result.Proof, result.Layout
	x.Prediction = anesim.Predict(plan, s.device, q.Workload)
	x.Layout.Cuts = slices.Clone(x.Layout.Cuts)
	r.Optima = append(r.Optima, x)
	return nil
}
