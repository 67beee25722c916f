package main

import (
	"bytes"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"anelab/anesim"
	"anelab/anesim/devices"
	"anelab/chunking"
	"anelab/cmd/simulate/internal/console"
	"anelab/cmd/simulate/internal/view"
	"anelab/internal/format"
)

type calibrateOptions struct {
	output  outputFlags
	train   string
	scores  []string
	log     logFlag
	devices []string
	write   string
}

func newCalibrateCmd(c *console.Console) *cobra.Command {
	o := &calibrateOptions{}
	cmd := &cobra.Command{
		Use:   "calibrate [TRAIN]",
		Short: "Fit the cost model to measurements; show what it misses",
		Long: `Fit the constants of every device family that the file has rows of, and hold the
result against the rows: those it was fitted on, every session left out in turn,
and the rows of other files (--score). Two simpler models are treated the same
way. Without TRAIN, the measurements that come with the program are used.

A file is a CSV of measurements, a pasted console log, a device report, or a
table exported from Instruments: its content says which; - is standard input.`,
		Example: `  simulate calibrate
  simulate calibrate mine.csv --score theirs.csv --format json
  simulate calibrate mine.csv --write-devices .
  simulate calibrate --score pasted.log --log device=mac,context=2048`,
		Args: atMostArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.train = args[0]
			}
			return runCalibrate(c, o)
		},
	}
	cmd.Flags().StringArrayVar(&o.scores, "score", nil, "predict the rows of `FILE`, which are not fitted on; may be repeated")
	o.log.add(cmd)
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
	rows, err := readMeasurements(c, o.train, &o.log)
	if err != nil {
		return err
	}
	r := &view.Calibrate{Made: made(c), Train: nameOfInput(o.train), Scores: o.scores}
	if r.Calibration, err = anesim.Calibrate(rows, opt); err != nil {
		return &format.Error{Path: r.Train, Err: err}
	}
	fresh, err := readScored(c, o.scores, &o.log)
	if err != nil {
		return err
	}
	if r.Problems = fresh.problems; len(o.scores) > 0 {
		r.Calibration.AddScore(fresh.rows)
	}
	if err := o.writeDevices(c, r.Calibration.Devices); err != nil {
		return err
	}
	return o.output.emit(c, r)
}

// options are the device families and the models that rows may name.
func (o *calibrateOptions) options() (anesim.Options, error) {
	var opt anesim.Options
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
	opt.Models, err = measuredModels()
	return opt, err
}

// measuredModels are the models that rows may name.
func measuredModels() (map[string]*chunking.Model, error) {
	models := map[string]*chunking.Model{}
	for _, m := range embeddedModels {
		_, model, err := loadModel(m.name)
		if err != nil {
			return nil, err
		}
		models[m.measuredAs] = model
	}
	return models, nil
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
