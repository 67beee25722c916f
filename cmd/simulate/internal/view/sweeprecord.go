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
	Warnings      []string        `json:"warnings"`
	Rank          int             `json:"rank,omitempty"` // in ranked documents only
}

func newSweepRecord(s Source, l chunking.Layout, p *anesim.Prediction) sweepRecord {
	l.Context = 0
	by, share := boundBy(p)
	return sweepRecord{FormatVersion: FormatVersion, Model: s.Model, Device: s.Device, DeviceHash: s.DeviceHash,
		Layout: l.String(), Chunks: len(p.Chunks), Context: p.Context, CopyBack: p.CopyBack,
		TimeS: p.TimeS, TimeRange: p.TimeRange, TokPerSec: p.TokPerSec, Range: p.Range,
		BoundBy: by, BoundShare: share, Basis: p.Basis, Warnings: p.Warnings}
}

func (r *sweepRecord) check(verdict string, refused, warned []string) {
	r.Verdict, r.RefusedBy, r.WarnedBy = verdict, append([]string{}, refused...), append([]string{}, warned...)
}

// SweepWriter streams candidates in a machine format.
type SweepWriter struct {
	w      io.Writer
	format Format
	source Source
	json   *json.Encoder
	csv    *csv.Writer
	err    error
}

// NewSweepWriter starts a stream: JSONL, CSV or Benchstat.
func NewSweepWriter(w io.Writer, f Format, s Source) *SweepWriter {
	out := &SweepWriter{w: w, format: f, source: s, json: json.NewEncoder(w), csv: csv.NewWriter(w)}
	out.json.SetEscapeHTML(false)
	switch f {
	case CSV:
		out.err = out.csv.Write([]string{"model", "device", "layout", "preset", "chunks", "context", "copyback", "time_s", "time_lo90_s", "time_hi90_s",
			"tok_per_s", "tok_per_s_lo90", "tok_per_s_hi90", "bound_by", "bound_share", "verdict", "refused_by", "warned_by"})
	case Benchstat:
		benchmarkHead(w, s)
	}
	return out
}

// Write writes one candidate.
func (s *SweepWriter) Write(c search.Candidate, p anesim.Prediction) error {
	if s.err != nil {
		return s.err
	}
	if s.format == Benchstat {
		return benchmarkToken(s.w, c.Plan.Layout, p.Context, p.TimeS)
	}
	r := newSweepRecord(s.source, c.Plan.Layout, &p)
	r.Preset = c.Preset
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
