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
		shown := consoleBlock.FindStringSubmatch(block)
		printed := runForReadme(t, splitCommand(shown[1])[3:])
		if !*updateReadme {
			require.Equal(t, shown[2], printed, "%s: go test ./cmd/simulate -run Readme -update-readme rewrites it", shown[1])
		}
		return "```console\n$ " + shown[1] + "\n" + printed + "```"
	})
	require.GreaterOrEqual(t, blocks, 5)
	if *updateReadme {
		require.NoError(t, os.WriteFile("README.md", []byte(got), 0o644))
	}
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
