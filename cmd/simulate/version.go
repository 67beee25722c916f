package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/texttab"
	"anelab/cmd/simulate/internal/view"
)

// version of the command, as CHANGELOG.md counts.
func version() string { return "0.1.0" }

func newVersionCmd(c *console.Console) *cobra.Command {
	o := &outputFlags{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the command and of its documents",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return o.emit(c, versionResult{made(c)}) },
	}
	o.add(cmd, "text", "json")
	return cmd
}

// versionResult is what the binary knows about itself.
type versionResult struct{ made view.Made }

// Page is one line.
func (versionResult) Page(p *texttab.Page) {
	p.Line("simulate %s  documents %s  %s %s/%s", version(), view.FormatVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Document is the same with names.
func (r versionResult) Document() any {
	return struct {
		view.Made
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{r.made, version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
}
