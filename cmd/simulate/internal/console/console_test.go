package console

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestPaint(t *testing.T) { // hand
	for name, c := range map[string]struct {
		mode     ColorMode
		terminal bool
		env      []string
		on       bool
	}{
		"terminal":              {ColorAuto, true, nil, true},
		"pipe":                  {ColorAuto, false, nil, false},
		"NO_COLOR":              {ColorAuto, true, []string{"NO_COLOR", "1"}, false},
		"NO_COLOR empty":        {ColorAuto, true, []string{"NO_COLOR", ""}, true},
		"dumb terminal":         {ColorAuto, true, []string{"TERM", "dumb"}, false},
		"always, into a pipe":   {ColorAlways, false, []string{"NO_COLOR", "1"}, true},
		"never, on a terminal":  {ColorNever, true, nil, false},
		"another kind terminal": {ColorAuto, true, []string{"TERM", "xterm"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			paint := (&Console{OutTerminal: c.terminal, Getenv: env(c.env...)}).Paint(c.mode)
			require.Equal(t, c.on, paint.Bold("x") != "x")
		})
	}
}

func TestFilesAppearWhole(t *testing.T) { // hand
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	c := &Console{Out: &bytes.Buffer{}}
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))

	out, err := c.Open(path)
	require.NoError(t, err)
	_, err = out.WriteString("half")
	require.NoError(t, err)
	out.Discard()
	require.Equal(t, "old", read(t, path))

	out, err = c.Open(path)
	require.NoError(t, err)
	_, err = out.WriteString("new")
	require.NoError(t, err)
	require.Equal(t, "old", read(t, path), "not before it is complete")
	require.NoError(t, out.Commit())
	require.Equal(t, "new", read(t, path))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays behind")

	_, err = c.Open(filepath.Join(dir, "no", "out.json"))
	require.Error(t, err)
}

func read(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestStandardOutputIsFlushedEvenWhenDiscarded(t *testing.T) { // hand
	var b bytes.Buffer
	out, err := (&Console{Out: &b}).Open("-")
	require.NoError(t, err)
	_, err = out.WriteString("record\n")
	require.NoError(t, err)
	out.Discard()
	require.Equal(t, "record\n", b.String())
}

func TestProgressIsForPeopleWhoWait(t *testing.T) { // hand
	var b bytes.Buffer
	silent := (&Console{Err: &b}).Progress()
	silent.next = time.Time{}
	silent.Say("never")
	silent.Done()

	p := (&Console{Err: &b, ErrTerminal: true}).Progress()
	p.Say("too early")
	p.Done()
	require.Empty(t, b.String())

	p.next = time.Now().Add(-quietFor)
	p.Say("%d of 9", 5)
	p.Say("too soon after")
	p.Done()
	require.Equal(t, "\r5 of 9\r"+strings.Repeat(" ", 6)+"\r", b.String())
}

func TestReadInputRefusesToHang(t *testing.T) { // hand
	_, err := (&Console{InTerminal: true}).ReadInput("a layout")
	require.ErrorContains(t, err, "pipe a layout into it")
	c := &Console{In: strings.NewReader("@3way")}
	text, err := c.ReadInput("a layout")
	require.NoError(t, err)
	require.Equal(t, "@3way", string(text))
	_, err = c.ReadInput("a layout")
	require.ErrorContains(t, err, "once")
}

func TestExtendKeepsCompleteLines(t *testing.T) { // hand
	long := strings.Repeat("x", 1<<17)
	for name, c := range map[string]struct{ was, kept string }{
		"new":            {"", ""},
		"complete":       {"a\nb\n", "a\nb\n"},
		"cut off":        {"a\nb", "a\n"},
		"only a part":    {"ab", ""},
		"long last line": {"a\n" + long, "a\n"},
		"long lines":     {long + "\n" + long + "\nb", long + "\n" + long + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lines")
			if c.was != "" {
				require.NoError(t, os.WriteFile(path, []byte(c.was), 0o644))
			}
			e, err := (&Console{}).Extend(path)
			require.NoError(t, err)
			earlier, err := io.ReadAll(e.Earlier)
			require.NoError(t, err)
			require.Equal(t, c.kept, string(earlier))
			_, err = e.WriteString("new\n")
			require.NoError(t, err)
			require.NoError(t, e.Close())
			require.Equal(t, c.kept+"new\n", read(t, path))
		})
	}
	_, err := (&Console{}).Extend(t.TempDir())
	require.Error(t, err)
}
