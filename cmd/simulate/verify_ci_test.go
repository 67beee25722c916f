package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

// action is what the composite action declares.
type action struct {
	Inputs map[string]struct {
		Description string
		Required    bool
		Default     *string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, Uses, Shell, Run string
			With, Env            map[string]string
		}
	}
}

func readAction(t *testing.T) action {
	text, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "action.yml"))
	require.NoError(t, err)
	var a action
	require.NoError(t, yaml.Unmarshal(text, &a))
	return a
}

func TestActionIsWhole(t *testing.T) { // hand: the rules for composite actions
	a := readAction(t)
	require.Equal(t, "composite", a.Runs.Using)
	refer := regexp.MustCompile(`\$\{\{ (inputs|steps)\.([a-z]+)`)
	used := map[string]bool{}
	for _, step := range a.Runs.Steps {
		if step.Run != "" {
			require.Equal(t, "bash", step.Shell, "a composite action names the shell of every script")
			require.NotContains(t, step.Run, "${{", "inputs reach scripts as variables: text pasted into a script is run")
		}
		for _, value := range step.Env {
			for _, m := range refer.FindAllStringSubmatch(value, -1) {
				require.Contains(t, a.Inputs, m[2])
				used[m[2]] = true
			}
		}
	}
	for name, in := range a.Inputs {
		require.True(t, used[name], name)
		require.NotEmpty(t, in.Description)
		require.True(t, in.Required || in.Default != nil, name)
	}
	for name, out := range a.Outputs {
		require.Contains(t, out.Value, "steps.verify.outputs."+name)
	}
}

// runner is a folder that looks to a script like the runner of a CI system.
type runner struct{ temp, summary, output string }

func newRunner(t *testing.T) runner {
	r := runner{temp: t.TempDir()}
	r.summary, r.output = filepath.Join(r.temp, "summary.md"), filepath.Join(r.temp, "output")
	simulate, err := exec.LookPath("simulate") // put there by TestMain
	require.NoError(t, err)
	require.NoError(t, os.Symlink(simulate, filepath.Join(r.temp, "simulate")))
	return r
}

// bash runs a script from the top of the repository.
func (r runner) bash(t *testing.T, script string, env ...string) (out string, code int) {
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", script)
	cmd.Dir = shareddata.ModuleRoot(t)
	cmd.Env = append(os.Environ(), append(env, "RUNNER_TEMP="+r.temp, "GITHUB_STEP_SUMMARY="+r.summary, "GITHUB_OUTPUT="+r.output, "NO_COLOR=1")...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err, "%s", text)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// invariant: the action's script gates a job, and its summary names the first tensor that parted.
func TestActionGatesAndShowsTheFirstParting(t *testing.T) {
	a := readAction(t)
	script := a.Runs.Steps[len(a.Runs.Steps)-1].Run
	const ops = "testdata/coreml/ops/gemma_mlp_block"
	for name, c := range map[string]struct {
		flags, summary, log string
		code                int
	}{
		"holds":      {"--expect " + ops + ".safetensors", "yes: gemma_mlp_block.mlpackage computes what is expected in 2 tensors", "", exitDone},
		"parts":      {"--abs 1e-9 --expect " + ops + ".safetensors", "first parts at out, output, function main, case a", "::error title=simulate verify::no: ", exitNo},
		"is no file": {"--expect nowhere.safetensors", "", "::error title=simulate verify::nothing could be compared", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			report := filepath.Join(r.temp, "report.xml")
			log, code := r.bash(t, script, "CHECKPOINT=", "PACKAGES="+ops+"*.mlpackage", "FLAGS="+c.flags, "REPORT="+report)
			require.Equal(t, c.code, code, log)
			require.Contains(t, log, c.log)
			outputs, err := os.ReadFile(r.output)
			require.NoError(t, err)
			require.Contains(t, string(outputs), "report="+report+"\nanswer=")
			if c.summary == "" {
				require.NoFileExists(t, r.summary)
				return
			}
			summary, err := os.ReadFile(r.summary)
			require.NoError(t, err)
			require.Contains(t, string(summary), c.summary)
			require.FileExists(t, report)
		})
	}
}

// block is a fenced block of docs/ci.md.
var block = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// invariant: every command of docs/ci.md runs as it is written.
func TestCIDocumentRuns(t *testing.T) {
	root := shareddata.ModuleRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "ci.md"))
	require.NoError(t, err)
	a := readAction(t)
	scripts := 0
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		switch m[1] {
		case "sh":
			scripts++
			r := newRunner(t)
			inTemp := regexp.MustCompile(`\b(verify\.xml|verify\.md|OUT)\b`).ReplaceAllString(m[2], r.temp+"/$1")
			log, code := r.bash(t, inTemp)
			require.Zero(t, code, "%s\n%s", m[2], log)
		case "yaml":
			requireInputs(t, a, m[2])
		default:
			t.Fatalf("a block of %s is not checked", m[1])
		}
	}
	require.GreaterOrEqual(t, scripts, 5)
}

// requireInputs finds the steps that use the action, and holds what they give it against what it takes.
func requireInputs(t *testing.T, a action, text string) {
	var any any
	require.NoError(t, yaml.Unmarshal([]byte(text), &any))
	given := 0
	for _, name := range regexp.MustCompile(`(?m)^ {10}([a-z]+):`).FindAllStringSubmatch(text, -1) {
		require.Contains(t, a.Inputs, name[1])
		given++
	}
	require.NotZero(t, given)
	require.Contains(t, text, "packages:")
	require.True(t, strings.Contains(text, "uses: OWNER/anelab@main"))
}
