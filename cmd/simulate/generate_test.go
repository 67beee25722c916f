package main

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/console"
)

// interrupter cancels, as Ctrl-C does, when it has been written to n times.
type interrupter struct {
	bytes.Buffer
	n      int
	cancel context.CancelFunc
}

func (w *interrupter) Write(b []byte) (int, error) {
	if w.n--; w.n == 0 {
		w.cancel()
	}
	return w.Buffer.Write(b)
}

// TestInterruptedGenerationKeepsWhatItSaid: the text so far ends its line, the figures follow, the exit code is a shell's.
func TestInterruptedGenerationKeepsWhatItSaid(t *testing.T) { // hand
	for name, args := range map[string][]string{"whole": nil, "chunked": {"--layout", "@3way"}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			out, errs := &interrupter{n: 4, cancel: cancel}, &bytes.Buffer{}
			c := &console.Console{In: strings.NewReader(""), Out: out, Err: errs, Getenv: func(string) string { return "" }}
			root := newRootCmd(c)
			root.SetArgs(append([]string{"generate", "tiny-e2b", "2 5 7", "--ids", "-n", "2000"}, args...))
			err := root.ExecuteContext(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, exitInterrupted, exitCode(ctx, err))
			require.Regexp(t, `^\d+ \d+ \d+ \d+\n$`, out.String())
			require.Contains(t, errs.String(), "4 tokens, ended by an interruption")
		})
	}
}

// gone is a reader that has left.
type gone struct{ writes int }

func (w *gone) Write([]byte) (int, error) {
	w.writes++
	return 0, syscall.EPIPE
}

func TestGenerationEndsWithItsReader(t *testing.T) { // hand
	w := &gone{}
	c := &console.Console{In: strings.NewReader(""), Out: w, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }}
	root := newRootCmd(c)
	root.SetArgs([]string{"generate", "tiny-e2b", "2 5 7", "--ids", "-n", "2000"})
	err := root.ExecuteContext(context.Background())
	require.ErrorIs(t, err, syscall.EPIPE)
	require.Equal(t, 1, w.writes, "not a token more")
	require.Equal(t, exitDone, exitCode(context.Background(), err))
}
