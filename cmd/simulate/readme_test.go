package main

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/cmd/simulate/internal/console"
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
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	t.Chdir("../..")
	blocks := 0
	got := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		blocks++
		line := consoleBlock.FindStringSubmatch(block)[1]
		return "```console\n$ " + line + "\n" + runForReadme(t, splitCommand(line)[3:]) + "```"
	})
	require.GreaterOrEqual(t, blocks, 5)
	if *updateReadme {
		require.NoError(t, os.WriteFile("README.md", []byte(got), 0o644))
		return
	}
	require.Equal(t, string(text), got, "go test ./cmd/simulate -run Readme -update-readme rewrites it")
}

func TestReadmeTestCommandIsWhatCIRuns(t *testing.T) {
	ci, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.Contains(t, string(text), "```sh\ngo test ./...\n```")
	require.Regexp(t, `(?m)^step tests go test \./\.\.\.\s`, string(ci))
}

// The commands of sh blocks name files a reader has and we have not; their verbs and flags must exist all the same.
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
