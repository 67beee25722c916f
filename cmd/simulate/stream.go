package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/results"
	"anelab/cmd/simulate/internal/search"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

// stream writes one record per candidate.
func (o *sweepOptions) stream(ctx context.Context, c *console.Console, s *subject, space *search.Space) error {
	terms, err := o.terms(c, s, space)
	if err != nil {
		return err
	}
	out, err := o.output.open(c)
	if err != nil {
		return err
	}
	records, err := view.NewSweepWriter(out, view.Format(o.output.format.value), terms)
	if err == nil {
		err = o.candidates(ctx, c, space, records.Write)
	}
	if err == nil {
		err = records.Flush()
	}
	if err != nil {
		out.Discard()
		return err
	}
	return out.Commit()
}

// terms are what all records have in common; what is to be said about a context is said once.
func (o *sweepOptions) terms(c *console.Console, s *subject, space *search.Space) (view.Terms, error) {
	var rankings []search.Ranking
	for _, length := range o.contexts.values {
		one := *space
		one.MinParts, one.MaxParts, one.Layouts = 0, 0, nil
		r, err := one.Rank(context.Background(), length, 1, nil)
		if err != nil {
			return view.Terms{}, err
		}
		rankings = append(rankings, r)
	}
	basis, warnings := o.conditions(space, rankings)
	warn(c, warnings)
	return view.Terms{Source: s.source(), CopyBack: space.Workload.CopyBack, Basis: basis}, nil
}

// candidates prices those of the shard, context by context, always in the same order.
func (o *sweepOptions) candidates(ctx context.Context, c *console.Console, space *search.Space, take func(search.Candidate, anesim.Quote) error) error {
	size := space.Size()
	from, to := o.shard.of(size * int64(len(o.contexts.values)))
	progress, n := c.Progress(), from
	defer progress.Done()
	quoter := anesim.NewQuoter(space.Device, space.Workload)
	for i, length := range o.contexts.values {
		first := size * int64(i)
		if n >= first+size {
			continue
		}
		for candidate, err := range space.Candidates(ctx, length, n-first) {
			switch {
			case err != nil:
				return err
			case n == to:
				return nil
			}
			n++
			progress.Say("%d of %d records", n-from, to-from)
			if err := take(candidate, quoter.Quote(candidate.Plan)); err != nil {
				return err
			}
		}
	}
	return nil
}

// shard is a flag such as 1/4: which part of a stream.
type shard struct{ i, n int }

var _ pflag.Value = (*shard)(nil)

func (s *shard) String() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.i, s.n)
}

// Set reads i/n.
func (s *shard) Set(text string) error {
	var one shard
	if n, err := fmt.Sscanf(text, "%d/%d", &one.i, &one.n); n != 2 || err != nil || one.String() != text || one.i < 1 || one.n < one.i || one.n > maxShards {
		return fmt.Errorf("want i/n with i from 1 to n, such as 1/4")
	}
	*s = one
	return nil
}

// Type is the placeholder in help.
func (s *shard) Type() string { return "i/n" }

// maxShards keeps products far from overflow.
const maxShards = 1 << 20

// of returns the bounds of the part, which is one stretch: parts behind each other are the whole.
func (s *shard) of(total int64) (from, to int64) {
	if s.n == 0 {
		return 0, total
	}
	part := func(i int) int64 { return total/int64(s.n)*int64(i) + total%int64(s.n)*int64(i)/int64(s.n) }
	return part(s.i - 1), part(s.i)
}

// extend goes on with the records of a file where an earlier run ended.
func (o *sweepOptions) extend(ctx context.Context, c *console.Console, s *subject, space *search.Space) error {
	if f := o.output.format.value; o.output.path != "" || f != string(view.Text) && f != string(view.JSONL) {
		return usagef("--resume writes jsonl to %s: leave out --output and --format", o.resume)
	}
	terms, err := o.terms(c, s, space)
	if err != nil {
		return err
	}
	if err := beginsWithRecord(o.resume); err != nil {
		return err
	}
	out, err := c.Extend(o.resume)
	if err != nil {
		return usagef("--resume %s: %w", o.resume, reason(err))
	}
	records, err := view.NewSweepWriter(out, view.JSONL, terms)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	e := &extension{path: o.resume, earlier: results.NewReader(o.resume, out.Earlier), terms: &terms, records: records}
	err = o.candidates(ctx, c, space, e.take)
	if err == nil {
		err = e.end()
	}
	if err == nil || ctx.Err() != nil {
		fmt.Fprintf(c.Err, "simulate: %s: %d records were there, %d added\n", o.resume, e.there, e.added)
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// recordStart is how every record begins.
const recordStart = `{"format_version":`

// beginsWithRecord refuses a file that is none of ours, before its last line is taken for a record that was cut off.
func beginsWithRecord(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usagef("--resume %s: %w", path, reason(err))
	}
	defer f.Close()
	head := make([]byte, len(recordStart))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return usagef("--resume %s: %w", path, reason(err))
	}
	if !strings.HasPrefix(recordStart, string(head[:n])) {
		return &format.Error{Path: path + ":1", Want: "a record of simulate sweep --format jsonl", Fix: "the file was left as it is"}
	}
	return nil
}

// extension holds candidates against the records that are there, and writes those that are not.
type extension struct {
	path         string
	earlier      *results.Reader // nil behind the last one
	terms        *view.Terms
	records      *view.SweepWriter
	there, added int
}

func (e *extension) take(c search.Candidate, q anesim.Quote) error {
	if e.earlier != nil {
		x, err := e.earlier.Next()
		switch {
		case err == nil:
			e.there++
			return e.same(&x, e.terms.Record(c, q))
		case !errors.Is(err, io.EOF):
			return err
		}
		e.earlier = nil
	}
	e.added++
	return e.records.Write(c, q)
}

// same refuses a file that another sweep has begun: its records would be neither complete nor comparable.
func (e *extension) same(x *results.Record, want results.Record) error {
	if x.Conditions() == want.Conditions() && x.Key() == want.Key() && x.TimeS == want.TimeS {
		return nil
	}
	return &format.Error{Path: fmt.Sprintf("%s:%d", e.path, e.earlier.Line()), Got: fmt.Sprintf("%s at context %d, %v s, of %s", x.Layout, x.Context, x.TimeS, x.Conditions()),
		Want: fmt.Sprintf("%s at context %d, %v s, of %s", want.Layout, want.Context, want.TimeS, want.Conditions()),
		Fix:  "repeat the flags of the sweep that began the file, or name another file"}
}

// end refuses records behind the last candidate.
func (e *extension) end() error {
	if e.earlier == nil {
		return nil
	}
	x, err := e.earlier.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = &format.Error{Path: fmt.Sprintf("%s:%d", e.path, e.earlier.Line()), Got: fmt.Sprintf("%s at context %d", x.Layout, x.Context), Want: "no more records",
			Fix: "repeat the flags of the sweep that began the file, or name another file"}
	}
	return err
}
