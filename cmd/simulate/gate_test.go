package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"anelab/internal/shareddata"
)

// gate are the scripts of the sample workflow, in order, without the one that builds.
func gate(t *testing.T) []string {
	text, err := os.ReadFile(filepath.Join(shareddata.ModuleRoot(t), "docs", "examples", "layout-gate.yml"))
	require.NoError(t, err)
	var w struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct{ Name, Uses, Run string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &w))
	var scripts []string
	for _, s := range w.Jobs["price"].Steps {
		require.NotContains(t, s.Run, "${{", "what a pull request names reaches scripts as variables: text pasted into a script is run")
		if s.Run != "" && !strings.HasPrefix(s.Name, "Build") {
			scripts = append(scripts, s.Run)
		}
	}
	require.Len(t, scripts, 2)
	return scripts
}

// hand: the commands of the sample workflow on a repository whose pull request changes a layout, as a runner would run them. All of
// them together take less than ten seconds on two cores.
func TestLayoutGate(t *testing.T) {
	for _, tool := range []string{"git", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	const four, three, whole = "preset: \"@4way\"\n", "preset: \"@3way\"\n", "preset: \"@1way\"\n"
	for name, c := range map[string]struct {
		old, new string
		want     int
		says     string
	}{
		"faster":    {four, three, 0, "yes: not slower by more than 3.00%"},
		"slower":    {three, four, exitNo, "no: slower by more than 3.00%"},
		"refused":   {three, whole, exitNo, "does not run this layout"},
		"new":       {"", three, 0, "nothing known keeps iphone17pro from running it"},
		"unchanged": {three, three, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, repository := newRunner(t), t.TempDir()
			run := func(script string) (int, string) {
				cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
				cmd.Dir = repository
				cmd.Env = append(os.Environ(), "RUNNER_TEMP="+r.temp, "GITHUB_STEP_SUMMARY="+r.summary, "DEVICE=iphone17pro", "FAIL_OVER=3%", "PATH="+r.temp+":"+os.Getenv("PATH"),
					"GIT_CONFIG_GLOBAL=/dev/null", "BASE=base")
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					return exit.ExitCode(), string(out)
				}
				require.NoError(t, err)
				return 0, string(out)
			}
			commit := `git add -A && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m layout`
			put := func(layout string) {
				require.NoError(t, os.MkdirAll(filepath.Join(repository, "layouts"), 0o755))
				if layout != "" {
					require.NoError(t, os.WriteFile(filepath.Join(repository, "layouts", "phone.yaml"), []byte(layout), 0o644))
				}
				code, out := run(commit)
				require.Zero(t, code, out)
			}
			code, out := run("git init -q")
			require.Zero(t, code, out)
			put(c.old)
			code, out = run("git tag base")
			require.Zero(t, code, out)
			put(c.new)

			start, got := time.Now(), 0
			for _, script := range gate(t) {
				if code, out := run(script); code != 0 {
					got = code
					t.Log(out)
					break
				}
			}
			require.Less(t, time.Since(start), 10*time.Second)
			require.Equal(t, c.want, got)
			summary, err := os.ReadFile(r.summary)
			if c.says == "" {
				require.ErrorIs(t, err, os.ErrNotExist)
				return
			}
			require.NoError(t, err)
			require.Contains(t, string(summary), c.says)
		})
	}
}
