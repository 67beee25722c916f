package main

import (
	"github.com/spf13/cobra"

	"anelab/anesim/devices"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
)

func newDevicesCmd(c *console.Console) *cobra.Command {
	o := &outputFlags{}
	cmd := &cobra.Command{
		Use:   "devices [DEVICE]",
		Short: "List devices, or one with its constants",
		Example: `  simulate devices
  simulate devices iphone17pro --format json`,
		Args: atMostArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return deviceNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return runDevices(c, o, args) },
	}
	o.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func runDevices(c *console.Console, o *outputFlags, args []string) error {
	if len(args) == 1 {
		d, err := loadDevice(args[0])
		if err != nil {
			return err
		}
		return o.emit(c, &view.Device{Made: made(c), Device: d})
	}
	all, err := devices.All()
	if err != nil {
		return err
	}
	priors, err := devices.Priors()
	if err != nil {
		return err
	}
	all = append(all, priors...)
	r := &view.Devices{Made: made(c), Devices: all, Default: defaultDevice}
	if env := c.Getenv(deviceEnv); env != "" {
		r.Default, r.DefaultFrom = env, deviceEnv
	}
	return o.emit(c, r)
}
