package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNo          = 3
	exitInterrupted = 130 // as a shell reports SIGINT
)

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errNo is the answer "no": it has been printed, and only the exit code is left to say it.
var errNo = errors.New("the answer is no")

// finish says what went wrong and returns the exit code.
func finish(ctx context.Context, c *console.Console, err error) int {
	code := exitCode(ctx, err)
	switch {
	case code == exitInterrupted:
		fmt.Fprintln(c.Err, "simulate: interrupted")
	case code == exitFailed, code == exitUsage:
		printError(c, err)
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var layout *chunking.ParseError
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return exitDone
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &layout):
		return exitUsage
	}
	return exitFailed
}

// mostErrors of one file are printed; a file that is wrong throughout is wrong in one way.
const mostErrors = 10

// printError writes one line per fault, and under the last one the text it is in, where the error can show it.
func printError(c *console.Console, err error) {
	faults := flatten(err)
	for i, fault := range faults {
		if i == mostErrors {
			fmt.Fprintf(c.Err, "simulate: … and %d more\n", len(faults)-i)
			break
		}
		if text := strings.TrimRight(fault.Error(), "\n"); text != "" {
			fmt.Fprintf(c.Err, "simulate: %s\n", text)
		}
	}
	var shown interface{ Excerpt() string }
	if errors.As(err, &shown) {
		fmt.Fprintln(c.Err, shown.Excerpt())
	}
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
