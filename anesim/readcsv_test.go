package anesim

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/format"
	"anelab/internal/shareddata"
)

const csvHeader = "experiment,session_date,source,device,soc,os,model,kv_mode,layout,ctx,query_tokens,real_tokens,weight_bits,group_size," +
	"component,first_layer,last_layer,has_ple,has_head,ms,tok_per_s,cold_warm,quality,cross_check,note\n"

// csvChunk and csvStep are correct rows; cases change one field of them.
const (
	csvChunk = "e1,2026-04-14,doc,iPhone 17 Pro,A19 Pro,iOS 26,gemma-4-e2b,explicit-io,0-7|8-34+head,2048,1,,4,32,1,0,7,1,0,5.9,,warm,A,,copyback=sync; x\n"
	csvStep  = "e1,2026-04-14,doc,iPhone 17 Pro,A19 Pro,iOS 26,gemma-4-e2b,explicit-io,0-7|8-34+head,2048,1,,4,32,step,0,34,1,1,31.2,32,warm,A,,copyback=sync\n"
)

func TestReadMeasurements(t *testing.T) { // hand
	rows, err := ReadMeasurements("m.csv", strings.NewReader(csvHeader+csvChunk+csvStep))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	m := rows[0]
	require.Equal(t, 2, m.Line)
	require.Equal(t, 0, m.Lo)
	require.Equal(t, 8, m.Hi)
	require.True(t, m.HasPLE)
	require.InDelta(t, 5.9e-3, m.Seconds, 1e-15)
	require.Equal(t, CopyBackSync, m.copyBack())
	require.Empty(t, m.unfit())
	require.Equal(t, 32.0, rows[1].TokPerSec)
}

func TestReadMeasurementsSaysWhere(t *testing.T) { // hand
	for _, c := range []struct{ name, old, new, want string }{
		{"NaN", ",5.9,", ",NaN,", `m.csv:2:109: ms: "NaN", want a finite number`},
		{"Inf", ",5.9,", ",+Inf,", `"+Inf", want a finite number`},
		{"negative", ",5.9,", ",-5.9,", `"-5.9", want a finite number`},
		{"text", ",5.9,", ",5.9ms,", `"5.9ms", want a finite number`},
		{"seconds as ms", ",5.9,", ",0.0059,", `"0.0059", want milliseconds; no call is that short: if these are seconds, write 5.9`},
		{"microseconds as ms", ",5.9,", ",5900000,", "if these are microseconds, write 5900"},
		{"microseconds of a chunk", ",5.9,", ",5900,", "no warm decode call is that long: if these are microseconds, write 5.9"},
		{"no device", "iPhone 17 Pro", "", "device: nothing, want a value"},
		{"layers and layout differ", ",1,0,7,1,0,", ",1,0,8,1,0,", "chunk 1 with layers 0-8, want 0-7 as in the layout"},
		{"no such chunk", ",1,0,7,1,0,", ",3,0,7,1,0,", `component: "3", want a chunk of the layout, 1 to 2`},
		{"quality", ",warm,A,", ",warm,a,", `quality: "a", want A, B, X`},
		{"temperature", ",warm,A,", ",wram,A,", `did you mean "warm"?`},
		{"context", ",2048,", ",2K,", `m.csv:2:86: ctx: "2K", want a whole number`},
		{"huge context", ",2048,", ",99999999999999999999,", "ctx:"},
		{"field missing", ",copyback=sync; x", "", "24 fields, want 25 as in the header"},
		{"quotes", "copyback=sync; x", `copyback="sync`, "quote fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, csvChunk, c.old)
			rows, err := ReadMeasurements("m.csv", strings.NewReader(csvHeader+strings.Replace(csvChunk, c.old, c.new, 1)))
			var e *format.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "m.csv")
			require.Empty(t, rows)
		})
	}
}

func TestReadMeasurementsHeader(t *testing.T) { // hand
	for _, c := range []struct{ name, old, new, want string }{
		{"missing column", ",note", "", `m.csv:1:1: header: no column "note"`},
		{"mistyped column", "tok_per_s", "tok_pers", `unknown column "tok_pers"; did you mean "tok_per_s"?`},
		{"twice", "soc,os", "soc,soc", `column "soc" twice`},
		{"other file", csvHeader, "a,b\n", `no column "experiment"`},
		{"empty", csvHeader, "", "want a header line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadMeasurements("m.csv", strings.NewReader(strings.Replace(csvHeader, c.old, c.new, 1)))
			require.ErrorContains(t, err, c.want)
		})
	}
	shuffled := strings.Replace(csvHeader, "experiment,session_date", "session_date,experiment", 1) // any order will do
	rows, err := ReadMeasurements("m.csv", strings.NewReader("\ufeff"+shuffled+csvChunk))
	require.NoError(t, err)
	require.Equal(t, "2026-04-14", rows[0].Experiment)
}

func TestReadMeasurementsAcrossRows(t *testing.T) { // hand
	other := strings.Replace(csvStep, "iPhone 17 Pro", "Mac Studio", 1)
	_, err := ReadMeasurements("m.csv", strings.NewReader(csvHeader+csvChunk+csvChunk))
	require.ErrorContains(t, err, "m.csv:3:1: e1: the same row as line 2")
	_, err = ReadMeasurements("m.csv", strings.NewReader(csvHeader+csvChunk+other))
	require.ErrorContains(t, err, `m.csv:3:1: e1: device "Mac Studio", but "iPhone 17 Pro" in line 2`)

	// One bad row does not hide the next, nor the good ones.
	bad := strings.Replace(csvChunk, "5.9", "NaN", 1)
	rows, err := ReadMeasurements("m.csv", strings.NewReader(csvHeader+bad+csvStep+strings.Replace(bad, ",4,32,", ",x,32,", 1)))
	require.Len(t, rows, 1)
	for _, want := range []string{"m.csv:2:109: ms", "m.csv:4:109: ms", "m.csv:4:94: weight_bits"} {
		require.ErrorContains(t, err, want)
	}
}

func TestDoubts(t *testing.T) { // hand
	row := func(s, old, new string) string { return strings.Replace(s, old, new, 1) }
	rows, err := ReadMeasurements("m.csv", strings.NewReader(csvHeader+
		row(csvChunk, "copyback=sync; x", "no word of it")+
		row(csvStep, ",32,warm", ",30,warm")+
		row(csvStep, ",warm,A,,", ",warm,X,,too slow: ")))
	require.NoError(t, err)
	doubts := Doubts(rows)
	require.Len(t, doubts, 3)
	require.Contains(t, doubts[0], "line 2 (e1): the note does not begin with copyback=")
	require.Contains(t, doubts[0], "taken as sync by its date")
	require.Contains(t, doubts[1], "line 3 (e1): 31.2 ms and 30 tok/s are 7 % apart")
	require.Contains(t, doubts[2], "line 4 (e1): quality X")

	rows, err = ReadMeasurements("m.csv", strings.NewReader(csvHeader+row(csvChunk, ",5.9,", ",,")))
	require.NoError(t, err)
	require.Equal(t, []string{"line 2 (e1): neither a time nor a rate"}, Doubts(rows))
	require.Equal(t, "no time printed", rows[0].unfit())

	// Chunks of one layout beside the step of their session, and a chunk that was timed twice.
	second := row(row(csvChunk, ",1,0,7,1,0,5.9,", ",2,8,34,0,1,25,"), "copyback=sync; x", "copyback=sync; y")
	rows, err = ReadMeasurements("m.csv", strings.NewReader(csvHeader+csvChunk+second+row(csvStep, "31.2,32,", "16,,")+row(csvChunk, ",5.9,", ",6.1,")))
	require.NoError(t, err)
	doubts = Doubts(rows)
	require.Len(t, doubts, 2)
	require.Contains(t, doubts[0], "line 4 (e1): a step of 16 ms over chunks of 31 ms together")
	require.Contains(t, doubts[1], "line 5 (e1): chunk 1 again, as in line 2, with another time and the same note")

	// A row that nobody fits may be odd: it is listed, not refused.
	rows, err = ReadMeasurements("m.csv", strings.NewReader(csvHeader+row(row(csvChunk, ",1,0,7,1,0,", ",1,0,8,1,0,"), ",warm,A,", ",warm,X,")))
	require.NoError(t, err)
	require.Equal(t, "quality X", rows[0].unfit())
}

// invariant: every measurements file that is there is read without a complaint.
func TestReadSharedMeasurements(t *testing.T) {
	for _, path := range shareddata.Cases(t, "data/experiments*.csv") {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		rows, err := ReadMeasurements(path, bytes.NewReader(data))
		require.NoError(t, err)
		require.NotEmpty(t, rows)
	}
}

func FuzzReadMeasurements(f *testing.F) {
	f.Add([]byte(csvHeader + csvChunk + csvStep))
	f.Add([]byte(csvHeader + strings.Replace(csvChunk, "5.9", "NaN", 1)))
	f.Add([]byte(csvHeader + strings.Replace(csvChunk, "0-7|", "|", 1)))
	f.Add([]byte(csvHeader + "\"a\nb\",c\n"))
	f.Add(measuredFile(f, "experiments.csv")[:4096])
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := ReadMeasurements("fuzz.csv", bytes.NewReader(data))
		if err == nil {
			Doubts(rows)
		}
		for _, m := range rows {
			require.True(t, finite(m.Seconds) && m.Seconds >= 0)
			require.True(t, finite(m.TokPerSec) && m.TokPerSec >= 0)
			m.unfit()
		}
	})
}
