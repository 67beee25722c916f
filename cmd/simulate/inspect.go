package main

import (
	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/coreml"
)

func newInspectCmd(c *console.Console) *cobra.Command {
	var o outputFlags
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "What is in a Core ML model: functions, ports, ops, weights",
		Long: `Read an .mlpackage or .mlmodelc as far as Core ML would before it compiles it,
and say what is in it: functions with their inputs, states and outputs, ops by
type, weights by encoding with their stored bytes, metadata. A model that is
damaged is refused with the place.`,
		Example: `  simulate inspect chunk1.mlpackage
  simulate inspect chunk1.mlmodelc --format json`,
		Args:              exactArgs(1, "model"),
		ValidArgsFunction: completeModels,
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := coreml.Open(args[0])
			if err != nil {
				return err
			}
			defer m.Close()
			return o.emit(c, &view.Inspect{Made: made(c), Path: m.Path, Form: string(m.Form), Program: m.Program, Description: m.Description})
		},
	}
	o.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}
