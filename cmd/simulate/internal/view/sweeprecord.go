package view

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/search"
)

// sweepRecord is one candidate, complete in itself.
type sweepRecord struct {
	FormatVersion string          `json:"format_version"`
	Model         string          `json:"model"`
	Device        string          `json:"device"`
	DeviceHash    string          `json:"device_sha256"`
	Layout        string          `json:"layout"`
	Preset        string          `json:"preset"` // "" for a layout without a name
	Chunks        int             `json:"chunks"`
	Context       int             `json:"context"`
	CopyBack      anesim.CopyBack `json:"copyback"`
	TimeS         float64         `json:"time_s"`
	TimeRange     anesim.Range    `json:"time_range90_s"`
	TokPerSec     float64         `json:"tok_per_s"`
	Range         anesim.Range    `json:"tok_per_s_range90"`
	BoundBy       string          `json:"bound_by"`
	BoundShare    float64         `json:"bound_share"`
	Basis         string          `json:"basis"`
	Verdict       string          `json:"verdict"`    // of simulate check: yes, warning or no
	RefusedBy     []string        `json:"refused_by"` // its rules
	WarnedBy      []string        `json:"warned_by"`
	Rank          int             `json:"rank,omitempty"` // in ranked documents only
}

// newSweepRecord takes the figures from a quote; conditions are the space's.
func newSweepRecord(s Source, l chunking.Layout, q anesim.Quote) sweepRecord {
	context := l.Context
	l.Context = 0
	return sweepRecord{FormatVersion: FormatVersion, Model: s.Model, Device: s.Device, DeviceHash: s.DeviceHash,
		Layout: l.String(), Chunks: len(l.Cuts), Context: context,
		TimeS: q.Seconds, TimeRange: q.TimeRange, TokPerSec: 1 / q.Seconds, Range: anesim.Range{Lo: 1 / q.TimeRange.Hi, Hi: 1 / q.TimeRange.Lo},
		BoundBy: q.BoundBy, BoundShare: q.BoundShare}
}

func (r *sweepRecord) check(verdict string, refused, warned []string) {
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

// Write writes one candidate.
func (s *SweepWriter) Write(c search.Candidate, q anesim.Quote) error {
	l := c.Plan.Layout
	if s.format == Benchstat {
		return benchmarkToken(s.w, l, c.Plan.Context, q.Seconds)
	}
	r := newSweepRecord(s.terms.Source, l, q)
	r.Preset, r.CopyBack, r.Basis = c.Preset, s.terms.CopyBack, s.terms.Basis
	r.check(c.Verdict(), c.Refused, c.Doubted)
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
