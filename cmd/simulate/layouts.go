package main

import (
	"github.com/spf13/cobra"

	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
)

func newLayoutsCmd(c *console.Console) *cobra.Command {
	o, model := &outputFlags{}, ""
	cmd := &cobra.Command{
		Use:   "layouts",
		Short: "List the named layouts and what they are on a model",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return runLayouts(c, o, model) },
	}
	cmd.Flags().StringVar(&model, "model", defaultModel, "`MODEL`: e2b, e4b, 31b, or the path of a config.json")
	complete(cmd, "model", modelNames())
	o.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func runLayouts(c *console.Console, o *outputFlags, model string) error {
	name, m, err := loadModel(model)
	if err != nil {
		return err
	}
	r := &view.Layouts{Made: made(c), Model: name, Layers: len(m.Layers)}
	for _, p := range chunking.Presets() {
		l, _ := m.Preset(p.Name)
		r.Layouts = append(r.Layouts, view.NamedLayout{Name: p.Name, Layout: l.String(), Description: p.Description, Source: p.Source})
	}
	return o.emit(c, r)
}
