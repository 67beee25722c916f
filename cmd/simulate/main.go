// Command simulate prices, checks and verifies ways to cut Gemma 4 into programs for Apple's Neural Engine.
//
//	simulate plan 'L0-7 | L8-24 | L25-34+head'   what one layout costs, and why
//	simulate sweep                               the best layouts of many
//	simulate verify                              chunks compute what the whole model computes
//
// Results are on standard output, everything about the work on standard error. Exit codes: 0 done, 1 failed, 2 wrong usage or
// unreadable layout, 3 the answer is no, 130 interrupted. What a printed figure means: simulate explain NAME.
//
// Every verb is a file of this package: newXCmd declares it, runX does it, package view says how its result looks.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"anelab/cmd/simulate/internal/console"
)

func main() { os.Exit(run(console.System(), os.Args[1:])) }

// run is one run of the command.
func run(c *console.Console, args []string) int {
	signal.Ignore(syscall.SIGPIPE) // a reader that has seen enough is an error of Write, see exitCode
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Args = args
	root := newRootCmd(c)
	root.SetArgs(args)
	err := checkVerb(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	return finish(ctx, c, err)
}
