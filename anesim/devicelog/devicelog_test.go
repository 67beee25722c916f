package devicelog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/internal/format"
)

// phone is what a pasted log leaves out.
var phone = Context{Experiment: "paste", Date: "2026-04-24", Device: "iPhone 17 Pro", Model: "gemma-4-e2b", Context: 2048, WeightBits: 4, GroupSize: 32, CopyBack: anesim.CopyBackSync}

const (
	cold  = "[Profile] emb=1.9ms mask=0.7ms | c1=22.4 c2=30.7 c3=25.2 c4=37.3 (sum=115.6ms) | predict=116.1ms total=118.0ms (8.5 tok/s)\n"
	later = "[Profile] emb=0.9ms mask=0.6ms | c1=12.4 c2=20.7 c3=15.2 c4=17.3 (sum=65.6ms) | predict=66.1ms total=67.0ms (14.9 tok/s)\n"
	older = "[Profile] emb=0.2ms mask=0.0ms | c1=5.4 c2=6.6 c3=7.4 c4=10.4 (sum=29.8ms) | total=30.0ms (33.3 tok/s)\n"
	short = "[Profile] c1=6.3 c2=7.7 c3=7.6 c4=10.3 (sum=31.9ms)\n"
)

func find(t testing.TB, s Session, component string) anesim.Measurement {
	for _, m := range s.Measurements {
		if m.Component == component {
			return m
		}
	}
	t.Fatalf("no %s among %d rows", component, len(s.Measurements))
	return anesim.Measurement{}
}

// hand: the last cumulative line is the one to fit, the first is cold; other text before the bracket and unknown lines pass.
func TestProfileLog(t *testing.T) {
	log := "2026-04-13 09:12:03.441 App[812:9981] hello\n" +
		"\U0001F680 [Load] 4-chunk decode (chunk1..4)\n" +
		"2026-04-13 09:12:09.001 App[812:9981] " + cold +
		"something else entirely\n\n" +
		"⏱ " + later +
		"[LayerSkip] 0/60 match (0.0%) — skip=1 real=2\n" +
		"[ANE/CPU] ANE_wait=68.7ms copyBack=1.9ms cpu_active=3.0ms (4% CPU)\n"
	s, err := Read("paste.log", []byte(log), phone)
	require.NoError(t, err)
	require.Equal(t, FormatLog, s.Format)
	require.Equal(t, 7, s.Lines)
	require.Equal(t, 3, s.Skipped)
	c2 := find(t, s, "2")
	require.InDelta(t, 20.7e-3, c2.Seconds, 1e-12)
	require.Equal(t, "warm", c2.ColdWarm)
	require.Equal(t, 6, c2.Line)
	require.Equal(t, []int{8, 15}, []int{c2.Lo, c2.Hi})
	require.Equal(t, "0-7|8-14|15-24|25-34+head", c2.Layout)
	require.True(t, find(t, s, "4").HasHead)
	require.True(t, find(t, s, "1").HasPLE)
	step := find(t, s, "step")
	require.InDelta(t, 67.0e-3, step.Seconds, 1e-12)
	require.Equal(t, 14.9, step.TokPerSec)
	require.InDelta(t, 1.9e-3, find(t, s, "copyback").Seconds, 1e-12)
	require.InDelta(t, 0.9e-3, find(t, s, "emb").Seconds, 1e-12)
	require.Empty(t, s.Doubts)
	copyBack, said := c2.CopyBack()
	require.True(t, said)
	require.Equal(t, anesim.CopyBackSync, copyBack)
}

// hand: other forms of the line, and which layout they time.
func TestProfileForms(t *testing.T) {
	for _, c := range []struct {
		name, log, layout string
		chunks            int
		first             float64 // ms
	}{
		{"older", older + older, "0-7|8-14|15-24|25-34+head", 4, 5.4},
		{"shortened", short + short, "0-7|8-14|15-24|25-34+head", 4, 6.3},
		{"two chunks", "[Load] Decode layout: two-chunk\n" + strings.Repeat("[Profile-2chunk] emb=0.4ms mask=0.3ms | m1=13.1 m2=17.8 (sum=30.9ms) | predict=31.2ms (31.7 tok/s)\n", 2), "0-14|15-34+head", 2, 13.1},
		{"one chunk", strings.Repeat("[Profile-1chunk] emb=0.4ms mask=0.3ms | full=30.1 (sum=30.1ms) | predict=31.2ms\n", 2), "0-34+head", 1, 30.1},
		{"three chunks, Topology II", "[Load] Topology II — 3-chunk default (chunk1, chunk2_3way, chunk3_3way)\n" + strings.Repeat("[Profile] emb=0.4ms mask=0.3ms | c1=5.6 c2=12.2 c3=10.9 c4=0.0 (sum=28.7ms) | total=29.2ms (34.2 tok/s)\n", 2), "0-7|8-24|25-34+head", 3, 5.6},
		{"three chunks, Topology I", "[Load] Topology I — 3-chunk (chunk1_topoI ...)\n" + strings.Repeat("[Profile] c1=12.6 c2=0.0 c3=8.1 c4=10.4 (sum=31.1ms)\n", 2), "0-14|15-24|25-34+head", 3, 12.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Read("paste.log", []byte(c.log), phone)
			require.NoError(t, err)
			m := find(t, s, "1")
			require.Equal(t, c.layout, m.Layout)
			require.InDelta(t, c.first/1e3, m.Seconds, 1e-12)
			require.Equal(t, "warm", m.ColdWarm)
			n := 0
			for _, m := range s.Measurements {
				if m.Component >= "1" && m.Component <= "4" {
					n++
				}
			}
			require.Equal(t, c.chunks, n)
		})
	}
}

// hand: several [Load] lines are several runs.
func TestRunsAreKeptApart(t *testing.T) {
	log := "[Load] 4-chunk decode\n" + short + short + "[Load] Decode layout: two-chunk\n" +
		strings.Repeat("[Profile-2chunk] m1=13.1 m2=17.8 (sum=30.9ms)\n", 2)
	s, err := Read("paste.log", []byte(log), phone)
	require.NoError(t, err)
	names := map[string]int{}
	for _, m := range s.Measurements {
		names[m.Experiment]++
	}
	require.Equal(t, map[string]int{"paste#1": 4, "paste#2": 2}, names)
}

// hand: what is wrong, by line.
func TestLogSaysWhere(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"two layouts in one run", short + "[Profile-2chunk] m1=13.1 m2=17.8 (sum=30.9ms)\n", "paste.log:2: Profile: timers m1 m2 after c1 c2 c3 c4, want one layout between two [Load] lines"},
		{"a jump of the means", older + older + later, "paste.log:3: Profile: means +120 % from the line before"},
		{"seconds as milliseconds", "[Profile] c1=0.0063 c2=0.0077 c3=0.0076 c4=0.0103\n", "if these are seconds, write 6.3"},
		{"nothing timed", "[Load] 4-chunk decode\n", "no profile of a run"},
		{"unknown", "dear diary\n", "text of no known kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("paste.log", []byte(c.log), phone)
			var e *format.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// hand: what may be read, and should be looked at.
func TestLogDoubts(t *testing.T) {
	for _, c := range []struct{ log, want string }{
		{short, "line 1: the only profile line of its run: the mean includes the cold first steps"},
		{strings.Repeat("[Profile] c1=6.3 c2=7.7 c3=7.6 c4=10.3 (sum=34.9ms)\n", 2), "chunks add up to 31.9 ms, the line says 34.9"},
		{strings.Repeat("[Profile] c1=6.3 c2=7.7 c3=7.6 c4=10.3 (sum=31.9ms) | total=32.0ms (25.0 tok/s)\n", 2), "32.0 ms and 25.0 tok/s are 20 % apart"},
		{strings.Repeat("[Profile] c1=5.6 c2=12.2 c3=10.9 c4=0.0\n", 2), "three chunks without a [Load] line: taken as 0-7|8-24|25-34+head"},
		{"[ComputePlan] chunk2: 100/1247 ops NOT on Neural Engine\n" + short + short, "100 of 1247 ops are off the Neural Engine, more than 5 %"},
	} {
		s, err := Read("paste.log", []byte(c.log), phone)
		require.NoError(t, err)
		require.Contains(t, strings.Join(s.Doubts, "\n"), c.want)
	}
	s, err := Read("paste.log", []byte(short), phone)
	require.NoError(t, err)
	require.Equal(t, "cold", find(t, s, "1").ColdWarm, "a cold mean is not fitted")
}

func TestComputePlan(t *testing.T) { // hand
	log := "[ComputePlan] chunk4: 8/1683 ops NOT on Neural Engine\n[ComputePlan] chunk1: all 1247 ops on Neural Engine\n" +
		"[ComputePlan] ── summary: 8 non-ANE op(s) out of 2930 total across all chunks\n" + short + short
	s, err := Read("paste.log", []byte(log), phone)
	require.NoError(t, err)
	require.Equal(t, []Audit{{1, "chunk4", 8, 1683, false}, {2, "chunk1", 0, 1247, false}, {3, "", 8, 2930, false}}, s.Audits)
}

func TestPrefillLog(t *testing.T) { // hand
	s, err := Read("paste.log", []byte("[Prefill] prep=~4.1ms c1=~70.2ms c2=~75.0ms c3=~95.1ms c4=~90.3ms total=~335.0ms (~48 tokens, ~143 tok/s)\n"), phone)
	require.NoError(t, err)
	total := find(t, s, "prefill-total")
	require.Equal(t, 48, total.RealTokens)
	require.Equal(t, "none", total.KVMode)
	require.InDelta(t, 335.0e-3, total.Seconds, 1e-12)
	require.InDelta(t, 95.1e-3, find(t, s, "3").Seconds, 1e-12)
}

// report is a device report whose warm medians are 5.6, 12.2 and 10.9 ms.
func report() DeviceReport {
	calls := func(ms float64) []float64 {
		all := []float64{9 * ms, 2 * ms, 1.5 * ms, 1.2 * ms}
		for i := range 11 {
			all = append(all, ms+0.01*float64(i-5))
		}
		return all
	}
	return DeviceReport{FormatVersion: ReportVersion, Experiment: "mine", Date: "2026-11-02", Device: "iPhone 17 Pro", Model: "gemma-4-e2b", Context: 2048,
		WeightBits: 4, GroupSize: 32, CopyBack: "async", Layout: "0-7|8-24|25-34+head", StepMs: calls(29.4), Thermal: "nominal",
		Chunks: []ReportChunk{{1, calls(5.6)}, {2, calls(12.2)}, {3, calls(10.9)}}}
}

func marshal(t testing.TB, r any) []byte {
	data, err := json.Marshal(r)
	require.NoError(t, err)
	return data
}

func TestDeviceReport(t *testing.T) { // hand
	s, err := Read("r.json", marshal(t, report()), Context{})
	require.NoError(t, err)
	require.Equal(t, FormatReport, s.Format)
	require.Len(t, s.Measurements, 4)
	c2 := find(t, s, "2")
	require.InDelta(t, 12.2e-3, c2.Seconds, 1e-9)
	require.Equal(t, "A", c2.Quality)
	require.Equal(t, []int{8, 25}, []int{c2.Lo, c2.Hi})

	hot := report()
	hot.Thermal, hot.Audit = "serious", &ReportAudit{Off: 200, Ops: 1000}
	s, err = Read("r.json", marshal(t, hot), Context{})
	require.NoError(t, err)
	require.Equal(t, "X", find(t, s, "1").Quality)
	require.Len(t, s.Doubts, 2)

	for want, change := range map[string]func(*DeviceReport){
		"want more than 4":              func(r *DeviceReport) { r.Chunks[1].Ms = r.Chunks[1].Ms[:4] },
		"if these are seconds":          func(r *DeviceReport) { r.Chunks[0].Ms = []float64{1, 1, 1, 1, 0.0056, 0.0056} },
		`copyback: "never"`:             func(r *DeviceReport) { r.CopyBack = "never" },
		"index 4, want 1 to 3":          func(r *DeviceReport) { r.Chunks[0].Index = 4 },
		"device: nothing":               func(r *DeviceReport) { r.Device = "" },
		`want "anelab-device-report/1"`: func(r *DeviceReport) { r.FormatVersion = "anelab-device-report/9" },
		"chunks: no times":              func(r *DeviceReport) { r.Chunks, r.StepMs = nil, nil },
		"milliseconds above zero":       func(r *DeviceReport) { r.StepMs[3] = -1 },
	} {
		r := report()
		change(&r)
		_, err := Read("r.json", marshal(t, r), Context{})
		require.ErrorContains(t, err, want)
	}
	_, err = Read("r.json", []byte(`{"format_version": "anelab-device-report/1", "devise": "x"}`), Context{})
	require.ErrorContains(t, err, "devise")
}

// hand: packages that are no chunks are calls; what failed on the device is a doubt each.
func TestDeviceReportOfSinglePackages(t *testing.T) {
	no := false
	r := report()
	r.Layout, r.Model, r.Chunks, r.StepMs, r.Units = "", "", nil, nil, "cpu+ane"
	r.Models = []ReportModel{
		{Path: "a.mlpackage", WeightBytes: 1234, Ms: []float64{9, 9, 9, 9, 0.03125, 0.02, 0.04}, Cases: []ReportCase{{Name: "n2", Within: &no}, {Name: "n4", Error: "it fell over"}}},
		{Path: "b.mlpackage", Error: "does not load"},
	}
	s, err := Read("r.json", marshal(t, r), Context{})
	require.NoError(t, err)
	require.Equal(t, []Call{{"a.mlpackage", "iPhone 17 Pro", "cpu+ane", 1234, 0.03125 / 1e3}}, s.Calls)
	require.Empty(t, s.Measurements)
	require.Equal(t, []string{"a.mlpackage, case n2: outputs are further from the expected ones than allowed", "a.mlpackage, case n4: it fell over", "b.mlpackage: does not load"}, s.Doubts)
	r.Models[0].Ms = r.Models[0].Ms[:4]
	_, err = Read("r.json", marshal(t, r), Context{})
	require.ErrorContains(t, err, "models, a.mlpackage: 4 calls, want more than 4")
	r.Models = r.Models[1:]
	_, err = Read("r.json", marshal(t, r), Context{})
	require.ErrorContains(t, err, "models: no times")
}

const bench = `{"timestamp": "2025-10-15 10:00:00", "system_info": {"mac_model": "Mac16,11", "cpu": {"brand": "Apple M4 Pro"}, "macos_version": "macOS 26"},
 "results": [{"model_name": "llama_lm_head", "backend": "ANE", "inference_time_ms": 8.0, "memory_used_mb": 1, "throughput_gb_s": 126.4, "tflops": null, "input_shape": "[1, 1, 4096]", "model_size_mb": 1011.2}]}`

func TestAnemllBench(t *testing.T) { // hand: 1011.2 MB in 8 ms are 126.4 GB/s
	s, err := Read("b.json", []byte(bench), Context{})
	require.NoError(t, err)
	require.Equal(t, FormatAnemllBench, s.Format)
	require.Equal(t, []Call{{"llama_lm_head", "Apple M4 Pro", "ANE", 1011.2e6, 8e-3}}, s.Calls)
	require.Empty(t, s.Doubts)
	s, err = Read("b.json", []byte(strings.Replace(bench, "126.4", "64.2", 1)), Context{})
	require.NoError(t, err)
	require.Contains(t, s.Doubts[0], "are 126.4 GB/s, the report says 64.2")
	_, err = Read("b.json", []byte(strings.Replace(bench, "8.0", "-8.0", 1)), Context{})
	require.ErrorContains(t, err, "results[0]")
	s, err = Read("b.json", []byte(`[{"model_name": "x", "backend": "CPU", "inference_time_ms": 3, "model_size_mb": 0, "system_info": {"mac_model": "Mac18,5"}}]`), Context{})
	require.NoError(t, err)
	require.Equal(t, "Mac18,5", s.Calls[0].Device)
	require.Contains(t, s.Doubts[0], "has no size")
}

func TestInstrumentsTable(t *testing.T) { // hand
	table := "Start\tDuration\tModel\tOperation\n"
	for _, row := range []string{"chunk1", "chunk2_3way", "chunk3_3way"} {
		for i := range 15 {
			ms := map[string]string{"chunk1": "5.60 ms", "chunk2_3way": "12,200.00 µs", "chunk3_3way": "0.0109 s"}[row]
			if i < 4 {
				ms = "40.00 ms"
			}
			table += "00:01.234\t" + ms + "\t" + row + "\tPrediction\n"
		}
	}
	table += "00:09.000\t1.00 ms\ttokenizer\tLoad\n"
	s, err := Read("t.tsv", []byte(table), phone)
	require.NoError(t, err)
	require.Equal(t, FormatInstruments, s.Format)
	require.Len(t, s.Measurements, 3)
	require.Equal(t, 1, s.Skipped)
	require.InDelta(t, 12.2e-3, find(t, s, "2").Seconds, 1e-9)
	require.InDelta(t, 10.9e-3, find(t, s, "3").Seconds, 1e-9)
	_, err = Read("t.tsv", []byte(strings.Replace(table, "40.00 ms", "long", 1)), phone)
	require.ErrorContains(t, err, `t.tsv:2: duration: "long"`)
	// Two layouts in one export; loads are no calls; chunk 12 is not chunk 1.
	_, err = Read("t.tsv", []byte(table+"00:10\t6.50 ms\tchunk2\tPrediction\n"), phone)
	require.ErrorContains(t, err, `t.tsv:48: program: "chunk2" after "chunk2_3way", want the calls of one layout; export each session by itself`)
	loads, err := Read("t.tsv", []byte(table+strings.Repeat("00:10\t900.00 ms\tchunk1\tLoad\n", 40)), phone)
	require.NoError(t, err)
	require.InDelta(t, 5.6e-3, find(t, loads, "1").Seconds, 1e-9)
	_, err = Read("t.tsv", []byte(table+strings.Repeat("00:10\t9.00 ms\tchunk12\tPrediction\n", 15)), phone)
	require.ErrorContains(t, err, "programs of 12 chunks")
	_, err = Read("t.csv", []byte("Start,Duration,Weather\n1,2 ms,rain\n"), phone)
	require.ErrorContains(t, err, "a column that names the program")
}

// invariant: no bytes make a reader panic, and what is read is finite.
func FuzzRead(f *testing.F) {
	for _, s := range []string{cold + later, older, short, bench, "Start,Duration,Model\n0,5.6 ms,chunk1\n", "[ComputePlan] chunk4: 8/1683 ops NOT on Neural Engine\n[Prefill] c1=1ms\n",
		"experiment,ms\n", "[ANE/CPU] copyBack=1ms\n[Load] Topology I\n[Profile] full=99999999999999999999999\n"} {
		f.Add([]byte(s))
	}
	f.Add(marshal(f, report()))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _ := Read("fuzz", data, phone)
		for _, m := range s.Measurements {
			require.GreaterOrEqual(t, m.Seconds, 0.0)
			require.Less(t, m.Seconds, 1e300)
		}
		require.LessOrEqual(t, s.Skipped, s.Lines+1)
	})
}
