package evidence

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/internal/format"
	"anelab/internal/shareddata"
)

// oracle: the embedded tables are the committed ones, byte for byte.
func TestEmbeddedTablesAreTheCommittedOnes(t *testing.T) {
	for name, embedded := range map[string][]byte{"effects.csv": effectsCSV, "limits.csv": limitsCSV} {
		want, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "testdata", "measured", name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(embedded), name)
	}
	require.Len(t, Effects(), 89)
	require.Len(t, Limits(), 54)
}

// invariant: tables found in the data folder are read without a complaint.
func TestSharedTables(t *testing.T) {
	for _, path := range shareddata.Cases(t, "data/effects*.csv") {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		all, err := ReadEffects(path, bytes.NewReader(data))
		require.NoError(t, err)
		require.NotEmpty(t, all)
	}
	for _, path := range shareddata.Cases(t, "data/limits*.csv") {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		all, err := ReadLimits(path, bytes.NewReader(data))
		require.NoError(t, err)
		require.NotEmpty(t, all)
	}
}

func TestTimes(t *testing.T) { // hand
	for _, c := range []struct {
		before, after, unit string
		s, e                float64
		ok                  bool
	}{
		{"15", "13", "ms", 0.015, 0.013, true},
		{"25", "40", "tok/s", 0.04, 0.025, true},
		{"0", "12", "% tok/s", 0, 0, false},
		{"31.4", "compile-fail", "category", 0, 0, false},
		{"14.9", "", "tok/s", 1 / 14.9, 0, false},
		{"0", "1", "tok/s", 0, 1, false},
		{"NaN", "1", "ms", 0, 1e-3, false},
	} {
		s, e, ok := Effect{Before: c.before, After: c.after, Unit: c.unit}.Times()
		require.Equal(t, c.ok, ok, c)
		require.InDelta(t, c.s, s, 1e-12, c)
		require.InDelta(t, c.e, e, 1e-12, c)
	}
	e, ok := FindEffect("layout-4to3-iphone-merged")
	require.True(t, ok)
	require.Equal(t, 3, e.Line)
	_, ok = FindEffect("layout-9to8")
	require.False(t, ok)
}

func TestTablesSayWhere(t *testing.T) { // hand
	header := strings.Join(limitColumns, ",") + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "want a header line"},
		{"other header", "a,b,c,d,e,f\n", "l.csv:1: header"},
		{"kind", header + "a,b,c,d,heard,f\n", `l.csv:2: evidence: "heard", want "measured" or "reported"`},
		{"fields", header + "a,b\n", "wrong number of fields"},
	} {
		_, err := ReadLimits("l.csv", strings.NewReader(c.text))
		var e *format.Error
		require.True(t, errors.As(err, &e), c.name)
		require.ErrorContains(t, err, c.want, c.name)
	}
	row := "x,,,,1,2,ms,,,\n"
	_, err := ReadEffects("e.csv", strings.NewReader(strings.Join(effectColumns, ",")+"\n"+row+row))
	require.ErrorContains(t, err, `e.csv:3: effect: "x", as in line 2`)
}

func FuzzTables(f *testing.F) {
	f.Add(effectsCSV)
	f.Add(limitsCSV)
	f.Add([]byte("\"a\nb\",c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		effects, _ := ReadEffects("f", bytes.NewReader(data))
		for _, e := range effects {
			if b, a, ok := e.Times(); ok {
				require.Positive(t, b)
				require.Positive(t, a)
			}
		}
		_, _ = ReadLimits("f", bytes.NewReader(data))
	})
}
