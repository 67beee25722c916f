package view

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/results"
	"anelab/cmd/simulate/internal/search"
)

// newSweepRecord takes the figures from a quote; conditions are the space's.
func newSweepRecord(s Source, l chunking.Layout, q anesim.Quote) results.Record {
	context := l.Context
	l.Context = 0
	return results.Record{FormatVersion: FormatVersion, Model: s.Model, Device: s.Device, DeviceHash: s.DeviceHash,
		Layout: l.String(), Chunks: len(l.Cuts), Context: context,
		TimeS: q.Seconds, TimeRange: q.TimeRange, TokPerSec: 1 / q.Seconds, Range: anesim.Range{Lo: 1 / q.TimeRange.Hi, Hi: 1 / q.TimeRange.Lo},
		BoundBy: q.BoundBy, BoundShare: q.BoundShare}
}

func check(r *results.Record, verdict string, refused, warned []string) {
	r.Verdict, r.RefusedBy, r.WarnedBy = verdict, append([]string{}, refused...), append([]string{}, warned...)
}

// Terms of a stream: what all its records have in common.
type Terms struct {
	Source   Source
	CopyBack anesim.CopyBack
	Basis    string
}

// SweepWriter streams candidates in a machine format.
type SweepWriter struct {
	w      io.Writer
	format Format
	terms  Terms
	json   *json.Encoder
	csv    *csv.Writer
}

// NewSweepWriter starts a stream: JSONL, CSV or Benchstat.
func NewSweepWriter(w io.Writer, f Format, terms Terms) (*SweepWriter, error) {
	out := &SweepWriter{w: w, format: f, terms: terms, json: json.NewEncoder(w), csv: csv.NewWriter(w)}
	out.json.SetEscapeHTML(false)
	switch f {
	case CSV:
		return out, out.csv.Write([]string{"model", "device", "layout", "preset", "chunks", "context", "copyback", "time_s", "time_lo90_s", "time_hi90_s",
			"tok_per_s", "tok_per_s_lo90", "tok_per_s_hi90", "bound_by", "bound_share", "verdict", "refused_by", "warned_by"})
	case Benchstat:
		benchmarkHead(w, terms.Source)
	}
	return out, nil
}

// Record of a candidate under the terms of the stream.
func (t *Terms) Record(c search.Candidate, q anesim.Quote) results.Record {
	r := newSweepRecord(t.Source, c.Plan.Layout, q)
	r.Preset, r.CopyBack, r.Basis = c.Preset, t.CopyBack, t.Basis
	check(&r, c.Verdict(), c.Refused, c.Doubted)
	return r
}

// Write writes one candidate.
func (s *SweepWriter) Write(c search.Candidate, q anesim.Quote) error {
	if s.format == Benchstat {
		return benchmarkToken(s.w, c.Plan.Layout, c.Plan.Context, q.Seconds)
	}
	r := s.terms.Record(c, q)
	if s.format == CSV {
		return s.csv.Write([]string{r.Model, r.Device, r.Layout, r.Preset, fmt.Sprint(r.Chunks), fmt.Sprint(r.Context), string(r.CopyBack),
			exact(r.TimeS), exact(r.TimeRange.Lo), exact(r.TimeRange.Hi), exact(r.TokPerSec), exact(r.Range.Lo), exact(r.Range.Hi),
			r.BoundBy, exact(r.BoundShare), r.Verdict, strings.Join(r.RefusedBy, " "), strings.Join(r.WarnedBy, " ")})
	}
	return s.json.Encode(&r)
}

// Flush ends the stream.
func (s *SweepWriter) Flush() error {
	s.csv.Flush()
	return s.csv.Error()
}
