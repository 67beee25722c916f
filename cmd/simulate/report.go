package main

import (
	"context"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/search"
)

type reportOptions struct {
	subject  subjectFlags
	contexts sizes
	chunks   span
	copyBack choice
	path     string
}

func newReportCmd(c *console.Console) *cobra.Command {
	o := &reportOptions{chunks: span{1, 5}, contexts: sizes{values: []int{512, 2048, 8192}}}
	cmd := &cobra.Command{
		Use:   "report [RESULTS…]",
		Short: "A sweep as one HTML page: verdict, charts, tables, what-if",
		Long: `Write a page that shows a sweep to someone who has only a browser: the verdict,
the best layouts, where the time of a token goes, rate against memory, what-if
sliders, and how good predictions are. The file needs no network.

RESULTS are records of simulate sweep --format jsonl; without them every way to
cut the model is priced.`,
		Example: `  simulate report -o report.html
  simulate report --device mac --context 2048 -o report.html
  simulate report 1.jsonl 2.jsonl -o report.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return runReport(cmd.Context(), c, o, args) },
	}
	o.subject.add(cmd)
	cmd.Flags().Var(&o.chunks, "chunks", "numbers of chunks, without RESULTS")
	cmd.Flags().Var(&o.contexts, "context", "context lengths, without RESULTS")
	o.copyBack = choice{string(anesim.CopyBackAsync), copyBacks, "WHEN"}
	addChoice(cmd, "copyback", "when the host copies the caches", &o.copyBack)
	cmd.Flags().StringVarP(&o.path, "output", "o", "", "write the page to `FILE`, complete or not at all")
	return cmd
}

func runReport(ctx context.Context, c *console.Console, o *reportOptions, files []string) error {
	if o.path == "" && c.OutTerminal {
		return usagef("a page is not for a terminal: add --output report.html")
	}
	records, err := o.records(files)
	if err != nil {
		return err
	}
	s, err := o.subject.resolve(c)
	if err != nil {
		return err
	}
	r := &reporter{subject: &s, workload: anesim.Workload{CopyBack: anesim.CopyBack(o.copyBack.value)}}
	if len(files) > 0 {
		r.rankings, err = records.rankings(&s)
	} else {
		r.rankings, err = o.sweep(ctx, c, &s)
	}
	if err != nil {
		return err
	}
	page, err := r.page(c)
	if err != nil {
		return err
	}
	warn(c, page.Warnings)
	out, err := (&outputFlags{path: o.path}).open(c)
	if err != nil {
		return err
	}
	if err := page.Write(out); err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}

// bestShown is how many layouts a ranking of the page has.
const bestShown = 10

func (o *reportOptions) sweep(ctx context.Context, c *console.Console, s *subject) ([]search.Ranking, error) {
	space := &search.Space{Model: s.model, Device: s.device, Workload: anesim.Workload{CopyBack: anesim.CopyBack(o.copyBack.value)},
		MinParts: o.chunks.lo, MaxParts: min(o.chunks.hi, len(s.model.Layers))}
	progress := c.Progress()
	defer progress.Done()
	var all []search.Ranking
	for _, length := range o.contexts.values {
		r, err := space.Rank(ctx, length, bestShown, func(done int) { progress.Say("context %d: %d of %d layouts", length, done, space.Size()) })
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
