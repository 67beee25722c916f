package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"anelab"
	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

// embeddedMeasurements is what the shipped devices were fitted on.
const embeddedMeasurements = "testdata/measured/experiments.csv"

type calibrateOptions struct {
	output  outputFlags
	train   string
	score   string
	devices []string
	write   string
}

func newCalibrateCmd(c *console.Console) *cobra.Command {
	o := &calibrateOptions{}
	cmd := &cobra.Command{
		Use:   "calibrate [TRAIN.csv]",
		Short: "Fit the cost model to measurements; show what it misses",
		Long: `Fit the constants of every device family that the file has rows of, and hold the
result against the rows: those it was fitted on, every session left out in turn,
and the rows of another file (--score). Two simpler models are treated the same
way. Without a file, the measurements that come with the program are used.`,
		Example: `  simulate calibrate
  simulate calibrate mine.csv --score theirs.csv --format json
  simulate calibrate mine.csv --write-devices .`,
		Args: atMostArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.train = args[0]
			}
			return runCalibrate(c, o)
		},
	}
	cmd.Flags().StringVar(&o.score, "score", "", "predict the rows of `FILE`, which are not fitted on")
	cmd.Flags().StringArrayVar(&o.devices, "device", nil, "device `FILE` with priors for a family that is not shipped")
	cmd.Flags().StringVar(&o.write, "write-devices", "", "write every fitted device to `DIR`/NAME.yaml, for --device")
	o.output.add(cmd, "text", "json", "csv", "markdown")
	return cmd
}

func runCalibrate(c *console.Console, o *calibrateOptions) error {
	opt, err := o.options()
	if err != nil {
		return err
	}
	rows, err := readMeasurements(c, o.train)
	if err != nil {
		return err
	}
	r := &view.Calibrate{Made: made(c), Train: nameOfInput(o.train), Score: o.score}
	if r.Calibration, err = anesim.Calibrate(rows, opt); err != nil {
		return &format.Error{Path: r.Train, Err: err}
	}
	if o.score != "" {
		fresh, err := readMeasurements(c, o.score)
		if err != nil {
			return err
		}
		r.Calibration.AddScore(fresh)
	}
	if err := o.writeDevices(c, r.Calibration.Devices); err != nil {
		return err
	}
	return o.output.emit(c, r)
}

// options are the device families and the models that rows may name.
func (o *calibrateOptions) options() (anesim.Options, error) {
	opt := anesim.Options{Models: map[string]*chunking.Model{}}
	for _, path := range o.devices {
		d, err := loadDevice(path)
		if err != nil {
			return opt, err
		}
		opt.Devices = append(opt.Devices, d)
	}
	shipped, err := devices.All()
	if err != nil {
		return opt, err
	}
	opt.Devices = append(opt.Devices, shipped...)
	for _, m := range embeddedModels {
		if _, opt.Models[m.measuredAs], err = loadModel(m.name); err != nil {
			return opt, err
		}
	}
	return opt, nil
}

// nameOfInput is what results call a measurements argument.
func nameOfInput(path string) string {
	switch path {
	case "":
		return "the embedded measurements"
	case "-":
		return "standard input"
	}
	return path
}

// readMeasurements reads a file, standard input, or what comes with the program.
func readMeasurements(c *console.Console, path string) ([]anesim.Measurement, error) {
	switch path {
	case "":
		text, err := anelab.Files.ReadFile(embeddedMeasurements)
		if err != nil {
			return nil, err
		}
		return anesim.ReadMeasurements(embeddedMeasurements, bytes.NewReader(text))
	case "-":
		text, err := c.ReadInput("measurements")
		if err != nil {
			return nil, usageError{err}
		}
		return anesim.ReadMeasurements(nameOfInput(path), bytes.NewReader(text))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &format.Error{Path: path, Err: reason(err), Want: "a measurements file"}
	}
	defer f.Close()
	return anesim.ReadMeasurements(path, f)
}

// writeDevices writes the fitted families where --device finds them.
func (o *calibrateOptions) writeDevices(c *console.Console, fitted []anesim.Device) error {
	if o.write == "" {
		return nil
	}
	for _, d := range fitted {
		out, err := c.Open(filepath.Join(o.write, d.Name+".yaml"))
		if err != nil {
			return usagef("--write-devices %s: %w", o.write, reason(err))
		}
		if _, err := io.Copy(out, bytes.NewReader(devices.Write(d))); err != nil {
			out.Discard()
			return err
		}
		if err := out.Commit(); err != nil {
			return err
		}
	}
	return nil
}
