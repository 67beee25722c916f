package console

import (
	"fmt"
	"io"
	"os"
)

// Console is the streams of one run of the command.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Args     []string // what was typed behind the name of the command; documents repeat it
	// Terminals: whether a person is at the other end.
	InTerminal, OutTerminal, ErrTerminal bool

	inputRead bool
}

// System is the console of the process.
func System() *Console {
	return &Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		InTerminal: isTerminal(os.Stdin), OutTerminal: isTerminal(os.Stdout), ErrTerminal: isTerminal(os.Stderr)}
}

// isTerminal takes any character device for a terminal, except the one that is nothing.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Warn says something about the work on its own line.
func (c *Console) Warn(text string) { fmt.Fprintf(c.Err, "simulate: warning: %s\n", text) }

// ReadInput reads standard input to its end. On a terminal it would seem to hang, so there it fails and says what is wanted.
func (c *Console) ReadInput(what string) ([]byte, error) {
	if c.InTerminal {
		return nil, fmt.Errorf("standard input is a terminal: pipe %s into it, or name a file", what)
	}
	if c.inputRead {
		return nil, fmt.Errorf("standard input can be read once: give %s as a file", what)
	}
	c.inputRead = true
	return io.ReadAll(io.LimitReader(c.In, maxInput))
}

// maxInput is far above any layout or table of measurements.
const maxInput = 64 << 20
