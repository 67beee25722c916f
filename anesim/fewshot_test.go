package anesim_test

import (
	"fmt"
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/chunking"
	"anelab/gemma4"
)

func e2bAndE4B(t testing.TB) map[string]*chunking.Model {
	cfg, err := gemma4.ParseConfig("e4b.json", read(t, "configs", "e4b.json"))
	require.NoError(t, err)
	e4b, err := chunking.NewModel(cfg)
	require.NoError(t, err)
	return map[string]*chunking.Model{"gemma-4-e2b": model(t), "gemma-4-e4b": e4b}
}

// timedChunks picks the warm single-chunk decode rows of a model on devices, by experiment in the order of the file.
func timedChunks(t testing.TB, model string, devices ...string) (names []string, sessions map[string][]anesim.Measurement) {
	sessions = map[string][]anesim.Measurement{}
	for _, m := range measured(t) {
		ok := m.Model == model && m.KVMode == "explicit-io" && m.QueryTokens == 1 && m.ColdWarm == "warm" && m.Quality != "X" && m.Timed
		for _, d := range devices {
			if ok && m.Device == d && m.Component >= "1" && m.Component <= "4" {
				if sessions[m.Experiment] == nil {
					names = append(names, m.Experiment)
				}
				sessions[m.Experiment] = append(sessions[m.Experiment], m)
			}
		}
	}
	return names, sessions
}

// misses predicts every row of the other sessions from one session's first calls: absolute errors in percent.
func misses(t testing.TB, d anesim.Device, sessions map[string][]anesim.Measurement, but string, models map[string]*chunking.Model) (errors []float64, inside int) {
	for name, rows := range sessions {
		if name == but {
			continue
		}
		for _, r := range rows {
			x := predictRow(t, d, r, models[r.Model])
			c := x.Chunks[r.Component[0]-'1']
			errors = append(errors, 100*math.Abs(c.TimeS/r.Seconds-1))
			if c.TimeRange.Lo <= r.Seconds && r.Seconds <= c.TimeRange.Hi {
				inside++
			}
		}
	}
	return errors, inside
}

func predictRow(t testing.TB, d anesim.Device, r anesim.Measurement, m *chunking.Model) anesim.Prediction {
	text := ""
	for i, part := range splitBars(r.Layout) {
		if i > 0 {
			text += " | "
		}
		text += "L" + part
	}
	l, err := chunking.Parse(fmt.Sprintf("%s context=%d", text, r.Context), m)
	require.NoError(t, err)
	p, err := l.Plan(m)
	require.NoError(t, err)
	copyBack, _ := r.CopyBack()
	return anesim.Predict(p, d, anesim.Workload{CopyBack: copyBack})
}

func splitBars(s string) (parts []string) {
	start := 0
	for i := range s {
		if s[i] == '|' {
			parts, start = append(parts, s[start:i]), i+1
		}
	}
	return append(parts, s[start:])
}

func middle(x []float64) float64 {
	sort.Float64s(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// oracle: the measurements. Any one session's calls, at most five, predict the rows of all other sessions of the device.
func TestMacFromThePhone(t *testing.T) {
	models := e2bAndE4B(t)
	names, sessions := timedChunks(t, "gemma-4-e2b", "Mac Studio", "Mac (unspecified)")
	tried := 0
	for _, name := range names {
		shots := sessions[name]
		if len(shots) < 3 {
			continue
		}
		shots = shots[:min(len(shots), anesim.MaxShots-1)]
		tr, err := anesim.TransferTo(device(t, "mac"), device(t, "iphone17pro"), anesim.OtherDevice, shots, models)
		require.NoError(t, err, name)
		errors, inside := misses(t, tr.Device, sessions, name, models)
		t.Logf("%d calls of %s: median %.1f %%, %d of %d inside", len(shots), name, middle(errors), inside, len(errors))
		require.LessOrEqual(t, middle(errors), 5.0, name)
		require.GreaterOrEqual(t, float64(inside), 0.84*float64(len(errors)), "ranges of a transfer are wide enough")
		tried++
	}
	require.Equal(t, 7, tried)
}

// oracle: the two E4B sessions of the phone, each from the other, with constants of E2B.
func TestE4BFromE2B(t *testing.T) {
	models := e2bAndE4B(t)
	names, sessions := timedChunks(t, "gemma-4-e4b", "iPhone 17 Pro")
	require.Len(t, names, 2)
	phone := device(t, "iphone17pro")
	for _, name := range names {
		tr, err := anesim.TransferTo(phone, phone, anesim.OtherModel, sessions[name], models)
		require.NoError(t, err)
		errors, inside := misses(t, tr.Device, sessions, name, models)
		t.Logf("4 calls of %s: median %.1f %%, %d of %d inside", name, middle(errors), inside, len(errors))
		require.LessOrEqual(t, middle(errors), 10.0)
		require.Contains(t, tr.Notes[0], "4 timed calls; everything else from iPhone 17 Pro")
	}
}

// hand: what is refused, and why.
func TestTransferRefuses(t *testing.T) {
	models := e2bAndE4B(t)
	mac, phone := device(t, "mac"), device(t, "iphone17pro")
	_, sessions := timedChunks(t, "gemma-4-e2b", "Mac (unspecified)")
	good := sessions["mac-e2b-4chunk-2k-20260424-3way"]
	change := func(f func(*anesim.Measurement)) []anesim.Measurement {
		rows := append([]anesim.Measurement{}, good...)
		f(&rows[2])
		return rows
	}
	for _, c := range []struct {
		name string
		rows []anesim.Measurement
		want string
	}{
		{"no calls", nil, "none, want 1 to 5 timed calls"},
		{"too many", append(append([]anesim.Measurement{}, good...), good[:2]...), "6, want at most 5 timed calls"},
		{"two devices", change(func(m *anesim.Measurement) { m.Device = "iPhone 17 Pro" }), "devices Mac (unspecified) and iPhone 17 Pro"},
		{"two models", change(func(m *anesim.Measurement) { m.Model, m.Layout = "gemma-4-e4b", "0-11|12-23|24-32|33-41+head" }), "models gemma-4-e2b and gemma-4-e4b"},
		{"cold", change(func(m *anesim.Measurement) { m.ColdWarm = "cold" }), "not warm"},
		{"quality X", change(func(m *anesim.Measurement) { m.Quality = "X" }), "quality X"},
		{"unknown model", change(func(m *anesim.Measurement) { m.Model = "qwen" }), "model qwen, want a model with a configuration: gemma-4-e2b, gemma-4-e4b"},
		{"mixed-up session", change(func(m *anesim.Measurement) { m.Seconds *= 2.2 }), "beside the other calls"},
	} {
		_, err := anesim.TransferTo(mac, phone, anesim.OtherDevice, c.rows, models)
		require.ErrorContains(t, err, c.want, c.name)
	}
	_, err := anesim.TransferTo(mac, phone, anesim.OtherDevice, good, models)
	require.NoError(t, err)
}

// invariant: what no call can tell keeps the relative's value and a wide range.
func TestTransferKeepsWhatItCannotTell(t *testing.T) {
	models := e2bAndE4B(t)
	_, sessions := timedChunks(t, "gemma-4-e2b", "Mac (unspecified)")
	phone := device(t, "iphone17pro")
	tr, err := anesim.TransferTo(device(t, "mac"), phone, anesim.OtherDevice, sessions["mac-e2b-4chunk-2k-20260424-topo"][:1], models)
	require.NoError(t, err)
	k := tr.Device.Constants[anesim.HandoffBytes]
	require.InEpsilon(t, phone.Constants[anesim.HandoffBytes].Value, k.Value, 0.01, "chunk 1 imports nothing")
	require.GreaterOrEqual(t, k.SD/k.Value, 0.35)
	require.Equal(t, "Mac Studio", tr.Device.Title)
}
