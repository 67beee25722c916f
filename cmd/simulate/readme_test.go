package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/console"
	"anelab/internal/shareddata"
)

var updateReadme = flag.Bool("update-readme", false, "write the outputs of the README's commands into it")

const readme = "../../README.md"

// consoleBlock is a fenced block of a command and its output.
var consoleBlock = regexp.MustCompile("(?s)```console\n\\$ (go run \\./cmd/simulate [^\n]*)\n(.*?)```")

// splitCommand splits a command line at spaces outside single quotes.
func splitCommand(line string) []string {
	var args []string
	for _, part := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		args = append(args, strings.Trim(part, "'"))
	}
	return args
}

func TestReadmeOutputsAreReal(t *testing.T) {
	t.Chdir("../..")
	for name, least := range map[string]int{"README.md": 5, "docs/accuracy.md": 1} {
		require.GreaterOrEqual(t, checkDocument(t, name), least, name)
	}
}

// checkDocument runs the commands of a document and returns how many there are.
func checkDocument(t *testing.T, name string) (blocks int) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	got := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		blocks++
		shown := consoleBlock.FindStringSubmatch(block)
		printed := runForReadme(t, splitCommand(shown[1])[3:])
		if !*updateReadme {
			require.Equal(t, shown[2], printed, "%s: go test ./cmd/simulate -run Readme -update-readme rewrites it", shown[1])
		}
		return "```console\n$ " + shown[1] + "\n" + printed + "```"
	})
	if *updateReadme {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	return blocks
}

// shBlock is a fenced block of commands.
var shBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// Every sh block of the README runs as it is written, one after the other in one folder, with testdata beside it.
func TestReadmeCommandsRun(t *testing.T) { // invariant
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	r, root, ran := newRunner(t), shareddata.ModuleRoot(t), 0
	require.NoError(t, os.Symlink(filepath.Join(root, "testdata"), filepath.Join(r.temp, "testdata")))
	for _, m := range shBlock.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(m[1], "go test") {
			continue // this very run
		}
		for line := range strings.Lines(m[1]) {
			ran++
			out, code := r.bash(t, "cd "+r.temp+"; PATH="+r.temp+":$PATH; "+line)
			require.Zero(t, code, "%s%s", line, out)
		}
	}
	require.GreaterOrEqual(t, ran, 15)
}

func TestReadmeTestCommandIsWhatCIRuns(t *testing.T) {
	ci, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.Contains(t, string(text), "```sh\ngo test ./...\n```")
	require.Regexp(t, `(?m)^step tests go test \./\.\.\.\s`, string(ci))
}

// Commands of text blocks name files a reader has and we have not; their verbs and flags must exist all the same.
func TestReadmeVerbsAndFlagsExist(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?m)^simulate ([a-z]+)([^#\n]*)").FindAllStringSubmatch(string(text), -1) {
		help := runForReadme(t, []string{m[1], "--help"})
		for _, f := range regexp.MustCompile(`--[a-z-]+`).FindAllString(m[2], -1) {
			require.Contains(t, help, f, m[0])
		}
	}
}

// runForReadme runs the command as in a pipe and returns its standard output.
func runForReadme(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	c := &console.Console{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
	run(c, args)
	require.NotEmpty(t, out.String(), "%v: %s", args, errs.String())
	return out.String()
}
