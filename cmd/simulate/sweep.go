package main

import (
	"context"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/search"
	"anelab/cmd/simulate/internal/view"
)

type sweepOptions struct {
	output   outputFlags
	subject  subjectFlags
	copyBack choice
	chunks   span
	contexts sizes
	top      int
	untried  bool
	layouts  []string
	cuts     bool // search all cuts, not only layouts that were named
	optimum  bool // find the best one without looking at all
	front    frontFlags
	shard    shard
	resume   string // file of records
}

func newSweepCmd(c *console.Console) *cobra.Command {
	o := &sweepOptions{chunks: span{1, 5}, contexts: sizes{values: []int{512, 2048, 8192}}}
	cmd := &cobra.Command{
		Use:   "sweep [LAYOUT…]",
		Short: "Price every way to cut the model; rank the best and the presets",
		Long: `Price every way to cut the model into N..M chunks at each context, or only the
layouts that are named. Text and JSON rank the best and the presets; jsonl, csv
and benchstat stream one record per candidate.`,
		Example: `  simulate sweep
  simulate sweep --chunks 1..5 --context 512,2048,8192 --format jsonl
  simulate sweep --best --context 2048
  simulate sweep --front --chunks 1..3 --weights int4g32,int8g32
  simulate sweep --chunks 1..6 --resume results.jsonl --shard 1/4
  simulate sweep @4way @3way 'L0-14 | L15-34+head' --format benchstat`,
		ValidArgsFunction: completeLayouts(1 << 10),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.layouts, o.cuts = args, len(args) == 0 || cmd.Flags().Changed("chunks")
			for _, name := range frontOnly {
				if cmd.Flags().Changed(name) && !o.front.on {
					return usagef("--%s is for --front", name)
				}
			}
			return runSweep(cmd.Context(), c, o)
		},
	}
	o.subject.add(cmd)
	cmd.Flags().Var(&o.chunks, "chunks", "numbers of chunks")
	cmd.Flags().Var(&o.contexts, "context", "context lengths")
	cmd.Flags().IntVar(&o.top, "top", 10, "how many to rank, in text and json")
	cmd.Flags().BoolVar(&o.untried, "untried", false, "rank layouts that simulate check warns of, too")
	cmd.Flags().Var(&o.shard, "shard", "stream only part i of n, such as 1/4; simulate merge puts parts together")
	cmd.Flags().StringVar(&o.resume, "resume", "", "stream to `FILE` as jsonl, behind the records that it has already")
	cmd.Flags().BoolVar(&o.optimum, "best", false, "find the best of all cuts into any number of chunks, with a proof")
	o.front.add(cmd)
	o.copyBack = choice{string(anesim.CopyBackAsync), copyBacks, "WHEN"}
	addChoice(cmd, "copyback", "when the host copies the caches", &o.copyBack)
	o.output.add(cmd, "text", "json", "jsonl", "csv", "markdown", "benchstat")
	return cmd
}

func runSweep(ctx context.Context, c *console.Console, o *sweepOptions) error {
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	if o.top < 1 {
		return usagef("--top %d: want at least 1", o.top)
	}
	switch {
	case o.optimum && o.front.on:
		return usagef("--best and --front are two searches: choose one")
	case (o.optimum || o.front.on) && (o.resume != "" || o.shard.n > 0):
		return usagef("--resume and --shard are for streams, not for --best or --front")
	case o.optimum:
		return o.best(ctx, c, &s)
	case o.front.on:
		return o.frontier(ctx, c, &s)
	}
	space := &search.Space{Model: s.model, Device: s.device, Workload: anesim.Workload{CopyBack: anesim.CopyBack(o.copyBack.value)}, Untried: o.untried}
	if o.cuts {
		if o.chunks.lo > len(s.model.Layers) {
			return usagef("--chunks %s: %s has only %d layers", &o.chunks, s.modelName, len(s.model.Layers))
		}
		space.MinParts, space.MaxParts = o.chunks.lo, min(o.chunks.hi, len(s.model.Layers))
	}
	for _, text := range o.layouts {
		l, err := loadLayout(c, text, s.model)
		if err != nil {
			return err
		}
		space.Layouts = append(space.Layouts, l)
	}
	switch f := view.Format(o.output.format.value); {
	case o.resume != "":
		return o.extend(ctx, c, &s, space)
	case f == view.JSONL, f == view.CSV, f == view.Benchstat:
		return o.stream(ctx, c, &s, space)
	case o.shard.n > 1:
		return usagef("--shard %s streams records: add --format jsonl", &o.shard)
	case space.Size() > maxRanked:
		return usagef("--chunks %s: %d layouts are too many to rank: want fewer chunks, or --best for the best of all", &o.chunks, space.Size())
	}
	return o.rank(ctx, c, &s, space)
}

// maxRanked layouts are priced in a minute or two.
const maxRanked = 100_000_000

// rank keeps the best of each context.
func (o *sweepOptions) rank(ctx context.Context, c *console.Console, s *subject, space *search.Space) error {
	progress := c.Progress()
	defer progress.Done()
	r := &view.Sweep{Made: made(c), Source: s.source(), Space: space, Chunks: o.chunks.String(), Named: !o.cuts, CopyBack: space.Workload.CopyBack}
	for _, length := range o.contexts.values {
		ranking, err := space.Rank(ctx, length, o.top, func(done int) {
			progress.Say("context %d: %d of %d layouts", length, done, space.Size())
		})
		if err != nil {
			return err
		}
		r.Rankings = append(r.Rankings, ranking)
	}
	progress.Done()
	r.Basis, r.Warnings = o.conditions(space, r.Rankings)
	warn(c, r.Warnings)
	return o.output.emit(c, r)
}

// conditions are what ranges rest on, and what is to be said of the layouts that come first: the rest of a table says nothing
// else.
func (o *sweepOptions) conditions(space *search.Space, rankings []search.Ranking) (basis string, warnings []string) {
	for _, r := range rankings {
		for _, one := range append(r.Best, r.Presets...)[:1] {
			plan, err := one.Layout.Plan(space.Model)
			if err != nil {
				panic("simulate: a ranked layout cannot be planned")
			}
			p := anesim.Predict(plan, space.Device, space.Workload)
			basis, warnings = p.Basis, union(warnings, p.Warnings)
		}
	}
	return basis, warnings
}
