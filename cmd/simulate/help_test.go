package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/console"
)

// invariant: no verb's help has a line that a terminal of 80 columns breaks.
func TestHelpFitsTheTerminal(t *testing.T) {
	verbs := newRootCmd(&console.Console{}).Commands()
	require.NotEmpty(t, verbs)
	for _, verb := range verbs {
		out := &bytes.Buffer{}
		root := newRootCmd(&console.Console{Out: out, Err: out, Getenv: func(string) string { return "" }})
		root.SetOut(out)
		root.SetArgs([]string{verb.Name(), "--help"})
		require.NoError(t, root.Execute())
		require.Contains(t, out.String(), "Usage:", verb.Name())
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%s: %s", verb.Name(), line)
		}
	}
}
