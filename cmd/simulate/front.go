package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim"
	exact "anelab/anesim/search"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/quant"
)

// frontFlags are the settings that fronts are searched over.
type frontFlags struct {
	on      bool
	weights []string
	attn    []string
	prompt  int
	rows    int
}

// frontOnly are the flags that mean nothing without --front.
var frontOnly = []string{"weights", "attn", "prompt", "prefill"}

func (f *frontFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "front", false, "show what nothing beats in rate, memory, first token and download")
	cmd.Flags().StringSliceVar(&f.weights, "weights", []string{"int4g32"}, "`ENCODING` of the weights, or several, with --front")
	cmd.Flags().StringSliceVar(&f.attn, "attn", []string{ownPolicy}, "attention `POLICY` of full layers, or several, with --front")
	cmd.Flags().IntVar(&f.prompt, "prompt", 400, "tokens of the prompt, with --front")
	cmd.Flags().IntVar(&f.rows, "prefill", 512, "rows of batched prefill, with --front; 0 is none")
}

// ownPolicy stands for the model's own attention.
const ownPolicy = "full"

// frontier shows what no other layout beats in rate, memory, first token and download.
func (o *sweepOptions) frontier(ctx context.Context, c *console.Console, s *subject) error {
	if f := o.output.format.value; f == string(view.JSONL) || f == string(view.Benchstat) {
		return usagef("--front has no --format %s; json and csv have all figures", f)
	}
	if len(o.layouts) > 0 {
		return usagef("--front searches all cuts; leave out %q", o.layouts[0])
	}
	if o.front.prompt < 1 || o.front.rows < 0 || max(o.front.prompt, o.front.rows) > maxLength {
		return usagef("--prompt %d --prefill %d: want 1 to %d tokens and up to as many rows", o.front.prompt, o.front.rows, maxLength)
	}
	g := exact.Grid{Model: s.model, Device: s.device, Workload: anesim.Workload{CopyBack: anesim.CopyBack(o.copyBack.value)}, MinCuts: o.chunks.lo,
		MaxCuts: min(o.chunks.hi, len(s.model.Layers)), Load: anesim.Load{Functions: 1}, Prompt: anesim.Prompt{Tokens: o.front.prompt, Rows: o.front.rows}}
	if o.untried {
		g.Legality = exact.AllowDoubtful
	}
	var err error
	if g.Variants, err = o.variants(); err != nil {
		return err
	}
	r := &view.Front{Made: made(c), Source: s.source(), Chunks: o.chunks.String(), Prompt: o.front.prompt, Variants: g.Variants}
	progress := c.Progress()
	defer progress.Done()
	for i, v := range g.Variants { // one at a time, so that a run can be interrupted
		if ctx.Err() != nil {
			return ctx.Err()
		}
		progress.Say("settings %d of %d", i+1, len(g.Variants))
		one := g
		one.Variants = []exact.Variant{v}
		e, err := exact.Explore(one)
		if err != nil {
			return usageError{err}
		}
		r.Priced, r.Refused = r.Priced+e.Points, r.Refused+e.Refused
		r.Points = append(r.Points, e.Variants[v]...)
	}
	progress.Done()
	return o.output.emit(c, r)
}

// variants are all combinations of contexts, encodings and policies.
func (o *sweepOptions) variants() ([]exact.Variant, error) {
	var all []exact.Variant
	for _, w := range o.front.weights {
		if _, err := quant.ParseEncoding(w); err != nil {
			return nil, usagef("--weights %s: %w", w, err)
		}
		for _, a := range o.front.attn {
			if err := chunking.CheckPolicy(a); err != nil {
				return nil, usagef("--attn %s: %w", a, err)
			}
			for _, length := range o.contexts.values {
				v := exact.Variant{Weights: w, Attn: strings.TrimSuffix(a, ownPolicy), Context: length}
				if !slices.Contains(all, v) {
					all = append(all, v)
				}
			}
		}
	}
	return all, nil
}
