package results

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/format"
)

func line(t testing.TB, change func(*Record)) string {
	t.Helper()
	x := Record{FormatVersion: "1.0", Model: "m", Device: "d", DeviceHash: "7", Layout: "L0-2+head", Context: 11, CopyBack: "async", TimeS: 0.5}
	if change != nil {
		change(&x)
	}
	data, err := json.Marshal(x)
	require.NoError(t, err)
	return string(data) + "\n"
}

func TestReader(t *testing.T) { // hand
	r := NewReader("a.jsonl", strings.NewReader(line(t, nil)+"\n"+line(t, func(x *Record) { x.Context = 13 })))
	x, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, Key{"L0-2+head", 11}, x.Key())
	x, err = r.Next()
	require.NoError(t, err)
	require.Equal(t, 13, x.Context)
	require.Equal(t, 3, r.Line(), "the empty line counts")
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
}

// Each fault with its line. hand
func TestReaderFaults(t *testing.T) {
	for name, c := range map[string]struct{ file, message string }{
		"no JSON":   {"{}}\n", "a.jsonl:1: want a record"},
		"cut short": {line(t, nil) + `{"layout":"L0`, "a.jsonl:2: want a record"},
		"empty":     {"{}\n", "a.jsonl:1: no layout"},
		"no time":   {line(t, func(x *Record) { x.TimeS = 0 }), "a.jsonl:1: time_s: 0, want seconds above zero"},
		"too long":  {strings.Repeat("x", maxLine+1), "a.jsonl:1: want a record per line"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader("a.jsonl", strings.NewReader(c.file))
			var err error
			for err == nil {
				_, err = r.Next()
			}
			var fault *format.Error
			require.ErrorAs(t, err, &fault)
			require.ErrorContains(t, err, c.message)
		})
	}
}

func TestSet(t *testing.T) { // hand
	a, b := line(t, nil), line(t, func(x *Record) { x.Context = 13 })
	var kept strings.Builder
	keep := func(_ Record, raw []byte) error { kept.Write(raw); kept.WriteByte('\n'); return nil }
	var s Set
	require.NoError(t, s.Add("1", strings.NewReader(a), keep))
	require.NoError(t, s.Add("2", strings.NewReader(a+b), keep))
	require.Equal(t, a+b, kept.String())
	require.Equal(t, 1, s.Twice)
	require.Equal(t, 2, s.Len())

	err := s.Add("3", strings.NewReader(line(t, func(x *Record) { x.DeviceHash = "5" })), keep)
	require.ErrorContains(t, err, "3:1: a record of m on d (5), copyback async, format 1.0, want m on d (7), copyback async, format 1.0 as in 1")
	err = s.Add("4", strings.NewReader(line(t, func(x *Record) { x.TimeS = 0.7 })), keep)
	require.ErrorContains(t, err, "4:1: time_s: 0.7 s for L0-2+head at context 11, want 0.5 s")
}

func FuzzReader(f *testing.F) {
	f.Add(line(f, nil))
	f.Add("{}\n[1,2]\nnull\n")
	f.Add("\xff\x00{")
	f.Fuzz(func(t *testing.T, data string) {
		r := NewReader("x", strings.NewReader(data))
		for {
			x, err := r.Next()
			if err == io.EOF {
				return
			}
			var fault *format.Error
			if err != nil {
				require.ErrorAs(t, err, &fault)
				return
			}
			require.Positive(t, x.TimeS)
		}
	})
}
