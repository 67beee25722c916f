package anesim

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/chunking"
	"anelab/gemma4"
	"anelab/internal/shareddata"
)

var updateTrace = flag.Bool("update-trace", false, "write testdata/trace.golden.json")

// fiveLayers is E2B with five layers, the last two of which share the KV of others: small enough for a golden file.
func fiveLayers(t testing.TB) *chunking.Model {
	path := filepath.Join(shareddata.ModuleRoot(t), "testdata", "configs", "e2b.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := gemma4.ParseConfig(path, data)
	require.NoError(t, err)
	cfg.NumHiddenLayers, cfg.NumKVSharedLayers = 5, 2
	cfg.LayerTypes = []string{"sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"}
	m, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	return m
}

// event mirrors the trace event format (Chrome, Perfetto): complete events have ts and dur in microseconds.
type event struct {
	Phase string         `json:"ph"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Name  string         `json:"name"`
	TS    *float64       `json:"ts"`
	Dur   *float64       `json:"dur"`
	Args  map[string]any `json:"args"`
}

// checkTrace reads a trace strictly and checks that the spans of every lane nest.
func checkTrace(t testing.TB, data []byte) []event {
	var file struct {
		Unit   string         `json:"displayTimeUnit"`
		Other  map[string]any `json:"otherData"`
		Events []event        `json:"traceEvents"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&file))
	require.Equal(t, "ms", file.Unit)
	lanes := map[int][]event{}
	for _, e := range file.Events {
		switch e.Phase {
		case "X":
			require.GreaterOrEqual(t, *e.Dur, 0.0, e.Name)
			lanes[e.TID] = append(lanes[e.TID], e)
		case "C":
			require.Contains(t, e.Args, "value")
		case "M":
			require.Nil(t, e.TS)
		default:
			t.Fatalf("phase %q", e.Phase)
		}
	}
	require.Len(t, lanes, int(NumTracks))
	for _, lane := range lanes {
		requireNested(t, lane)
	}
	return file.Events
}

// requireNested walks a lane in the order of starts with a stack of open spans: each either begins after the top has ended
// or ends within it. Nanoseconds, because that is what is printed.
func requireNested(t testing.TB, lane []event) {
	ns := func(us float64) int64 { return int64(us*1e3 + 0.5) }
	slices.SortStableFunc(lane, func(a, b event) int {
		if a, b := ns(*a.TS), ns(*b.TS); a != b {
			return int(a - b)
		}
		return int(ns(*b.Dur) - ns(*a.Dur))
	})
	var open []int64 // ends
	for _, e := range lane {
		start, end := ns(*e.TS), ns(*e.TS)+ns(*e.Dur)
		for len(open) > 0 && open[len(open)-1] <= start {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			require.LessOrEqual(t, end, open[len(open)-1], "%s sticks out of the span around it", e.Name)
		}
		open = append(open, end)
	}
}

func trace(t testing.TB, p *chunking.Plan, d Device, w Workload) []byte {
	var buf bytes.Buffer
	require.NoError(t, TimelineOf(p, d, w).WriteTrace(&buf, "test"))
	return buf.Bytes()
}

// oracle: the committed trace of a small model on round constants.
func TestTraceGolden(t *testing.T) {
	got := trace(t, planOf(t, fiveLayers(t), "L0-2 | L3-4+head context=64"), phone(), Workload{CopyBack: CopyBackSync})
	path := filepath.Join("testdata", "trace.golden.json")
	if *updateTrace {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go test ./anesim -run TraceGolden -update-trace writes it")
	checkTrace(t, got)
}

// invariant: traces of real plans nest, and their lanes add up to the prediction.
func TestTimelineIsThePrediction(t *testing.T) {
	m := e2b(t)
	for _, layout := range []string{"@4way", "@3way", "@2way context=8192", "@1way", "L0-34 | head"} {
		for _, copyBack := range []CopyBack{CopyBackSync, CopyBackAsync} {
			p, w := planOf(t, m, layout), Workload{CopyBack: copyBack}
			x, line := Predict(p, phone(), w), TimelineOf(p, phone(), w)
			require.InDelta(t, 1e9*x.TimeS, float64(line.Total), 2, layout)
			var weights, wantWeights float64
			var bytes int64
			for _, s := range line.Spans {
				if s.Track == TrackWeights {
					weights += float64(s.End - s.Start)
					bytes += s.Bytes
				}
			}
			for _, c := range x.Terms() {
				if c.Term == WeightStream.String() {
					wantWeights += 1e9 * c.TimeS
				}
			}
			require.Equal(t, p.Totals().WeightBytes, bytes, layout)
			require.InDelta(t, wantWeights, weights, 1000, layout) // half a nanosecond per op
			for i, c := range x.Chunks {
				for _, s := range line.Spans {
					if s.Track == TrackHost && s.Chunk == i && s.Name == "call "+c.Chunk {
						require.InDelta(t, 1e9*c.TimeS, float64(s.End-s.Start), 2, "%s %s", layout, c.Chunk)
					}
				}
			}
			checkTrace(t, trace(t, p, phone(), w))
		}
	}
}

// invariant: the nesting check fails on a span that sticks out.
func TestNestingCheckCanFail(t *testing.T) {
	outer, inner, span := 0.0, 5.0, 10.0
	lane := []event{{Name: "a", TS: &outer, Dur: &span}, {Name: "b", TS: &inner, Dur: &span}}
	probe := &recorder{TB: t}
	requireNested(probe, lane)
	require.True(t, probe.failed)
}

// recorder is a test that may fail without failing the one around it.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { r.failed = true }
func (r *recorder) Helper()               {}
