package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

type transferOptions struct {
	output outputFlags
	from   string
	to     string
	write  string
	log    logFlag
	shots  string
}

func newTransferCmd(c *console.Console) *cobra.Command {
	o := &transferOptions{}
	cmd := &cobra.Command{
		Use:   "transfer CALLS",
		Short: "A device or model from a relative and at most five timed calls",
		Long: `Fit the constants of a relative to a few timed calls of single chunks. What the
calls cannot tell keeps the relative's value and a wide range. More calls than
five are a calibration.

CALLS is a file of any kind that calibrate reads; - is standard input.`,
		Example: `  simulate transfer calls.csv --from mac --to m4 --write-devices .
  simulate transfer pasted.log --log device=m4,context=2048 --from mac
  simulate transfer e4b.csv --from iphone17pro`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("transfer takes one file of timed calls, got %d; see simulate transfer --help", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.shots = args[0]
			return runTransfer(c, o)
		},
	}
	cmd.Flags().StringVar(&o.from, "from", defaultDevice, "`DEVICE` that is the relative: a name or a file")
	cmd.Flags().StringVar(&o.to, "to", "", "`DEVICE` whose calls these are, if it is known: a name or a file")
	complete(cmd, "from", deviceNames())
	complete(cmd, "to", deviceNames())
	o.log.add(cmd)
	cmd.Flags().StringVar(&o.write, "write-devices", "", "write the device to `DIR`/NAME.yaml, for --device")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func runTransfer(c *console.Console, o *transferOptions) error {
	source, err := loadDevice(o.from)
	if err != nil {
		return err
	}
	rows, err := readMeasurements(c, o.shots, &o.log)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return &format.Error{Path: nameOfInput(o.shots), Got: "no timed calls", Want: "1 to 5"}
	}
	target, relation, err := o.target(&source, &rows[0])
	if err != nil {
		return err
	}
	models, err := measuredModels()
	if err != nil {
		return err
	}
	t, err := anesim.TransferTo(target, source, relation, rows, models)
	if err != nil {
		return &format.Error{Path: nameOfInput(o.shots), Err: err}
	}
	if err := (&calibrateOptions{write: o.write}).writeDevices(c, []anesim.Device{t.Device}); err != nil {
		return err
	}
	return o.output.emit(c, &view.Transfer{Device: view.Device{Made: made(c), Device: t.Device}, From: source, Calls: len(rows), Fit: t.Fit, Notes: t.Notes})
}

// target is the device of the calls: the one that was named, the relative itself when only the model is another, or a new one
// under the name in the file.
func (o *transferOptions) target(source *anesim.Device, first *anesim.Measurement) (anesim.Device, anesim.Relation, error) {
	if o.to != "" {
		d, err := loadDevice(o.to)
		if !slices.Contains(d.MeasuredAs, first.Device) {
			d.MeasuredAs = append(slices.Clone(d.MeasuredAs), first.Device)
		}
		return d, anesim.OtherDevice, err
	}
	if slices.Contains(source.MeasuredAs, first.Device) {
		return *source, anesim.OtherModel, nil
	}
	return anesim.Device{Name: strings.ToLower(strings.Join(strings.Fields(first.Device), "-")), Title: first.Device, SoC: first.SoC, Class: source.Class,
		MeasuredAs: []string{first.Device}, Noise: source.Noise}, anesim.OtherDevice, nil
}
