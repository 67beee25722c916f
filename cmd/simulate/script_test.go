package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"anelab/cmd/simulate/internal/texttab"
	"anelab/internal/shareddata"
)

var update = flag.Bool("update", false, "write what the command prints into testdata/script and docs")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"simulate": main, "plain-runner": plainRunner})
}

// TestScripts runs the command as a person would: testdata/script says what is typed and what must come out. Run with -update
// to accept new screens, and read them.
func TestScripts(t *testing.T) {
	root := shareddata.ModuleRoot(t)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TESTDATA", "testdata") // beside every script, so that no screen depends on where the checkout lies
			return os.Symlink(filepath.Join(root, "testdata"), filepath.Join(env.WorkDir, "testdata"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "page": page, "truncate": truncate, "smaller": smaller, "same": same},
	})
}

// code runs a command that must end with an exit code: code 3 simulate check @1way.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [args…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s", got, want, ts.ReadFile("stderr"))
	}
}

// page checks that stdout, stderr or a file fits on 80 columns and has no blanks at the ends of lines.
func page(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: page stdout|stderr|FILE")
	}
	for i, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		if w := texttab.Width(line); w > texttab.PageWidth {
			ts.Fatalf("line %d has %d columns: %s", i+1, w, line)
		}
		if strings.TrimRight(line, " ") != line {
			ts.Fatalf("line %d ends in blanks: %q", i+1, line)
		}
	}
}

// truncate copies the beginning of a file: truncate FROM TO BYTES.
func truncate(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: truncate FROM TO BYTES")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if n >= len(data) {
		ts.Fatalf("%s has only %s", args[0], fmt.Sprintf("%d bytes", len(data)))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data[:n], 0o644))
}

// smaller checks the size of a file: smaller FILE BYTES.
func smaller(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: smaller FILE BYTES")
	}
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n := len(ts.ReadFile(args[0])); n >= most {
		ts.Fatalf("%s has %d bytes, want less than %d", args[0], n, most)
	}
}

// same compares the lines of two files that hold a word: same WORD FILE FILE.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: same WORD FILE FILE")
	}
	lines := func(file string) (all []string) {
		for line := range strings.Lines(ts.ReadFile(file)) {
			if strings.Contains(line, args[0]) {
				all = append(all, line)
			}
		}
		return all
	}
	if a, b := lines(args[1]), lines(args[2]); len(a) == 0 || !slices.Equal(a, b) {
		ts.Fatalf("lines with %q differ: %q and %q", args[0], a, b)
	}
}
