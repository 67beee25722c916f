package parity

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/gemma4"
)

// recording is a backend that plays taps back.
type recording struct {
	name  string
	taps  []Tap
	err   error // after the taps
	asked *int  // taps handed out, when set
}

func (r recording) Name() string { return r.name }

func (r recording) Run(context.Context, Case) iter.Seq2[Tap, error] {
	return func(yield func(Tap, error) bool) {
		for _, t := range r.taps {
			if r.asked != nil {
				*r.asked++
			}
			if !yield(t, nil) {
				return
			}
		}
		if r.err != nil {
			yield(Tap{}, r.err)
		}
	}
}

// located is a recording that knows its parts.
type located struct{ recording }

func (located) Where(layer int) string {
	return map[int]string{-1: "host", 0: "chunk 1", 1: "chunk 2"}[layer]
}

func tap(point gemma4.Point, layer, first int, values ...float32) Tap {
	return Tap{Point: point, Layer: layer, First: first, Shape: []int{len(values) / 2, 2}, Data: values}
}

// twoCalls is a pass over two tokens and one over the next.
func twoCalls() []Tap {
	return []Tap{
		tap(gemma4.PointEmbeds, -1, 0, 1, 2, 3, 4),
		tap(gemma4.PointQ, 0, 0, 5, 6, 7, 8),
		tap(gemma4.PointHidden, 0, 0, 1, 1, 2, 2),
		tap(gemma4.PointHidden, 1, 0, 3, 3, 4, 4),
		tap(gemma4.PointLogits, -1, 0, 9, 8, 7, 9),
		tap(gemma4.PointEmbeds, -1, 2, 5, 5),
		tap(gemma4.PointHidden, 0, 2, 6, 6),
		tap(gemma4.PointHidden, 1, 2, 7, 7),
		tap(gemma4.PointLogits, -1, 2, 1, 2),
	}
}

func changed(at int, value float32) []Tap {
	taps := twoCalls()
	taps[at].Data[1] = value
	return taps
}

func without(taps []Tap, drop ...int) []Tap {
	var kept []Tap
	for i, t := range taps {
		if len(drop) == 0 || i != drop[0] {
			kept = append(kept, t)
			continue
		}
		drop = drop[1:]
	}
	return kept
}

func mustRun(t *testing.T, a, b Backend, s Settings) Report {
	t.Helper()
	r, err := Run(t.Context(), a, b, Case{Name: "two calls"}, s)
	require.NoError(t, err)
	return r
}

func TestRunAgrees(t *testing.T) { // hand
	r := mustRun(t, recording{name: "a", taps: twoCalls()}, recording{name: "b", taps: twoCalls()}, Settings{})
	require.NoError(t, r.Err())
	require.Equal(t, 9, r.Compared)
	require.Equal(t, []gemma4.Point{gemma4.PointEmbeds, gemma4.PointQ, gemma4.PointHidden, gemma4.PointLogits},
		[]gemma4.Point{r.Points[0].Point, r.Points[1].Point, r.Points[2].Point, r.Points[3].Point})
	require.Equal(t, 4, r.Points[2].Taps)
	require.Equal(t, 12, r.Points[2].Equal)
}

func TestRunNamesTheFirstTensorThatParts(t *testing.T) { // hand
	asked := 0
	got := located{recording{name: "chunks", taps: changed(3, 3.5), asked: &asked}}
	got.taps[7].Data[0] = 8 // a later difference
	r := mustRun(t, got, recording{name: "whole", taps: twoCalls()}, Settings{})
	require.Equal(t, "hidden.1 [0,2)", r.First.Label)
	require.Equal(t, "chunk 2", r.First.Where)
	require.Equal(t, 1, r.Partings)
	require.Equal(t, 4, r.Compared, "it stops there")
	require.Equal(t, 4, asked, "and asks for no more")
	require.ErrorContains(t, r.Err(), "case two calls: chunks parts from whole at hidden.1 [0,2) in chunk 2: 1 of 4 elements differ, first [0 1]: got 3.5, want 3")
	require.Contains(t, r.First.Detail, "> [0 1]")

	asked = 0
	r = mustRun(t, got, recording{name: "whole", taps: twoCalls()}, Settings{KeepGoing: true})
	require.Equal(t, "hidden.1 [0,2)", r.First.Label)
	require.Equal(t, 2, r.Partings)
	require.Equal(t, 9, r.Compared)
	require.Equal(t, "hidden.1 [2,3)", r.Points[2].Label, "relative to the peak, 1 of 7 is more than 0.5 of 4")
}

func TestRunPairsWhatBothHave(t *testing.T) { // hand
	got := recording{name: "a", taps: without(twoCalls(), 1, 6)}
	want := recording{name: "b", taps: without(twoCalls(), 0, 8)}
	r := mustRun(t, got, want, Settings{})
	require.NoError(t, r.Err())
	require.Equal(t, 5, r.Compared)
	require.Equal(t, map[gemma4.Point]int{gemma4.PointEmbeds: 1, gemma4.PointLogits: 1}, r.OnlyGot)
	require.Equal(t, map[gemma4.Point]int{gemma4.PointQ: 1, gemma4.PointHidden: 1}, r.OnlyWant)
	require.Contains(t, r.String(), "only in a: embeds ×1, logits ×1\nonly in b: q ×1, hidden ×1")

	r = mustRun(t, recording{name: "a", taps: twoCalls()[:1]}, recording{name: "b", taps: twoCalls()[1:2]}, Settings{})
	require.ErrorContains(t, r.Err(), "no tensor in common")
	r = mustRun(t, recording{name: "a"}, recording{name: "b"}, Settings{})
	require.ErrorContains(t, r.Err(), "no tensor in common")
}

func TestRunComparesTheLastRowsBothHave(t *testing.T) { // hand: logits of the last prompt token only
	last := tap(gemma4.PointLogits, -1, 1, 7, 9)
	r := mustRun(t, recording{name: "a", taps: twoCalls()[:5]}, recording{name: "b", taps: []Tap{last}}, Settings{})
	require.NoError(t, r.Err())
	require.Equal(t, 1, r.Compared)
	last.Data[0] = 6
	r = mustRun(t, recording{name: "a", taps: twoCalls()[:5]}, recording{name: "b", taps: []Tap{last}}, Settings{})
	require.Equal(t, "logits [1,2)", r.First.Label)
}

func TestPAR03ShapesMustPair(t *testing.T) { // hand
	row := Tap{Point: gemma4.PointEmbeds, Layer: -1, Shape: []int{1, 3}, Data: []float32{1, 2, 3}}
	for name, other := range map[string]Tap{
		"flat":         {Shape: []int{1}, Data: row.Data[:1]},
		"another axis": {Shape: []int{1, 3, 1}, Data: row.Data},
		"narrower":     {Shape: []int{1, 2}, Data: row.Data[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			other.Point, other.Layer = row.Point, row.Layer
			r := mustRun(t, recording{name: "a", taps: []Tap{other}}, recording{name: "b", taps: []Tap{row}}, Settings{Tolerances: Tolerances{Default: Tolerance{Abs: 1e9}}})
			require.ErrorContains(t, r.Err(), "want [1 3] from 0")
		})
	}
	probs := Tap{Point: gemma4.PointProbs, Layer: 0, Shape: []int{2, 1, 3}, Data: make([]float32, 6)}
	wider := probs
	wider.Shape, wider.Data = []int{2, 1, 4}, make([]float32, 8)
	r := mustRun(t, recording{name: "a", taps: []Tap{wider}}, recording{name: "b", taps: []Tap{probs}}, Settings{})
	require.ErrorContains(t, r.Err(), "shape [2 1 4]")
}

func TestRunRefusesDisorderAndUnknownPoints(t *testing.T) { // hand
	good := recording{name: "b", taps: twoCalls()}
	boom := errors.New("out of memory")
	for name, c := range map[string]struct {
		taps []Tap
		err  error
		want string
	}{
		"out of order":    {taps: []Tap{twoCalls()[3], twoCalls()[2]}, want: "a: hidden.0 [0,2) is out of order"},
		"twice":           {taps: []Tap{twoCalls()[0], twoCalls()[0]}, want: "a: embeds [0,2) is out of order"},
		"earlier call":    {taps: []Tap{twoCalls()[5], twoCalls()[0]}, want: "out of order"},
		"unknown point":   {taps: []Tap{tap("hiden", 0, 0, 1, 2)}, want: `a: unknown point "hiden"`},
		"layer missing":   {taps: []Tap{tap(gemma4.PointHidden, -1, 0, 1, 2)}, want: "hidden in layer -1"},
		"layer of embeds": {taps: []Tap{tap(gemma4.PointEmbeds, 2, 0, 1, 2)}, want: "embeds in layer 2"},
		"no shape":        {taps: []Tap{{Point: gemma4.PointEmbeds, Layer: -1}}, want: "embeds has shape []"},
		"its own error":   {taps: twoCalls()[:2], err: boom, want: "case two calls: a: out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(t.Context(), recording{name: "a", taps: c.taps, err: c.err}, good, Case{Name: "two calls"}, Settings{})
			require.ErrorContains(t, err, c.want)
			if c.err != nil {
				require.ErrorIs(t, err, boom)
			}
		})
	}
}

func TestTolerancesByPoint(t *testing.T) { // hand
	s := Settings{Tolerances: Tolerances{Points: map[gemma4.Point]Tolerance{gemma4.PointHidden: {Abs: 0.6}}}}
	require.NoError(t, reportErr(mustRun(t, recording{name: "a", taps: changed(3, 3.5)}, recording{name: "b", taps: twoCalls()}, s)))
	require.Error(t, reportErr(mustRun(t, recording{name: "a", taps: changed(0, 2.5)}, recording{name: "b", taps: twoCalls()}, s)))
}

func reportErr(r Report) error { return r.Err() }

func TestCalls(t *testing.T) { // hand
	for _, c := range []struct {
		batch int
		want  [][2]int
	}{
		{0, [][2]int{{0, 7}, {7, 8}, {8, 9}}},
		{3, [][2]int{{0, 3}, {3, 6}, {6, 7}, {7, 8}, {8, 9}}},
		{7, [][2]int{{0, 7}, {7, 8}, {8, 9}}},
	} {
		cs := Case{Prompt: []int{10, 11, 12, 13, 14, 15, 16}, Batch: c.batch, Follow: []int{17, 18}}
		var calls [][2]int
		var tokens []int
		for lo, hi := range cs.Calls() {
			calls = append(calls, [2]int{lo, hi})
			tokens = append(tokens, cs.Tokens(lo, hi)...)
		}
		require.Equal(t, c.want, calls)
		require.Equal(t, []int{10, 11, 12, 13, 14, 15, 16, 17, 18}, tokens)
		require.Equal(t, 9, cs.Context())
	}
}

func TestTracedStopsItsRun(t *testing.T) { // hand
	var seen error
	for range Traced(t.Context(), func(ctx context.Context, trace gemma4.Tracer) error {
		for range 5 {
			trace(tap(gemma4.PointEmbeds, -1, 0, 1, 2))
			if seen = context.Cause(ctx); seen != nil {
				return ctx.Err()
			}
		}
		return nil
	}) {
		break
	}
	require.ErrorIs(t, seen, errStopped)
}

func TestPointsAreThoseOfTheModel(t *testing.T) { // invariant: a tap of every point has its place
	for i, p := range Points {
		layer := -1
		if i > 5 && i < 14 {
			layer = 3
		}
		_, err := placeOf(Tap{Point: p, Layer: layer, Shape: []int{2, 3, 5}})
		require.NoError(t, err, p)
	}
}
