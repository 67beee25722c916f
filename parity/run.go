package parity

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"anelab/gemma4"
	"anelab/quant"
)

// Tolerances is one tolerance per point. The zero value asks for equality everywhere.
type Tolerances struct {
	Default Tolerance
	Points  map[gemma4.Point]Tolerance // where they differ from Default
}

// For is the tolerance of a point.
func (t Tolerances) For(p gemma4.Point) Tolerance {
	if own, ok := t.Points[p]; ok {
		return own
	}
	return t.Default
}

// Settings say how two runs are compared.
type Settings struct {
	Tolerances Tolerances
	Storage    quant.DType // as in Options
	KeepGoing  bool        // compare everything instead of stopping at the first tensor that parts
}

// Run compares two backends on a case; b is the reference. It merges their two streams of taps and holds one tap of each at a
// time. Taps that only one side yields are counted, not compared; where one side has only the last rows of a tensor, those are
// compared. The error is a backend's own; disagreement is in the report.
func Run(ctx context.Context, a, b Backend, c Case, s Settings) (Report, error) {
	m := merge{report: newReport(a, b, c), settings: s}
	m.got, m.want = newStream(a.Name(), a.Run(ctx, c)), newStream(b.Name(), b.Run(ctx, c))
	defer m.got.stop()
	defer m.want.stop()
	if err := m.run(); err != nil {
		return m.report, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return m.report, nil
}

// merge is one comparison under way.
type merge struct {
	report    Report
	settings  Settings
	got, want *stream
}

func (m *merge) run() error {
	if err := m.advance(true, true); err != nil {
		return err
	}
	for m.got.more || m.want.more {
		order := m.order()
		switch {
		case order < 0:
			m.report.OnlyGot[m.got.tap.Point]++
		case order > 0:
			m.report.OnlyWant[m.want.tap.Point]++
		default:
			m.compare(m.got.tap, m.want.tap)
			if m.report.First != nil && !m.settings.KeepGoing {
				return nil
			}
		}
		if err := m.advance(order <= 0, order >= 0); err != nil {
			return err
		}
	}
	return nil
}

// order says which stream is behind; a stream that has ended is never behind.
func (m *merge) order() int {
	switch {
	case !m.got.more:
		return 1
	case !m.want.more:
		return -1
	}
	return m.got.at.compare(m.want.at)
}

func (m *merge) advance(got, want bool) error {
	if got {
		if err := m.got.advance(); err != nil {
			return err
		}
	}
	if want {
		return m.want.advance()
	}
	return nil
}

// compare judges one pair of taps and files the result.
func (m *merge) compare(got, want Tap) {
	if axis := rowAxis(got.Point); axis == 0 {
		n := min(got.Shape[0], want.Shape[0])
		got, want = LastRows(got, n), LastRows(want, n)
	}
	d := CompareTaps(got, want, m.settings.Storage)
	m.report.add(want, d, m.settings.Tolerances.For(want.Point).Check(d))
}

// CompareTaps is [Compare] for taps: shapes and positions must be the same, and rows are those of the last axis.
func CompareTaps(got, want Tap, storage quant.DType) Difference {
	if !slices.Equal(got.Shape, want.Shape) || got.First != want.First {
		return Difference{Mismatch: fmt.Sprintf("shape %v from position %d, want %v from %d", got.Shape, got.First, want.Shape, want.First)}
	}
	return Compare(got.Data, want.Data, Options{Storage: storage, RowLen: want.Shape[len(want.Shape)-1]})
}

// stream is one backend's taps with the current one in hand.
type stream struct {
	name string
	next func() (Tap, error, bool)
	stop func()
	tap  Tap
	at   place
	more bool
}

func newStream(name string, taps iter.Seq2[Tap, error]) *stream {
	next, stop := iter.Pull2(taps)
	return &stream{name: name, next: next, stop: stop, more: true}
}

// advance takes the next tap and checks that it comes after the one before.
func (s *stream) advance() error {
	before, first := s.at, s.tap.Shape == nil
	var err error
	if s.tap, err, s.more = s.next(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if !s.more {
		return nil
	}
	if s.at, err = placeOf(s.tap); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if !first && s.at.compare(before) <= 0 {
		return fmt.Errorf("%s: %s is out of order", s.name, Label(s.tap))
	}
	return nil
}
